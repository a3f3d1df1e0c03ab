"""Putting several drafts at the front of a queue, on a snapshot: one after the other, as their calls would."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from queue_service.domain.arrangement import Arrangement, SeatedSlot, Snapshot, seated, slots_from
from queue_service.domain.free_times import FreeTimes, Line
from queue_service.domain.front import put_in_front
from queue_service.domain.openings import Lack
from queue_service.domain.schedule_check import ReadTimes, shortage
from queue_service.domain.seat import Seat
from queue_service.domain.slot import MoveReason, SlotState


class ManyInFront:
    """The queue of a snapshot with the drafts of one category that have been put at its front so far."""

    def __init__(self, snapshot: Snapshot, read: ReadTimes, category: str, *, earliest: datetime) -> None:
        self._before = snapshot
        self._now = snapshot
        self._read = read
        self._category = category
        self._earliest = earliest
        self._new: list[str] = []

    def put(self, most: int) -> int:
        """Puts drafts, each before those that are there. Returns how many: at least one, and mostly all of them."""
        for name in dict.fromkeys((self._category, "")):
            line = FreeTimes(self._now, self._read).line(name, self._earliest, most)
            if line.free:
                return self._put_in(line, name)
        raise shortage({self._before.queue.social_account_id: Lack.NONE})

    @property
    def arrangement(self) -> Arrangement:
        """Returns what all of them have done together."""
        seats = {slot.slot_id: slot.seat for slot in self._now.slots}
        moves = seated([(slot, seats[slot.slot_id]) for slot in self._before.slots], MoveReason.SHIFTED)
        return Arrangement(moves=moves, additions=tuple(seats[name] for name in self._new))

    def _put_in(self, line: Line, category: str) -> int:
        free = FreeTimes(self._now, self._read)
        chain = _chain(self._now.shiftable, line, category)
        if _is_regular(chain, line, category):
            self._apply(_put_all(chain, line, free, category))
            return len(line.free)
        self._apply(put_in_front(self._now, free, self._category, earliest=self._earliest))
        return 1

    def _apply(self, found: Arrangement) -> None:
        seats = {move.slot.slot_id: move.seat for move in found.moves}
        slots = [slot._replace(seat=seats.get(slot.slot_id, slot.seat)) for slot in self._now.slots]
        for seat in found.additions:
            # No id of a slot looks like this.
            self._new.append(f"new {len(self._new)}")
            slots.append(SeatedSlot(self._new[-1], "", SlotState.SCHEDULED, seat, self._category))
        self._now = replace(self._now, slots=tuple(sorted(slots, key=lambda slot: slot.time)))


def _chain(shiftable: list[SeatedSlot], line: Line, category: str) -> list[SeatedSlot]:
    """Returns the slots that shift when the free seats are taken one after the other, as `put_in_front` does."""
    held = {slot.time for slot in shiftable}
    times, end = set(line.times), line.free[-1].time
    first = next((time for time in line.times if time in held and time < line.free[0].time), line.free[0].time)
    return [
        slot
        for slot in slots_from(shiftable, first)
        if slot.time < end and (slot.time in times or slot.category_id == category)
    ]


def _is_regular(chain: Sequence[SeatedSlot], line: Line, category: str) -> bool:
    """Returns whether each of the slots shifts each time.

    One of another category stops to do so once it gets a time that is not of the line.
    """
    times = set(line.times)
    return all(slot.time in times for slot in chain) or all(slot.category_id == category for slot in chain)


def _put_all(chain: Sequence[SeatedSlot], line: Line, free: FreeTimes, category: str) -> Arrangement:
    """Gives the seats of the chain and the free ones to the drafts, the last one first, and then to the chain."""
    seats: list[Seat] = sorted([*(slot.seat for slot in chain), *line.free], key=lambda seat: seat.time)
    if chain and seats[0] is chain[0].seat:
        seats[0] = free.seat_of(category, seats[0].time)
    new = len(line.free)
    return Arrangement(
        moves=seated(zip(chain, seats[new:], strict=True), MoveReason.SHIFTED), additions=tuple(seats[:new])
    )
