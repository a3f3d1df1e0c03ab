"""The two streams that join the services, as code: names, subjects, limits. Whoever connects makes sure they exist."""

import zlib
from datetime import timedelta

from servicekit.bus.streams import ConsumerSpec, StreamSpec

PARTITIONS = 64
"""How many tokens the accounts are spread over; fixed for ever, because a held command keeps its subject."""

EVENTS = StreamSpec(
    name="EVENTS",
    subjects=("events.>",),
    work_queue=False,
    max_age=timedelta(days=30),
)

PUBLISH = StreamSpec(
    name="PUBLISH",
    subjects=("publish.*.*",),
    work_queue=True,
    max_age=timedelta(days=1),
)


def events_subject(context: str, organization_id: str, aggregate: str) -> str:
    return f"events.{context}.{organization_id}.{aggregate}"


def publish_subject(organization_id: str, social_account_id: str) -> str:
    return f"publish.{partition(organization_id, social_account_id)}.{organization_id}"


def organization_of(publish_subject: str) -> str:
    return publish_subject.rpartition(".")[2]


def partition(organization_id: str, social_account_id: str) -> int:
    return zlib.crc32(f"{organization_id}/{social_account_id}".encode()) % PARTITIONS


def event_consumer(service: str, *contexts: str) -> ConsumerSpec:
    """The one durable of a service that follows what the given contexts announce.

    A live process says three times in `ack_wait` what it still works on; that of a dead one comes again after it.
    """
    return ConsumerSpec(
        stream=EVENTS.name,
        durable=f"{service}-events",
        filter_subjects=tuple(f"events.{context}.>" for context in contexts),
        ack_wait=timedelta(seconds=5),
    )


def publish_consumers(durables: int) -> list[ConsumerSpec]:
    """The partitions, dealt out to this many durables."""
    if not 1 <= durables <= PARTITIONS:
        raise ValueError(f"{PARTITIONS} partitions cannot be dealt out to {durables} durables")
    names = [f"publisher-{index}of{durables}" for index in range(durables)]
    return [
        ConsumerSpec(
            stream=PUBLISH.name,
            durable=name,
            filter_subjects=_filters(index, durables),
            layout=frozenset(names),
        )
        for index, name in enumerate(names)
    ]


def _filters(index: int, durables: int) -> tuple[str, ...]:
    if durables == 1:
        return ("publish.>",)
    return tuple(f"publish.{token}.>" for token in range(index, PARTITIONS, durables))
