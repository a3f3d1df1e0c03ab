"""Commands to Publisher, and when those of a slot are repeated.

The stream may lose any command, so the commands of a dispatched slot are repeated until Publisher has given a durable
answer for each target. After that they are repeated only every few minutes, in case the report of the end was lost.
A command that the stream still holds is not lost: Publisher has not come to it. Nor is a post that waits in a line of
its account while the line moves.
"""

from collections.abc import Iterable, Sequence
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
    # The newest version of the post job that Queue knows, and its state; 0 and empty if it knows none.
    job_version: int = 0
    job_state: str = ""


class SentCommand(NamedTuple):
    """Names the sequence under which the stream has stored a copy of a command."""

    organization_id: str
    slot_id: str
    emission: int
    channel: str
    destination: str
    sequence: int

    @property
    def copy_key(self) -> tuple[str, str, int]:
        return self.organization_id, self.slot_id, self.emission


class SentBatch(NamedTuple):
    """Commands that were sent together. `losses` counts the losses of the stream before that."""

    id: int
    losses: int
    first_sequence: int
    last_sequence: int
    commands: Sequence[SentCommand]


class DueSlot(NamedTuple):
    """A dispatched slot whose commands may have to be repeated."""

    organization_id: str
    slot_id: str
    emission: int
    next_emit_at: datetime
    not_after: datetime
    is_answered: bool

    @property
    def copy_key(self) -> tuple[str, str, int]:
        return self.organization_id, self.slot_id, self.emission


class PlaceInLine(NamedTuple):
    """A slot whose post waits at Publisher, and when the slots next to it in its account's line have ended."""

    slot: DueSlot
    social_account_id: str
    schedule_time: datetime
    update_time: datetime
    # When the last one before it ended, and the first one after it; None if none has.
    moved_time: datetime | None
    overtaken_time: datetime | None

    @property
    def account(self) -> tuple[str, str]:
        return self.slot.organization_id, self.social_account_id

    def moves(self, now: datetime) -> bool:
        """Returns whether posts before it have been sent lately."""
        return self.moved_time is not None and self.moved_time > now - ANSWERED_DELAY

    def is_in_turn(self, now: datetime) -> bool:
        """Returns whether the line moves towards the slot and has not passed it: its post waits as it should."""
        is_overtaken = self.overtaken_time is not None and self.overtaken_time > self.update_time
        return self.moves(now) and not is_overtaken


class Addressee(Protocol):
    @property
    def job_state(self) -> JobState | str | None: ...


A = TypeVar("A", bound=Addressee)


def last_in_lines(places: Iterable[PlaceInLine]) -> list[DueSlot]:
    """Returns the last slot of each account: it sees whether the line moves until the line has ended."""
    last = {each.account: each for each in sorted(places, key=lambda each: each.schedule_time)}
    return [each.slot for each in last.values()]


def still_wanted(targets: Sequence[A]) -> Sequence[A]:
    """Returns the targets that get a command: those without an answer, else those that have not ended."""
    if unanswered := [target for target in targets if target.job_state not in ANSWERED]:
        return unanswered
    return [target for target in targets if target.job_state not in ENDED]
