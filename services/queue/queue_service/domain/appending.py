"""Adding drafts to the end of a queue, on a snapshot: the search that gives them their slots, without a database."""

from bisect import bisect_right
from collections import Counter
from datetime import date, datetime
from itertools import repeat

from civil.days import local_day
from civil.zones import find_zone, tzdata_version
from queue_service.domain.allocation import Occupancy
from queue_service.domain.arrangement import Arrangement, Snapshot
from queue_service.domain.openings import Lack, Opening, Openings
from queue_service.domain.schedule_check import ReadTimes, shortage, usable
from queue_service.domain.seat import Seat, seat_at
from queue_service.domain.slot import SPACING, SlotOrigin

_WINDOW = 512


def append(snapshot: Snapshot, read: ReadTimes, count: int, category: str, *, earliest: datetime) -> Arrangement:
    """Gives so many new drafts of a category the next free times; the first of them uses up a pending skip."""
    queue = snapshot.queue
    openings = Openings(queue, usable(queue, read), earliest=earliest)
    openings.expect(repeat(category, count))
    occupied = _Occupied(snapshot)
    seats: list[Seat] = []
    while len(seats) < count:
        found = openings.find(category)
        if found is Lack.LOOK:
            openings.learn(occupied.at(openings.window(_WINDOW)))
        elif isinstance(found, Lack):
            raise shortage({queue.social_account_id: found})
        else:
            openings.take(found)
            seats.append(_seat(found, queue.time_zone))
    return Arrangement(additions=tuple(seats))


class _Occupied:
    """The slots of a snapshot, as they make times unavailable."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._times = [slot.time for slot in snapshot.slots]
        self._counted = Counter[date]()
        if snapshot.queue.max_posts_per_day:
            zone = find_zone(snapshot.queue.time_zone)
            self._counted.update(local_day(time, zone) for time in (*self._times, *snapshot.counted))

    def at(self, window: tuple[datetime, ...]) -> Occupancy:
        return Occupancy(filled={time for time in window if self._is_filled(time)}, counted=self._counted)

    def _is_filled(self, time: datetime) -> bool:
        nearest = bisect_right(self._times, time - SPACING)
        return nearest < len(self._times) and self._times[nearest] < time + SPACING


def _seat(found: Opening, time_zone: str) -> Seat:
    release = min(found.tzdata_version, tzdata_version())
    return seat_at(found.time, SlotOrigin.QUEUE, time_zone, nominal=found.nominal, tzdata_version=release)
