"""The two streams that join the services: their names, subjects and limits. Every process creates absent streams."""

import zlib
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Annotated

from servicekit.bus.streams import ConsumerSpec, StreamSpec
from servicekit.run.settings import Period, ProcessSettings

PARTITIONS = 64
"""The number of tokens that accounts are spread over. It can never change, since a held command keeps its subject."""

_GIB = 1024**3

EVENTS = StreamSpec(
    name="EVENTS",
    subjects=("events.>",),
    work_queue=False,
    max_age=timedelta(days=30),
    # About ten million events. The server reserves as much disk, and refuses to create the stream if it has less.
    max_bytes=4 * _GIB,
)
"""Drops its oldest messages when it is full."""

PUBLISH = StreamSpec(
    name="PUBLISH",
    subjects=("publish.*.*",),
    work_queue=True,
    max_age=timedelta(days=1),
    # Queue keeps 10,000 commands outstanding per durable, of which there are 64 at most.
    max_messages=1_000_000,
    max_bytes=_GIB,
)
"""Refuses messages when it is full: Queue keeps the commands and retries."""


def _check_bound(value: int) -> None:
    if value < 1 and value != -1:
        raise ValueError(f"{value} is neither at least 1 nor -1 (no limit)")


def _check_replicas(value: int) -> None:
    if value not in (1, 3, 5):
        raise ValueError(f"{value} is none of 1, 3, 5")


def _check_durables(value: int) -> None:
    if not 1 <= value <= PARTITIONS:
        raise ValueError(f"{value} is not 1 to {PARTITIONS}")


Durables = Annotated[int, _check_durables]
_Bound = Annotated[int, _check_bound]
_Replicas = Annotated[int, _check_replicas]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSettings(ProcessSettings):
    """The limits with which a process creates absent streams. An existing stream keeps its limits."""

    stream_replicas: _Replicas = 1  # servers that keep each stream: 1, 3 or 5
    events_max_age: Period = EVENTS.max_age
    events_max_bytes: _Bound = EVENTS.max_bytes  # -1 = no limit; beyond it the oldest events go
    publish_max_messages: _Bound = PUBLISH.max_messages  # -1 = no limit; beyond it commands are refused
    publish_max_bytes: _Bound = PUBLISH.max_bytes  # likewise

    @property
    def events_stream(self) -> StreamSpec:
        return replace(
            EVENTS, replicas=self.stream_replicas, max_age=self.events_max_age, max_bytes=self.events_max_bytes
        )

    @property
    def publish_stream(self) -> StreamSpec:
        return replace(
            PUBLISH,
            replicas=self.stream_replicas,
            max_messages=self.publish_max_messages,
            max_bytes=self.publish_max_bytes,
        )


def events_subject(context: str, aggregate: str) -> str:
    """Returns the subject of an aggregate's events, of all organizations: what shares a subject shares messages.

    Earlier releases named the organization before the aggregate. The filters of consumers match both.
    """
    return f"events.{context}.{aggregate}"


def publish_subject(organization_id: str, social_account_id: str) -> str:
    return f"publish.{partition(organization_id, social_account_id)}.{organization_id}"


def organization_of(publish_subject: str) -> str:
    return publish_subject.rpartition(".")[2]


def partition(organization_id: str, social_account_id: str) -> int:
    return zlib.crc32(f"{organization_id}/{social_account_id}".encode()) % PARTITIONS


def event_consumer(service: str, *contexts: str, subjects: tuple[str, ...] = (), name: str = "events") -> ConsumerSpec:
    """Returns the durable of a service that follows the events of the given contexts, and of single subjects.

    A durable that is new reads the stream from its beginning, so a context that a service follows only since a later
    release gets a durable of its own, with another `name`.

    A process extends the deadline of messages in flight three times per `ack_wait`, so only those of a dead process are
    redelivered.
    """
    return ConsumerSpec(
        stream=EVENTS.name,
        durable=f"{service}-{name}",
        filter_subjects=(*(f"events.{context}.>" for context in contexts), *subjects),
        ack_wait=timedelta(seconds=5),
    )


def publish_consumers(durables: int) -> list[ConsumerSpec]:
    """Deals the partitions out to this many durables."""
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
