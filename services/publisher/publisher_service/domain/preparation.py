"""Preparation: what a provider does with a post before it can be published, such as the processing of its media."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, assert_never

from servicekit.record import record


class PreparationState(StrEnum):
    # To be prepared, or prepared again.
    PENDING = "PENDING"
    # The provider works at it; the handle names it.
    PROCESSING = "PROCESSING"
    READY = "READY"
    # The provider refuses this content for good.
    REFUSED = "REFUSED"


@record(frozen=True, slots=True, kw_only=True)
class Processing:
    """The provider has taken the post and works at it."""

    handle: str


@record(frozen=True, slots=True, kw_only=True)
class Ready:
    """The post can be published by its handle."""

    handle: str


@record(frozen=True, slots=True, kw_only=True)
class Void:
    """The prepared post cannot be published any more, or its processing failed: it is to be prepared again."""

    reason: str
    message: str


@record(frozen=True, slots=True, kw_only=True)
class Unfit:
    """The provider refuses to prepare this content for good."""

    reason: str
    message: str


@record(frozen=True, slots=True, kw_only=True)
class Delayed:
    """The provider said "later", or nothing that is certain. Nothing has changed."""

    message: str
    retry_after: timedelta | None = None


@record(frozen=True, slots=True, kw_only=True)
class CredentialsInvalid:
    """The provider refused the credentials."""

    message: str


Preparing = Processing | Ready | Void | Unfit | Delayed | CredentialsInvalid
PREPARING: Final = (Processing, Ready, Void, Unfit, Delayed, CredentialsInvalid)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """The preparation of a job, as a process has taken it."""

    organization_id: str
    post_job_id: str
    social_account_id: str
    provider: str
    state: PreparationState
    handle: str
    # The bytes and the run for which the handle was made.
    content_digest: str
    run: int
    begin_time: datetime | None
    expire_time: datetime | None
    next_time: datetime | None
    fence: int
    failures: int
    error_reason: str
    error_message: str

    @property
    def job_key(self) -> tuple[str, str]:
        return self.organization_id, self.post_job_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The post to prepare: the bytes that a claim would send now, and the account that would send them."""

    channel: str
    destination: str
    run: int
    provider: str
    external_account_id: str
    credentials: bytes
    settings: Mapping[str, str]
    connected: bool
    content: bytes | None
    content_digest: str | None
    revision: int | None
    # An attempt is out, or its outcome is unknown: what it may publish is kept.
    is_open: bool
    # A claim would send these bytes if the provider were ready.
    is_wanted: bool
    # Of a follow-up: which one it is, and what it follows.
    part: int = 0
    follows: str = ""


# Processing may fail for reasons that pass; then a provider has had its say.
MOST_FAILURES: Final = 3
_LONGEST_WAIT: Final = timedelta(minutes=1)


def is_of(preparation: Preparation, source: Source) -> bool:
    """Returns whether the handle was made of these bytes, for this run."""
    made_of = (preparation.content_digest, preparation.run)
    return bool(preparation.handle) and made_of == (source.content_digest, source.run)


def is_settled(preparation: Preparation, source: Source, now: datetime) -> bool:
    """Returns whether nothing is left to do: these bytes are ready, or the provider refuses them."""
    made_of = (preparation.content_digest, preparation.run) == (source.content_digest, source.run)
    is_fresh = preparation.expire_time is not None and preparation.expire_time > now
    refused = preparation.state is PreparationState.REFUSED
    return made_of and (refused or (preparation.state is PreparationState.READY and is_fresh))


def at_rest(preparation: Preparation) -> Preparation:
    """Returns the preparation of which nothing is to be done until a claim asks for it."""
    return replace(preparation, next_time=None)


def after_answer(
    preparation: Preparation, answer: Preparing, source: Source, *, now: datetime, again: timedelta, life: timedelta
) -> Preparation:
    """Returns the preparation after an answer of the provider about these bytes."""
    digest = source.content_digest or ""
    made = replace(preparation, content_digest=digest, run=source.run)
    match answer:
        case Processing(handle=handle) if handle != preparation.handle:
            # Much is ready at once.
            begun = replace(made, state=PreparationState.PROCESSING, handle=handle, begin_time=now)
            return replace(begun, expire_time=now + life, next_time=now)
        case Processing():
            return replace(made, next_time=now + _wait(preparation, now, again))
        case Ready(handle=handle):
            began = preparation.begin_time or now
            ready = replace(made, state=PreparationState.READY, handle=handle, begin_time=began)
            return replace(ready, expire_time=began + life, next_time=None, failures=0)
        case Void(reason=reason, message=message) if preparation.failures + 1 < MOST_FAILURES:
            return replace(
                _without_handle(preparation, PreparationState.PENDING, reason, message),
                failures=preparation.failures + 1,
                next_time=now + again,
            )
        case Void(reason=reason, message=message) | Unfit(reason=reason, message=message):
            refused = _without_handle(made, PreparationState.REFUSED, reason, message)
            return replace(refused, content_digest=digest, run=source.run, next_time=None, failures=0)
        case Delayed(message=message, retry_after=wait):
            later = now + (wait or _wait(preparation, now, again))
            return replace(preparation, error_message=message, next_time=later)
        case CredentialsInvalid(message=message):
            return replace(preparation, error_message=message, next_time=None)
    assert_never(answer)


def _wait(preparation: Preparation, now: datetime, again: timedelta) -> timedelta:
    """Returns the wait before the provider is asked again: half of the time that has passed, within bounds."""
    passed = now - preparation.begin_time if preparation.begin_time else timedelta(0)
    return min(max(again, passed / 2), max(_LONGEST_WAIT, again))


def _without_handle(preparation: Preparation, state: PreparationState, reason: str, message: str) -> Preparation:
    return replace(
        preparation,
        state=state,
        handle="",
        content_digest="",
        begin_time=None,
        expire_time=None,
        error_reason=reason,
        error_message=message,
    )
