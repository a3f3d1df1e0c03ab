"""Streams and consumers as code: created if absent, verified if they exist.

An existing one belongs to its operator, and its replicas, sizes, ages, placement and other settings stay. Only a
setting that would break a promise of this code is corrected, with a warning, or refused if the server cannot change it.
So two releases with different defaults leave each other alone.
"""

import json
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

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
    StreamState,
)
from nats.js.errors import APIError, BadRequestError, NotFoundError

_log = logging.getLogger(__name__)

# Two consumers of a work queue may not want the same message.
_OVERLAP = frozenset({10099, 10100})
_NANOSECONDS = 1_000_000_000

LONGEST_REQUEST = timedelta(seconds=30)
"""How long a request of a pull loop lasts; a consumer with a lower limit would refuse every request."""

_Config = dict[str, Any]
"""The server's JSON. The client's types drop fields that they do not know, which an update would then reset."""


class Unfit(APIError):
    """A stream or consumer is unusable as it is, and the server cannot change it."""

    def __init__(self, text: str) -> None:
        super().__init__(description=text)

    def __str__(self) -> str:
        return self.description or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSpec:
    """A stream. Name, subjects and kind are promises; the rest applies at its creation, then it is the operator's."""

    name: str
    subjects: tuple[str, ...]
    work_queue: bool
    max_age: timedelta
    max_bytes: int = -1
    max_messages: int = -1
    duplicate_window: timedelta = timedelta(minutes=2)
    replicas: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSpec:
    """A durable pull consumer, without `backoff` and `max_deliver`, which would change or end a delayed redelivery.

    An existing consumer may have a shorter `ack_wait`, a larger `max_ack_pending`, more subjects, and request limits
    above those of the pull loop. `layout` names all durables that share a work queue, each with its own subjects; any
    other durable there belongs to an earlier layout.
    """

    stream: str
    durable: str
    filter_subjects: tuple[str, ...]
    layout: frozenset[str] = frozenset()
    ack_wait: timedelta = timedelta(seconds=30)
    max_ack_pending: int = 20_000


@dataclass(frozen=True, slots=True)
class _Flaw:
    """A field that breaks a promise. `wanted` is None if the field must not be set."""

    field: str
    found: object
    wanted: object

    def __str__(self) -> str:
        return f"{self.field} is {json.dumps(self.found)}, must be {json.dumps(self.wanted)}"


async def ensure_stream(js: JetStreamContext, spec: StreamSpec) -> StreamInfo:
    try:
        found = await _ask(js, f"STREAM.INFO.{spec.name}")
    except NotFoundError:
        try:
            return await js.add_stream(_new_stream(spec))
        except BadRequestError as error:  # another replica was faster
            _log.info("stream %s: %s", spec.name, error.description)
            found = await _ask(js, f"STREAM.INFO.{spec.name}")
    if flaws := _stream_flaws(found["config"], spec):
        config = _corrected(found["config"], flaws)
        found = await _correct(js, f"STREAM.UPDATE.{spec.name}", f"stream {spec.name}", config, flaws)
    info: StreamInfo = StreamInfo.from_response(found)
    return info


async def removed_messages(js: JetStreamContext, stream: str) -> StreamState:
    """Returns the state of a stream with the sequences removed between its first and its last message."""
    found = await _ask(js, f"STREAM.INFO.{stream}", {"deleted_details": True})
    state: StreamState = StreamInfo.from_response(found).state
    return state


async def ensure_consumer(js: JetStreamContext, spec: ConsumerSpec, *, evict: bool = True) -> None:
    """Creates or corrects a consumer.

    With `evict`, conflicting durables of another layout are removed; what they held is redelivered.
    """
    try:
        await _ensure_consumer(js, spec)
    except BadRequestError as error:
        if error.err_code not in _OVERLAP or not (spec.layout and evict):
            raise
        await _evict_others(js, spec)
        await _ensure_consumer(js, spec)


async def _ensure_consumer(js: JetStreamContext, spec: ConsumerSpec) -> None:
    try:
        found = (await _ask(js, f"CONSUMER.INFO.{spec.stream}.{spec.durable}"))["config"]
    except NotFoundError:
        await js.add_consumer(spec.stream, _new_consumer(spec))
        return
    if flaws := _consumer_flaws(found, spec):
        request = {"stream_name": spec.stream, "config": _corrected(found, flaws)}
        subject = f"CONSUMER.DURABLE.CREATE.{spec.stream}.{spec.durable}"
        await _correct(js, subject, f"consumer {spec.durable} of stream {spec.stream}", request, flaws)


def _new_stream(spec: StreamSpec) -> StreamConfig:
    return StreamConfig(
        name=spec.name,
        subjects=list(spec.subjects),
        retention=RetentionPolicy.WORK_QUEUE if spec.work_queue else RetentionPolicy.LIMITS,
        storage=StorageType.FILE,
        # A full work queue must refuse messages, not drop them: the sender keeps what was not acknowledged.
        discard=DiscardPolicy.NEW if spec.work_queue else DiscardPolicy.OLD,
        max_age=spec.max_age.total_seconds(),
        max_bytes=spec.max_bytes,
        max_msgs=spec.max_messages,
        duplicate_window=spec.duplicate_window.total_seconds(),
        num_replicas=spec.replicas,
        # Purging by subject loses other held messages; nothing here needs a purge.
        deny_purge=True,
        allow_direct=True,
    )


def _new_consumer(spec: ConsumerSpec) -> ConsumerConfig:
    """Returns the configuration of a new consumer, which has as many replicas as its stream."""
    return ConsumerConfig(
        durable_name=spec.durable,
        filter_subjects=list(spec.filter_subjects) if len(spec.filter_subjects) > 1 else None,
        filter_subject=spec.filter_subjects[0] if len(spec.filter_subjects) == 1 else None,
        deliver_policy=DeliverPolicy.ALL,
        ack_policy=AckPolicy.EXPLICIT,
        ack_wait=spec.ack_wait.total_seconds(),
        max_deliver=-1,
        max_ack_pending=spec.max_ack_pending,
    )


def _stream_flaws(config: _Config, spec: StreamSpec) -> list[_Flaw]:
    flaws = []
    subjects = config.get("subjects") or []
    if not _all_covered(spec.subjects, by=subjects):
        flaws.append(_Flaw("subjects", subjects, _joined(subjects, spec.subjects)))
    wanted = {"retention": "workqueue" if spec.work_queue else "limits", "deny_purge": True}
    if spec.work_queue:
        wanted["discard"] = "new"
    return flaws + [_Flaw(name, config.get(name), value) for name, value in wanted.items() if config.get(name) != value]


def _consumer_flaws(config: _Config, spec: ConsumerSpec) -> list[_Flaw]:
    flaws = _filter_flaws(config, spec)
    if config.get("ack_policy") != "explicit":
        flaws.append(_Flaw("ack_policy", config.get("ack_policy"), "explicit"))
    if config.get("max_deliver", -1) != -1:
        flaws.append(_Flaw("max_deliver", config["max_deliver"], -1))
    if config.get("backoff"):
        flaws.append(_Flaw("backoff", config["backoff"], None))
    ack_wait = round(spec.ack_wait.total_seconds() * _NANOSECONDS)
    if config.get("ack_wait", 0) > ack_wait:
        flaws.append(_Flaw("ack_wait", config["ack_wait"], ack_wait))
    if 0 <= config.get("max_ack_pending", 0) < spec.max_ack_pending:
        flaws.append(_Flaw("max_ack_pending", config.get("max_ack_pending"), spec.max_ack_pending))
    return flaws + _request_flaws(config, spec)


def _request_flaws(config: _Config, spec: ConsumerSpec) -> list[_Flaw]:
    """Returns the settings that would refuse every request of a pull loop, or deliver messages without payloads."""
    longest = round(LONGEST_REQUEST.total_seconds() * _NANOSECONDS)
    breaks = {
        "max_batch": 0 < config.get("max_batch", 0) < spec.max_ack_pending,
        "max_expires": 0 < config.get("max_expires", 0) < longest,
        "headers_only": config.get("headers_only", False),
    }
    return [_Flaw(name, config[name], None) for name, is_flaw in breaks.items() if is_flaw]


def _filter_flaws(config: _Config, spec: ConsumerSpec) -> list[_Flaw]:
    found = config.get("filter_subjects") or [each for each in (config.get("filter_subject"),) if each]
    if spec.layout:
        fits, wanted = set(found) == set(spec.filter_subjects), list(spec.filter_subjects)
    else:
        fits, wanted = not found or _all_covered(spec.filter_subjects, by=found), _joined(found, spec.filter_subjects)
    return [] if fits else [_Flaw("filter_subjects", found, wanted)]


def _corrected(config: _Config, flaws: Sequence[_Flaw]) -> _Config:
    config = config | {flaw.field: flaw.wanted for flaw in flaws}
    if config.get("filter_subjects"):
        config.pop("filter_subject", None)  # the server accepts only one of them
    return {name: value for name, value in config.items() if value is not None}


async def _correct(
    js: JetStreamContext, subject: str, what: str, request: _Config, flaws: Sequence[_Flaw]
) -> dict[str, Any]:
    text = "; ".join(map(str, flaws))
    try:
        answer = await _ask(js, subject, request)
    except APIError as error:
        if error.err_code in _OVERLAP:
            raise
        raise Unfit(f"{what} is not usable: {text}; it cannot be changed: {error.description}") from error
    _log.warning("%s: corrected: %s", what, text)
    return answer


async def _evict_others(js: JetStreamContext, spec: ConsumerSpec) -> None:
    for other in await js.consumers_info(spec.stream):
        if other.name not in spec.layout:
            _log.warning("stream %s: removing the consumer %s of another layout", spec.stream, other.name)
            with suppress(NotFoundError):  # another replica was faster
                await js.delete_consumer(spec.stream, other.name)


async def _ask(js: JetStreamContext, subject: str, request: _Config | None = None) -> dict[str, Any]:
    payload = json.dumps(request).encode() if request else b""
    return await js._api_request(f"{js._prefix}.{subject}", payload, timeout=js._timeout)  # noqa: SLF001 - see _Config


def _all_covered(subjects: Sequence[str], *, by: Sequence[str]) -> bool:
    return all(any(_covers(each, subject) for each in by) for subject in subjects)


def _joined(found: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """Returns both lists without subjects that others cover: the server refuses an overlap."""
    kept = [each for each in found if not _all_covered((each,), by=wanted)]
    return kept + [each for each in wanted if not _all_covered((each,), by=kept)]


def _covers(pattern: str, subject: str) -> bool:
    """Returns whether the pattern matches every subject that the other pattern matches."""
    tokens, others = pattern.split("."), subject.split(".")
    if tokens[-1] == ">":
        tokens = tokens[:-1]
        if len(others) <= len(tokens):
            return False
        others = others[: len(tokens)]
    return len(tokens) == len(others) and all(map(_takes, tokens, others))


def _takes(word: str, other: str) -> bool:
    return word == other or (word == "*" and other != ">")
