"""Destinations: the pages, chats, addresses and contacts inside accounts, and how well posts reach them.

The feed of an account itself is no destination. Failures are counted by the statement that settles posts, under the
lock of the destination's row.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from publisher_service.domain.post_job import Target
from servicekit.faults import Conflict, NotFound

MOST_FAILURES: Final = 5
"""This many refused sends in a row deactivate a destination."""


class DestinationState(StrEnum):
    ACTIVE = "ACTIVE"
    INACTIVE = "INACTIVE"


class DestinationReason(StrEnum):
    """The reason why a destination is inactive."""

    NONE = ""
    FAILURES = "FAILURES"
    BLOCKED_BY_PEER = "BLOCKED_BY_PEER"
    # By request.
    DEACTIVATED = "DEACTIVATED"


class Sign(StrEnum):
    """The word of an attempt, once it has ended, about the destination of its post."""

    NONE = ""
    SUCCESS = "SUCCESS"
    FAILURE = "FAILURE"
    PEER_BLOCK = "PEER_BLOCK"


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    organization_id: str
    target: Target
    # A `DestinationState` and a `DestinationReason`, or plain text that only a newer release knows.
    state: str
    state_reason: str = DestinationReason.NONE
    failures: int = 0
    error_message: str = ""
    last_success_time: datetime | None = None
    last_failure_time: datetime | None = None
    deactivate_time: datetime | None = None
    version: int = 1

    @property
    def etag(self) -> str:
        return str(self.version)


@dataclass(frozen=True, slots=True)
class Deactivation:
    """A destination that has become inactive. Without its name, which may be the address of a person."""

    organization_id: str
    social_account_id: str
    channel: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationChange:
    """A request to activate or deactivate a destination; an empty etag is no precondition."""

    organization_id: str
    target: Target
    state: DestinationState
    note: str = ""
    etag: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationFilter:
    """Selects destinations of an organization; empty fields admit all."""

    organization_id: str
    social_account_id: str = ""
    states: tuple[DestinationState, ...] = ()


def activated(known: Destination | None, target: Target, *, etag: str) -> Destination:
    """Returns the destination active and without failures. Raises DESTINATION_NOT_FOUND or ETAG_MISMATCH."""
    if known is None:
        raise NotFound("DESTINATION_NOT_FOUND", "there is no such destination", metadata=_names(target))
    _require_etag(known, etag)
    return replace(
        known,
        state=DestinationState.ACTIVE,
        state_reason=DestinationReason.NONE,
        failures=0,
        error_message="",
        deactivate_time=None,
        version=known.version + (known.state != DestinationState.ACTIVE),
    )


def deactivated(known: Destination | None, wanted: DestinationChange, *, now: datetime) -> Destination:
    """Returns the destination inactive by request; one that nothing was sent to yet is new. Raises ETAG_MISMATCH."""
    if known is None:
        known = Destination(
            organization_id=wanted.organization_id, target=wanted.target, state=DestinationState.ACTIVE, version=0
        )
    _require_etag(known, wanted.etag)
    if (known.state, known.state_reason) == (DestinationState.INACTIVE, DestinationReason.DEACTIVATED):
        return replace(known, error_message=wanted.note)
    return replace(
        known,
        state=DestinationState.INACTIVE,
        state_reason=DestinationReason.DEACTIVATED,
        error_message=wanted.note,
        deactivate_time=now,
        version=known.version + 1,
    )


def _require_etag(known: Destination, etag: str) -> None:
    if etag and etag != known.etag:
        raise Conflict(
            "ETAG_MISMATCH",
            "the destination has been changed since it was read",
            metadata=_names(known.target) | {"etag": known.etag},
        )


def _names(target: Target) -> dict[str, str]:
    return {
        "social_account_id": target.social_account_id,
        "channel": target.channel,
        "destination": target.destination,
    }
