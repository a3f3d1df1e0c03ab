"""Giving new times to slots that are late: when their queue is resumed, or because its late policy says so."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import assert_never

from queue_service.domain.arrangement import NO_CHANGE, Arrangement, Cancellation, Move, SeatedSlot, Snapshot, seated
from queue_service.domain.free_times import FreeTimes, paced, reseat
from queue_service.domain.slot import CancelReason, MoveReason
from servicekit.faults import Refused


class OverduePolicy(StrEnum):
    RESCHEDULE = "RESCHEDULE"
    PUBLISH_PACED = "PUBLISH_PACED"
    CANCEL = "CANCEL"


def resume(
    snapshot: Snapshot, policy: OverduePolicy, free: FreeTimes, *, now: datetime, notice: timedelta
) -> Arrangement:
    """Returns what becomes of the slots whose times have passed by `now`, in their order.

    Times that a caller or a draft chose have passed, too: such slots get slot times like all others.
    """
    overdue = [slot for slot in snapshot.scheduled if slot.time <= now]
    if not overdue:
        return NO_CHANGE
    first = snapshot.queue.late_policy.first_time(now, notice)
    match policy:
        case OverduePolicy.RESCHEDULE:
            return Arrangement(moves=_reseated(overdue, free, MoveReason.RESUMED, start=now + notice))
        case OverduePolicy.PUBLISH_PACED:
            return Arrangement(moves=_paced(snapshot, overdue, MoveReason.RESUMED, start=first))
        case OverduePolicy.CANCEL:
            return Arrangement(cancellations=tuple(Cancellation(slot, CancelReason.OVERDUE) for slot in overdue))
        case _:
            assert_never(policy)


def reslot(snapshot: Snapshot, free: FreeTimes | None, *, now: datetime, notice: timedelta) -> Arrangement:
    """Moves the slots that are later than the grace of their queue to the next free slot times.

    Without such times, or if Schedule cannot be asked for them (`free` is None), they go out now, one after the other,
    at the pace of the queue.
    """
    policy = snapshot.queue.late_policy
    latest, first = now - policy.grace, policy.first_time(now, notice)
    late = [slot for slot in snapshot.scheduled if slot.time < latest]
    if not late:
        return NO_CHANGE
    try:
        if free is not None:
            return Arrangement(moves=_reseated(late, free, MoveReason.LATE, start=now + notice))
    except Refused:
        pass
    return Arrangement(moves=_paced(snapshot, late, MoveReason.LATE, start=first))


def _reseated(slots: Sequence[SeatedSlot], free: FreeTimes, reason: MoveReason, *, start: datetime) -> tuple[Move, ...]:
    return seated(reseat(slots, free, start=start), reason)


def _paced(snapshot: Snapshot, slots: Sequence[SeatedSlot], reason: MoveReason, *, start: datetime) -> tuple[Move, ...]:
    named = {slot.slot_id for slot in slots}
    others = [slot.time for slot in snapshot.slots if slot.slot_id not in named]
    queue = snapshot.queue
    return seated(paced(slots, others, queue.time_zone, first=start, pace=queue.pace), reason)
