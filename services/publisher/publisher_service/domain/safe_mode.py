"""The safe mode: Publisher runs on an older database, and publishes nothing that may be out."""

from datetime import datetime, timedelta
from enum import StrEnum

from servicekit.record import record


class SafeModeReason(StrEnum):
    # The database lacks what a mark in NATS names.
    MARK_AHEAD = "MARK_AHEAD"
    # A command knows a newer version of a post job.
    COMMAND_AHEAD = "COMMAND_AHEAD"
    # NATS has no marks, and no process has been at work on the database for a while: nothing tells how old it is.
    MARKS_LOST = "MARKS_LOST"


class Step(StrEnum):
    """The next part of the reconciliation, in this order."""

    # The events since the copy are applied again.
    EVENTS = "EVENTS"
    # Post jobs that may have been sent since are put in doubt.
    JOBS = "JOBS"
    # Versions are raised above what others have seen, and Queue is asked for its commands.
    VERSIONS = "VERSIONS"
    # What is in doubt is looked up.
    LOOKS = "LOOKS"


class Kind(StrEnum):
    """The lot of a post job in a reconciliation."""

    # It may have been sent: it is looked up.
    DOUBT = "DOUBT"
    # It is as an event since the copy shows it.
    TAKEN_OVER = "TAKEN_OVER"
    # The copy did not have it.
    RECREATED = "RECREATED"


@record(frozen=True, slots=True, kw_only=True)
class Summary:
    open: int
    published: int
    absent: int
    needs_attention: int
    recreated: int
    untouched: int


# Between a claim and its mark in NATS lie milliseconds; between two heartbeats, seconds.
_LEAD = timedelta(seconds=30)


@record(frozen=True, slots=True, kw_only=True)
class SafeMode:
    number: int
    active: bool
    reason: str
    enter_time: datetime
    restored_time: datetime | None
    mark_time: datetime | None
    leave_time: datetime | None
    left_by: str
    step: Step
    # Where the step goes on.
    place: str
    untouched: int

    @property
    def doubt_until(self) -> datetime:
        """Posts that were due until then may have been sent since the copy."""
        return self.enter_time if self.mark_time is None else min(self.enter_time, self.mark_time + _LEAD)
