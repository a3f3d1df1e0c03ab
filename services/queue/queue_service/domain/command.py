"""Commands to Publisher, and when those of a slot are repeated.

The stream may lose any command, so the commands of a dispatched slot are repeated until Publisher has given a durable
answer for each target. After that they are repeated only every few minutes, in case the report of the end was lost.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol, TypeVar

from queue_service.domain.job import ANSWERED, ENDED, JobState

# Pauses before the first repeat, the second, ...; from the slot's time, or from the last copy if that is later.
REPEAT_DELAYS = tuple(timedelta(seconds=pause) for pause in (4, 8, 16, 30, 60, 120, 300))
ANSWERED_DELAY = timedelta(minutes=5)
# After a slot's latest time the pauses grow from ANSWERED_DELAY up to this one. Publisher ends every job then, so the
# slot waits for a report that was lost, or for a Publisher that is down.
LONGEST_DELAY = timedelta(hours=1)
# A slot that has not ended this long after its latest time is overdue.
OVERDUE_GRACE = timedelta(minutes=5)
# The pause before an account is checked again that has reached its limit of open slots.
HELD_DELAY = timedelta(seconds=1)
# The pause before the repeat of a command that the stream has refused or not acknowledged.
UNSTORED_DELAY = timedelta(seconds=1)


class Command(NamedTuple):
    """Asks Publisher to send one target at one instant. `emission` numbers the copies of a slot's commands.

    A tuple, because every post makes one, and frozen dataclasses cost three times as much to make.
    """

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
    # The newer of two slots of a draft on an account has the greater one.
    slot_sequence: int
    time_zone: str


class Addressee(Protocol):
    @property
    def job_state(self) -> JobState | str | None: ...


A = TypeVar("A", bound=Addressee)


def still_wanted(targets: Sequence[A]) -> Sequence[A]:
    """Returns the targets that get a command: those without an answer, else those that have not ended."""
    if unanswered := [target for target in targets if target.job_state not in ANSWERED]:
        return unanswered
    return [target for target in targets if target.job_state not in ENDED]
