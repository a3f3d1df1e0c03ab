"""Shifting slots by one seat each: to let one in, to move one among the others, and to close a gap.

Pinned slots and dispatched ones stay. Where nobody has named the slots, they shift among those of one category, so that
a time that a category keeps goes to a draft of that category.
"""

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from queue_service.domain.arrangement import Arrangement, Move, SeatedSlot, Snapshot, seated, slots_from
from queue_service.domain.seat import Seat
from queue_service.domain.slot import MoveReason


def let_in(slots: Sequence[SeatedSlot], free: Seat) -> tuple[Seat, tuple[Move, ...]]:
    """Returns the first seat of the slots, or the free one if that is earlier, and the moves that vacate it.

    The slots, in order, shift by one seat each; the free seat takes the last one before it.
    """
    chain = [slot for slot in slots if slot.time < free.time]
    first, *others = [*(slot.seat for slot in chain), free]
    return first, seated(zip(chain, others, strict=True), MoveReason.SHIFTED)


def close_gap(snapshot: Snapshot, gap: SeatedSlot, *, earliest: datetime) -> tuple[Move, ...]:
    """Returns the moves after `gap` has left its seat: the later slots move up by one.

    A seat that no slot can get any more, or whose time somebody chose, is no gap.
    """
    if gap.is_pinned or gap.time < earliest:
        return ()
    later = [
        slot
        for slot in slots_from(snapshot.shiftable, gap.time)
        if slot.category_id == gap.category_id and slot.slot_id != gap.slot_id
    ]
    seats = [gap.seat, *(slot.seat for slot in later)]
    return seated(zip(later, seats[:-1], strict=True), MoveReason.SHIFTED)


def shuffle(snapshot: Snapshot, seed: int) -> Arrangement:
    """Puts the slots that can shift into an order that depends on nothing but the seed and their ids."""
    by_category = defaultdict[str, list[SeatedSlot]](list)
    for slot in snapshot.shiftable:
        by_category[slot.category_id].append(slot)
    moves: list[Move] = []
    for slots in by_category.values():
        order = sorted(slots, key=lambda slot: hashlib.sha256(f"{seed} {slot.slot_id}".encode()).digest())
        seats = [slot.seat for slot in slots]
        moves += seated(zip(order, seats, strict=True), MoveReason.SHUFFLED)
    return Arrangement(moves=tuple(sorted(moves, key=lambda move: move.seat.time)))
