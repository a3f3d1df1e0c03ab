"""Watching the queue of an account: what a watcher has been sent, and what it still has to be sent.

Changes are announced by events, which say what has changed; the newest state is read from the database. A change that
Publisher announces may be heard before Queue has stored it, so it stays pending until its version can be read, or until
Queue has applied all events up to it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from queue_service.domain.listing import Position
from queue_service.domain.queue_view import QueueView
from queue_service.domain.slot import QueueSlot, SlotState


class Change(NamedTuple):
    """The slot that has changed. Of a job it is the target, too: a report may settle a newer slot of the draft."""

    slot_id: str
    draft_id: str = ""
    channel: str = ""
    destination: str = ""


class QueueState(NamedTuple):
    """Holds what can change about a queue without an event: what it shows, and what moves the limits of its slots."""

    settings: str
    limits: str
    next_due_time: datetime | None
    is_held_up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The place that a watcher has reached.

    The events up to `sequence` have been taken into account. `low` is the time of the first slot that was SCHEDULED
    when dispatched ones were last looked for. While all live slots are being sent, `after` is the place of the last.
    """

    create_time: datetime
    sequence: int
    settings: str
    limits: str
    low: datetime | None
    after: Position | None = None

    def with_slot(self, slot: QueueSlot) -> "Mark":
        """A slot that was sent as SCHEDULED is looked for when it may be dispatched."""
        if slot.state is not SlotState.SCHEDULED or (self.low and self.low <= slot.schedule_time):
            return self
        return replace(self, low=slot.schedule_time)

    def advanced(self, create_time: datetime, sequence: int) -> "Mark":
        return replace(self, create_time=create_time, sequence=max(self.sequence, sequence))


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """A message to a watcher."""

    mark: Mark
    slot: QueueSlot | None = None
    view: QueueView | None = None
    is_caught_up: bool = False


class Announced(NamedTuple):
    """A pending change. It was announced by events from `first` on; `until` is the last that may have done so."""

    change: Change
    first: int
    until: int
    version: int
    tries: int = 0

    def is_stored(self, slots: Mapping[str, QueueSlot], heard: int) -> bool:
        """Returns whether the slots, as they were read, have the change."""
        if not self.version or self.until <= heard:
            return True
        slot = slots.get(self.change.slot_id)
        key = self.change.channel, self.change.destination
        return slot is not None and any(
            (each.channel, each.destination) == key and each.job_version >= self.version for each in slot.targets
        )


class Pending:
    """The changes that a watcher has not been sent yet, each once."""

    def __init__(self) -> None:
        self._changes: dict[Change, Announced] = {}

    def add(self, change: Change, *, first: int, until: int, version: int) -> None:
        known = self._changes.get(change)
        if known:
            first, version = min(first, known.first), max(version, known.version)
        self._changes[change] = Announced(change, first, until, version)

    @property
    def has_fresh(self) -> bool:
        return any(not each.tries for each in self._changes.values())

    @property
    def has_tried(self) -> bool:
        return any(each.tries for each in self._changes.values())

    def first(self, most: int, *, tried: bool) -> list[Announced]:
        """Returns the earliest of the changes that have been tried least often, or not at all."""
        wanted = (each for each in self._changes.values() if bool(each.tries) == tried)
        return sorted(wanted, key=lambda each: (each.tries, each.first))[:most]

    def settle(self, stored: Iterable[Announced], tried: Iterable[Announced]) -> None:
        """Forgets changes that are stored, and notes that others are not yet."""
        for each in stored:
            del self._changes[each.change]
        for each in tried:
            self._changes[each.change] = each._replace(tries=each.tries + 1)

    def safe(self, position: int) -> int:
        """Returns the sequence up to which nothing is pending, if all events up to the position have been heard."""
        return min((each.first - 1 for each in self._changes.values()), default=position)


def in_order(announced: Sequence[Announced], slots: Iterable[QueueSlot]) -> list[tuple[int, QueueSlot]]:
    """Returns those of the slots that a change concerns, with the sequence that announced it first, in its order."""
    firsts: dict[str, int] = {}
    for each in announced:
        for name in (each.change.slot_id, each.change.draft_id):
            if name:
                firsts[name] = min(firsts.get(name, each.first), each.first)
    found = ((firsts.get(slot.id) or firsts.get(slot.draft_id), slot) for slot in slots)
    return sorted(((first, slot) for first, slot in found if first), key=lambda each: each[0])
