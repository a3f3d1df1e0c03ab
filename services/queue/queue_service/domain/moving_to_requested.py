"""Moving slots of one account to the times that their drafts ask for now."""

from collections.abc import Sequence

from queue_service.domain.arrangement import Arrangement, Move, Snapshot
from queue_service.domain.requested_time import RefusedTime, Request, slot_taken
from queue_service.domain.seat import seat_at
from queue_service.domain.slot import SPACING, MoveReason, SlotOrigin


def move_to_requested(
    snapshot: Snapshot, requests: Sequence[Request], *, release: str
) -> tuple[Arrangement, list[RefusedTime]]:
    """Moves the slots of the requests' drafts, one after another, and refuses times that are taken.

    A slot that has ended since, or is no longer the draft's own, stays. `release` is the tzdata release of the process.
    """
    times = {slot.slot_id: slot.time for slot in snapshot.slots}
    movable = {slot.draft_id: slot for slot in snapshot.scheduled if slot.seat.origin is SlotOrigin.DRAFT}
    moves: list[Move] = []
    refused: list[RefusedTime] = []
    for request in requests:
        slot = movable.get(request.draft[1])
        if slot is None:
            continue
        others = (time for slot_id, time in times.items() if slot_id != slot.slot_id)
        if any(abs(time - request.schedule_time) < SPACING for time in others):
            refused.append(slot_taken(request))
            continue
        zone = snapshot.queue.time_zone
        seat = seat_at(request.schedule_time, SlotOrigin.DRAFT, zone, tzdata_version=release)
        moves.append(Move(slot, seat, MoveReason.DRAFT_TIME))
        times[slot.slot_id] = request.schedule_time
    return Arrangement(moves=tuple(moves)), refused
