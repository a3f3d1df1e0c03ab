"""Taking slots out of a queue."""

from datetime import datetime

from queue_service.domain.arrangement import NO_CHANGE, Arrangement, Cancellation, SeatedSlot, Snapshot
from queue_service.domain.shifting import close_gap
from queue_service.domain.slot import COUNTED, SPACING, CancelReason, QueueSlot, SlotState
from queue_service.domain.take_back import came_too_late


def remove(snapshot: Snapshot, slot: SeatedSlot, *, closing: bool, earliest: datetime) -> Arrangement:
    """Cancels a SCHEDULED slot. With `closing` the later ones move up, unless that gives a time before `earliest`."""
    require_unsent(slot)
    moves = close_gap(snapshot, slot, earliest=earliest) if closing else ()
    return Arrangement(moves=moves, cancellations=(Cancellation(slot, CancelReason.REMOVED),))


def close_left_gap(snapshot: Snapshot, gap: SeatedSlot, *, earliest: datetime) -> Arrangement:
    """Moves the later slots up after a slot that was taken back and canceled; not if another one has its time now."""
    if any(abs(slot.time - gap.time) < SPACING for slot in snapshot.slots):
        return NO_CHANGE
    return Arrangement(moves=close_gap(snapshot, gap, earliest=earliest))


_TOO_LATE = COUNTED - {SlotState.SCHEDULED}


def is_too_late(slot: QueueSlot) -> bool:
    """Returns whether a slot that should have been taken back is being sent, may be out, or is out."""
    return slot.state in _TOO_LATE


def require_unsent(slot: SeatedSlot) -> None:
    """Refuses to change a slot whose post is sent at once; Publisher does not give it back."""
    if slot.sent_job_id:
        raise came_too_late(slot.slot_id, slot.sent_job_id)


def clear(snapshot: Snapshot) -> Arrangement:
    """Cancels every SCHEDULED slot."""
    return Arrangement(cancellations=tuple(Cancellation(slot, CancelReason.CLEARED) for slot in snapshot.scheduled))
