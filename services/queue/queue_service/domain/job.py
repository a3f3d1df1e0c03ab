"""The states of a post job, which sends one target of one draft, as Publisher announces them."""

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
# Publisher has stored the command.
ANSWERED = frozenset(JobState) - {JobState.PENDING, JobState.SCHEDULED}
# An attempt is open, or begins without another command.
UNDER_WAY = ANSWERED - ENDED
# Only a person can start another run of the job, no matter which slot it was sent for.
FINAL = frozenset({JobState.PUBLISHED, JobState.NEEDS_ATTENTION})
# A new time of their slot is not announced to them: Publisher would begin another run of those that failed.
KEPT = ENDED - {JobState.CANCELED}
# The reason of a CANCELED job that CancelPostJobs has taken back: its slot may send the target again.
TAKEN_BACK = "TAKEN_BACK"
