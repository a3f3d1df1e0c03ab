"""Streams and consumers as code: made when absent, brought up to date when a setting differs, else refused."""

import logging
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta

from nats.js import JetStreamContext
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DeliverPolicy,
    DiscardPolicy,
    RetentionPolicy,
    StorageType,
    StreamConfig,
    StreamInfo,
)
from nats.js.errors import BadRequestError, NotFoundError

log = logging.getLogger(__name__)

# Two consumers of a work queue may not want the same message.
_OVERLAP = frozenset({10099, 10100})


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSpec:
    name: str
    subjects: tuple[str, ...]
    work_queue: bool
    max_age: timedelta
    max_bytes: int = -1
    duplicate_window: timedelta = timedelta(minutes=2)
    replicas: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSpec:
    """A durable pull consumer. No `backoff` and no `max_deliver`: both would change or end a delayed redelivery.

    `layout` names all durables that share a work queue: any other one there is of an earlier layout.
    """

    stream: str
    durable: str
    filter_subjects: tuple[str, ...]
    layout: frozenset[str] = frozenset()
    ack_wait: timedelta = timedelta(seconds=30)
    max_ack_pending: int = 20_000
    replicas: int = 1


async def ensure_stream(js: JetStreamContext, spec: StreamSpec) -> StreamInfo:
    wanted = StreamConfig(
        name=spec.name,
        subjects=list(spec.subjects),
        retention=RetentionPolicy.WORK_QUEUE if spec.work_queue else RetentionPolicy.LIMITS,
        storage=StorageType.FILE,
        # A full stream must refuse, not forget: the sender keeps what was not acknowledged.
        discard=DiscardPolicy.NEW if spec.work_queue else DiscardPolicy.OLD,
        max_age=spec.max_age.total_seconds(),
        max_bytes=spec.max_bytes,
        duplicate_window=spec.duplicate_window.total_seconds(),
        num_replicas=spec.replicas,
        # Purging by subject loses other held messages; nothing here ever needs a purge.
        deny_purge=True,
        allow_direct=True,
    )
    try:
        found = await js.stream_info(spec.name)
    except NotFoundError:
        try:
            return await js.add_stream(wanted)
        except BadRequestError as error:  # another replica was faster
            log.info("stream %s: %s", spec.name, error.description)
            found = await js.stream_info(spec.name)
    if _same_stream(found.config, wanted):
        return found
    log.info("stream %s: updating its configuration", spec.name)
    return await js.update_stream(wanted)


async def ensure_consumer(js: JetStreamContext, spec: ConsumerSpec, *, evict: bool = True) -> None:
    """With `evict` durables of another layout that stand in the way are removed; what they held is delivered anew."""
    wanted = ConsumerConfig(
        durable_name=spec.durable,
        filter_subjects=list(spec.filter_subjects) if len(spec.filter_subjects) > 1 else None,
        filter_subject=spec.filter_subjects[0] if len(spec.filter_subjects) == 1 else None,
        deliver_policy=DeliverPolicy.ALL,
        ack_policy=AckPolicy.EXPLICIT,
        ack_wait=spec.ack_wait.total_seconds(),
        max_deliver=-1,
        max_ack_pending=spec.max_ack_pending,
        num_replicas=spec.replicas,
    )
    try:
        found = (await js.consumer_info(spec.stream, spec.durable)).config
    except NotFoundError:
        found = None
    if found and _same_consumer(found, wanted):
        return
    try:
        await js.add_consumer(spec.stream, wanted)
    except BadRequestError as error:
        if error.err_code not in _OVERLAP or not (spec.layout and evict):
            raise
        await _evict_others(js, spec)
        await js.add_consumer(spec.stream, wanted)


async def _evict_others(js: JetStreamContext, spec: ConsumerSpec) -> None:
    for other in await js.consumers_info(spec.stream):
        if other.name not in spec.layout:
            log.warning("stream %s: removing the consumer %s of another layout", spec.stream, other.name)
            with suppress(NotFoundError):  # another replica was faster
                await js.delete_consumer(spec.stream, other.name)


def _same_stream(found: StreamConfig, wanted: StreamConfig) -> bool:
    return _comparable(found) == _comparable(wanted)


def _comparable(config: StreamConfig) -> tuple[object, ...]:
    bounded = replace(config, max_bytes=config.max_bytes or -1)
    return (
        sorted(bounded.subjects or ()),
        bounded.retention,
        bounded.discard,
        bounded.max_age,
        bounded.max_bytes,
        bounded.duplicate_window,
        bounded.num_replicas,
        bool(bounded.deny_purge),
        bool(bounded.allow_direct),
    )


def _same_consumer(found: ConsumerConfig, wanted: ConsumerConfig) -> bool:
    def facts(config: ConsumerConfig) -> tuple[object, ...]:
        filters = sorted(config.filter_subjects or ([config.filter_subject] if config.filter_subject else []))
        return filters, config.ack_wait, config.max_ack_pending, config.max_deliver, config.num_replicas

    return facts(found) == facts(wanted)
