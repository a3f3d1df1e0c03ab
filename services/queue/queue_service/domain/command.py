"""When the commands of a slot are sent to Publisher, and sent again.

The stream may lose anything, so a slot that was handed over is emitted again until Publisher has given a durable
answer for each of its targets; after that only now and then, so that nothing is stuck for ever.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol, TypeVar

from queue_service.domain.job import ANSWERED, ENDED, JobState

# Counted from the slot's time (from the emission, when that is later): before the first repetition, the second, ...
REPEAT_DELAYS = tuple(timedelta(seconds=pause) for pause in (4, 8, 16, 30, 60, 120, 300))
ANSWERED_DELAY = timedelta(minutes=5)
# From the latest time on a slot is asked for at growing intervals, from ANSWERED_DELAY up to this one. Publisher ends
# every command then, so the slot waits for a report that was lost, or for a Publisher that is away.
LONGEST_DELAY = timedelta(hours=1)
# A slot that has not ended so long after its latest time is overdue.
OVERDUE_GRACE = timedelta(minutes=5)
# Before an account is looked at again that has as many slots open as it may have.
HELD_DELAY = timedelta(seconds=1)
# The stream has said that it did not take a command, or has said nothing.
UNSTORED_DELAY = timedelta(seconds=1)


class Command(NamedTuple):
    """One command: please send this target at that instant. A tuple, because every post makes one."""

    organization_id: str
    slot_id: str
    revision: int
    emission: int
    draft_id: str
    social_account_id: str
    channel: str
    destination: str
    schedule_time: datetime
    not_after: datetime
    content_revision: int
    traceparent: str
    # Which of two slots of a draft on an account is the newer.
    slot_sequence: int
    time_zone: str


class Addressee(Protocol):
    @property
    def job_state(self) -> JobState | str | None: ...


A = TypeVar("A", bound=Addressee)


def still_wanted(targets: Sequence[A]) -> Sequence[A]:
    """Of a slot's targets those that get a command: the ones without an answer, else the ones that have not ended."""
    if unanswered := [target for target in targets if target.job_state not in ANSWERED]:
        return unanswered
    return [target for target in targets if target.job_state not in ENDED]
