"""Plans: what a change would do to a queue.

The functions that decide for the change itself decide here, about a snapshot that nobody has locked.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, assert_never

from queue_service.domain.appending import append
from queue_service.domain.arrangement import NO_CHANGE, Arrangement, SeatedSlot, Snapshot
from queue_service.domain.free_times import FreeTimes
from queue_service.domain.many_in_front import ManyInFront
from queue_service.domain.moving import move
from queue_service.domain.planned_change import (
    DecidedAtOnce,
    PlannedAdditions,
    PlannedChange,
    PlannedClearing,
    PlannedInFront,
    PlannedMove,
    PlannedPause,
    PlannedRemoval,
    PlannedResumption,
    PlannedSchedule,
    PlannedShuffle,
)
from queue_service.domain.policy import Policy
from queue_service.domain.removing import clear, remove
from queue_service.domain.reordering import Order, check_order, reorder
from queue_service.domain.rescheduling import Timetable, reschedule
from queue_service.domain.resuming import resume
from queue_service.domain.schedule_check import ReadTimes
from queue_service.domain.seat import Seat
from queue_service.domain.shifting import shuffle
from queue_service.domain.slot import HORIZON, SlotState
from queue_service.domain.take_back import slot_not_found, slot_not_live
from servicekit.faults import InvalidField


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """Everything that a decision depends on but the change itself."""

    snapshot: Snapshot
    now: datetime
    policy: Policy
    # The slot times that were read, if any were.
    read: ReadTimes | None = None
    # The states of ended slots that the change names, by the names that it uses.
    ended: Mapping[str, SlotState]
    # The account's schedule, if the change is about that.
    timetable: Timetable | None = None

    @property
    def earliest(self) -> datetime:
        return self.now + self.policy.notice


class PlannedSlot(NamedTuple):
    """A slot before and after a change: a new one has no ids and no time before, a canceled one no seat after it."""

    slot_id: str
    draft_id: str
    previous_time: datetime | None
    seat: Seat | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The slots that a change touches, in the order of their new times, canceled ones last."""

    slots: tuple[PlannedSlot, ...]
    unchanged: int
    etag: str
    time: datetime


def check_change(change: PlannedChange) -> None:
    if isinstance(change, Order):
        check_order(change)


def front(change: PlannedInFront, basis: Basis) -> ManyInFront:
    """Returns the queue as it is before the drafts are put in front, which may take longer than other decisions."""
    return ManyInFront(basis.snapshot, _require_read(basis), change.category, earliest=basis.earliest)


def decide(change: DecidedAtOnce, basis: Basis) -> Arrangement:
    """Returns what the change would do. Dispatched slots that it concerns are taken to be given back by Publisher."""
    snapshot, now, notice = basis.snapshot, basis.now, basis.policy.notice
    match change:
        case PlannedAdditions(count=count, category=category):
            return append(snapshot, _require_read(basis), count, category, earliest=basis.earliest)
        case PlannedSchedule():
            assert basis.timetable is not None
            return reschedule(snapshot, basis.timetable.changed(change), now=now, notice=notice)
        case Order():
            return reorder(snapshot, change, basis.ended)
        case PlannedClearing():
            return clear(snapshot.taken_back())
        case PlannedShuffle(seed=seed):
            return shuffle(snapshot, seed)
        case PlannedPause():
            return _pause(change, basis)
        case PlannedResumption(overdue=overdue):
            if snapshot.queue.pause_time is None:
                return NO_CHANGE
            return resume(snapshot, overdue, FreeTimes(snapshot, basis.read), now=now, notice=notice)
        case PlannedRemoval() | PlannedMove():
            return _rearrange(change, basis)
        case _:
            assert_never(change)


def plan(snapshot: Snapshot, arrangement: Arrangement, *, now: datetime) -> Plan:
    """Shows an arrangement as the times of the slots before and after it."""
    moved = [
        PlannedSlot(each.slot.slot_id, each.slot.draft_id, each.slot.time, each.seat)
        for each in arrangement.moves
        if each.seat.time != each.slot.time
    ]
    new = [PlannedSlot("", "", None, seat) for seat in arrangement.additions]
    canceled = [
        PlannedSlot(each.slot.slot_id, each.slot.draft_id, each.slot.time, None) for each in arrangement.cancellations
    ]
    return Plan(
        slots=(*sorted([*moved, *new], key=_new_time), *canceled),
        unchanged=len(snapshot.slots) - len(moved) - len(canceled),
        etag=snapshot.queue.etag,
        time=now,
    )


def _new_time(slot: PlannedSlot) -> datetime:
    assert slot.seat is not None
    return slot.seat.time


def _require_read(basis: Basis) -> ReadTimes:
    assert basis.read is not None
    return basis.read


def _pause(change: PlannedPause, basis: Basis) -> Arrangement:
    """A pause takes the dispatched slots back, so that they may be overdue, too, when it ends."""
    if change.until <= basis.now:
        raise InvalidField("until", "is not in the future")
    if change.until > basis.now + HORIZON:
        raise InvalidField("until", f"is more than {HORIZON.days} days ahead")
    snapshot = basis.snapshot.taken_back()
    free = FreeTimes(snapshot, basis.read)
    return resume(snapshot, change.overdue, free, now=change.until, notice=basis.policy.notice)


def _rearrange(change: PlannedRemoval | PlannedMove, basis: Basis) -> Arrangement:
    """Removes or moves one slot."""
    if isinstance(change, PlannedRemoval) and basis.ended.get(change.slot_id) is SlotState.CANCELED:
        return NO_CHANGE
    snapshot = basis.snapshot.taken_back({change.slot_id})
    slot = _require_live(change.slot_id, snapshot, basis)
    if isinstance(change, PlannedRemoval):
        return remove(snapshot, slot, closing=change.close_gap, earliest=basis.earliest)
    free = FreeTimes(snapshot, basis.read)
    return move(snapshot, slot, change.destination, free, now=basis.now, earliest=basis.earliest)


def _require_live(slot_id: str, snapshot: Snapshot, basis: Basis) -> SeatedSlot:
    if slot := snapshot.find(slot_id):
        return slot
    if state := basis.ended.get(slot_id):
        raise slot_not_live(slot_id, state)
    raise slot_not_found(slot_id)
