"""The log of what an account did, by action and outcome: the truth about its sends."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from channels import Action
from publisher_service.domain.settlement import AttemptState
from servicekit.faults import InvalidField


class ActivityOutcome(StrEnum):
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    RATE_LIMITED = "RATE_LIMITED"
    # It may be out. A later activity of the run says what was found.
    UNKNOWN = "UNKNOWN"
    # It is not out after all.
    ABSENT = "ABSENT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    id: str
    post_job_id: str
    run: int
    # An `Action` and an `ActivityOutcome`, or plain text that only a newer release knows.
    action: str
    outcome: str
    create_time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityFilter:
    """Selects activities of an account; empty fields admit all."""

    organization_id: str
    account_id: str
    actions: tuple[Action, ...] = ()
    outcomes: tuple[ActivityOutcome, ...] = ()
    start_time: datetime | None = None
    end_time: datetime | None = None

    def __post_init__(self) -> None:
        if self.start_time and self.end_time and self.end_time <= self.start_time:
            raise InvalidField("end_time", "must be later than start_time")


MAY_HAVE_EFFECT = frozenset({AttemptState.SENDING, AttemptState.UNKNOWN, AttemptState.ACCEPTED})
"""States of an attempt whose post is out, is being sent or may be out: it counts as used."""


def outcome_of(before: str, after: AttemptState, error_reason: str) -> ActivityOutcome | None:
    """Returns what the end of an attempt adds to the log; None for one that was never sent, or says nothing new."""
    if after == before:
        return None
    match after:
        case AttemptState.ACCEPTED:
            return ActivityOutcome.SUCCESS
        case AttemptState.REJECTED:
            return ActivityOutcome.FAILED
        case AttemptState.UNKNOWN:
            return ActivityOutcome.UNKNOWN
        case AttemptState.ABSENT:
            return ActivityOutcome.ABSENT
        case AttemptState.NOT_SENT if before == AttemptState.UNKNOWN:
            return ActivityOutcome.ABSENT
        case AttemptState.NOT_SENT if error_reason == "RATE_LIMITED":
            return ActivityOutcome.RATE_LIMITED
        case _:
            return None
