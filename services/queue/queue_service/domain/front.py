"""Putting a draft at the front of a queue: it goes out at the next slot time, and those there shift."""

from datetime import datetime

from queue_service.domain.arrangement import Arrangement, Snapshot, slots_from
from queue_service.domain.free_times import FreeTimes, Head
from queue_service.domain.openings import Lack
from queue_service.domain.schedule_check import shortage
from queue_service.domain.shifting import let_in


def put_in_front(snapshot: Snapshot, free: FreeTimes, category: str = "", *, earliest: datetime) -> Arrangement:
    """Returns a seat for a draft at the first slot time of its category from `earliest` on, and the shifts for it.

    Like a draft that is added to the end, it gets a time that no category keeps if none of its category is free. As
    only the first free time is filled, a daily cap holds after this if it held before.
    """
    for name in dict.fromkeys((category, "")):
        if head := free.head(name, earliest):
            return _let_in_at(head, snapshot, free, name)
    raise shortage({snapshot.queue.social_account_id: Lack.NONE})


def _let_in_at(head: Head, snapshot: Snapshot, free: FreeTimes, category: str) -> Arrangement:
    shiftable = snapshot.shiftable
    held = {slot.time for slot in shiftable}
    # Times of slots that stay, skipped times, and times of days that are full are not given away.
    first = next((time for time in head.filled if time in held), None)
    if first is None:
        return Arrangement(additions=(head.free,))
    times = set(head.filled)
    # A slot of the category whose time is none of these has it from an older schedule, or from a new order.
    line = [slot for slot in slots_from(shiftable, first) if slot.time in times or slot.category_id == category]
    _, moves = let_in(line, head.free)
    return Arrangement(moves=moves, additions=(free.seat_of(category, first),))
