"""Taking slots out of a queue."""

from datetime import datetime

from queue_service.domain.arrangement import Arrangement, Cancellation, SeatedSlot, Snapshot
from queue_service.domain.shifting import close_gap
from queue_service.domain.slot import CancelReason


def remove(snapshot: Snapshot, slot: SeatedSlot, *, closing: bool, earliest: datetime) -> Arrangement:
    """Cancels a SCHEDULED slot. With `closing` the later ones move up, unless that gives a time before `earliest`."""
    moves = close_gap(snapshot, slot, earliest=earliest) if closing else ()
    return Arrangement(moves=moves, cancellations=(Cancellation(slot, CancelReason.REMOVED),))


def clear(snapshot: Snapshot) -> Arrangement:
    """Cancels every SCHEDULED slot."""
    return Arrangement(cancellations=tuple(Cancellation(slot, CancelReason.CLEARED) for slot in snapshot.scheduled))
