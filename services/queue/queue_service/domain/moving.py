"""Moving one slot of a queue: to the top, to the bottom, before another slot, or to a free time."""

from bisect import bisect_left
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, TypeAlias, assert_never

from civil.zones import tzdata_version
from queue_service.domain.arrangement import (
    NO_CHANGE,
    Arrangement,
    Move,
    SeatedSlot,
    Snapshot,
    seated,
    slots_from,
)
from queue_service.domain.booking import check_exact_time, slot_taken
from queue_service.domain.free_times import FreeTimes
from queue_service.domain.removing import require_unsent
from queue_service.domain.seat import seat_at
from queue_service.domain.shifting import let_in
from queue_service.domain.slot import SPACING, BlockingSlot, MoveReason, SlotOrigin
from servicekit.faults import InvalidField, NotFound, Refused


@dataclass(frozen=True, slots=True, kw_only=True)
class ToTop:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class ToBottom:
    pass


class Before(NamedTuple):
    slot_id: str


class ToTime(NamedTuple):
    time: datetime


Destination: TypeAlias = ToTop | ToBottom | Before | ToTime


def move(
    snapshot: Snapshot,
    slot: SeatedSlot,
    destination: Destination,
    free: FreeTimes,
    *,
    now: datetime,
    earliest: datetime,
) -> Arrangement:
    """Moves a SCHEDULED slot. New slot times are not before `earliest`."""
    require_unsent(slot)
    match destination:
        case ToTop():
            others = [each for each in snapshot.shiftable if each.slot_id != slot.slot_id]
            return _before(snapshot, slot, others[0], free, earliest) if others else NO_CHANGE
        case Before(slot_id=other):
            return _before(snapshot, slot, _require_mark(snapshot, slot, other), free, earliest)
        case ToBottom():
            return _to_bottom(snapshot, slot, free, earliest)
        case ToTime(time=time):
            return _to_time(snapshot, slot, time, now)
        case _:
            assert_never(destination)


def _before(snapshot: Snapshot, slot: SeatedSlot, mark: SeatedSlot, free: FreeTimes, earliest: datetime) -> Arrangement:
    shiftable = snapshot.shiftable
    would_move_up = any(slot.time < each.time < mark.time for each in shiftable)
    if not slot.can_shift or (would_move_up and slot.time < earliest):
        # It has no slot time to give, or one with which another slot would go out at once. So the slots shift until a
        # free one takes the last of them.
        absorbing = next(free.without([slot]).seats(max(mark.time, earliest)))
        seat, moves = let_in(slots_from(shiftable, mark.time), absorbing)
        return Arrangement(moves=(Move(slot, seat, MoveReason.MOVED), *moves))
    order = [each for each in shiftable if each.slot_id != slot.slot_id]
    order.insert(bisect_left(order, mark.time, key=lambda each: each.time), slot)
    seats = [each.seat for each in shiftable]
    moves = seated(zip(order, seats, strict=True), MoveReason.SHIFTED)
    return Arrangement(
        moves=tuple(each._replace(reason=MoveReason.MOVED) if each.slot is slot else each for each in moves)
    )


def _to_bottom(snapshot: Snapshot, slot: SeatedSlot, free: FreeTimes, earliest: datetime) -> Arrangement:
    others = [each for each in snapshot.slots if each.slot_id != slot.slot_id]
    last = max((each.time for each in others), default=earliest)
    if slot.can_shift and slot.time > last:
        return NO_CHANGE
    seat = next(free.without([slot]).seats(max(last, earliest), slot.category_id))
    return Arrangement(moves=seated([(slot, seat)], MoveReason.MOVED))


def _to_time(snapshot: Snapshot, slot: SeatedSlot, time: datetime, now: datetime) -> Arrangement:
    check_exact_time(time, now)
    if time == slot.time:
        return NO_CHANGE
    for other in snapshot.slots:
        if other.slot_id != slot.slot_id and abs(other.time - time) < SPACING:
            account = snapshot.queue.social_account_id
            blocking = BlockingSlot(slot_id=other.slot_id, social_account_id=account, schedule_time=other.time)
            raise slot_taken(blocking)
    seat = seat_at(time, SlotOrigin.EXACT, snapshot.queue.time_zone, tzdata_version=tzdata_version())
    return Arrangement(moves=(Move(slot, seat, MoveReason.MOVED),))


def _require_mark(snapshot: Snapshot, slot: SeatedSlot, slot_id: str) -> SeatedSlot:
    """Returns the slot to move before."""
    if slot_id == slot.slot_id:
        raise InvalidField("before_slot_id", "is the slot to move")
    mark = snapshot.find(slot_id)
    if mark is None:
        raise NotFound("SLOT_NOT_FOUND", f"the account has no live slot {slot_id}", metadata={"slot_id": slot_id})
    if not mark.can_shift:
        raise Refused(
            "SLOT_NOT_SCHEDULED",
            f"slot {slot_id} is dispatched, or somebody chose its time, so that nothing can be moved before it",
            metadata={"slot_id": slot_id, "draft_id": mark.draft_id, "state": mark.state},
        )
    return mark
