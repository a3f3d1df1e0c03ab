"""What Publisher tells of a post job: one target of one draft."""

from enum import StrEnum


class JobState(StrEnum):
    PENDING = "PENDING"
    SCHEDULED = "SCHEDULED"
    READY = "READY"
    SENDING = "SENDING"
    WAITING = "WAITING"
    BLOCKED = "BLOCKED"
    UNKNOWN = "UNKNOWN"
    PUBLISHED = "PUBLISHED"
    FAILED = "FAILED"
    MISSED = "MISSED"
    CANCELED = "CANCELED"
    NEEDS_ATTENTION = "NEEDS_ATTENTION"


ENDED = frozenset({JobState.PUBLISHED, JobState.FAILED, JobState.MISSED, JobState.CANCELED, JobState.NEEDS_ATTENTION})
# The command has arrived and is written down over there.
ANSWERED = frozenset(JobState) - {JobState.PENDING, JobState.SCHEDULED}
# No later run of the job comes without a person, whatever slot it was that it went out with.
FINAL = frozenset({JobState.PUBLISHED, JobState.NEEDS_ATTENTION})
