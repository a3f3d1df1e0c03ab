"""The free slot times of an account, for decisions: one after the other, each given once."""

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from itertools import islice
from typing import NamedTuple

from civil.days import local_day
from civil.zones import DAY, Zone, find_zone, tzdata_version
from queue_service.domain.arrangement import SeatedSlot, Snapshot
from queue_service.domain.openings import Lack
from queue_service.domain.schedule_check import ReadAgain, ReadTimes, shortage, usable
from queue_service.domain.seat import Seat, seat_at
from queue_service.domain.slot import SPACING, SlotOrigin
from queue_service.domain.slot_times import SlotTimes


class MoreTimes(ReadAgain):
    """A decision needs slot times of a category that were not read: `at_least` so many, from `start` on."""

    def __init__(self, start: datetime, category: str, *, at_least: int = 0) -> None:
        super().__init__(needs_more=True, at_least=at_least)
        self.start = start
        self.category = category


class Head(NamedTuple):
    """The slot times of a category up to the first free one, and the seat there."""

    filled: Sequence[datetime]
    free: Seat


class Line(NamedTuple):
    """The slot times of a category up to the last of some free ones, and the seats there."""

    times: Sequence[datetime]
    free: Sequence[Seat]


class FreeTimes:
    """The free slot times of one account, as far as they have been read; `read` is None if nobody has asked.

    The slots in `leaving` do not fill the times that they have.
    """

    def __init__(self, snapshot: Snapshot, read: ReadTimes | None, *, leaving: Collection[SeatedSlot] = ()) -> None:
        self._snapshot = snapshot
        self._read = read
        self._leaving = leaving
        self._taken: _Taken | None = None

    def without(self, leaving: Collection[SeatedSlot]) -> "FreeTimes":
        return FreeTimes(self._snapshot, self._read, leaving=leaving)

    def seats(self, start: datetime, category: str = "") -> Iterator[Seat]:
        """Yields the free seats of a category from `start` on, then those that no category keeps, each in order.

        Raises why there is none, or no further one.
        """
        for name in dict.fromkeys((category, "")):
            yield from self._seats_of(name, start)
        raise shortage({self._snapshot.queue.social_account_id: Lack.NONE})

    def head(self, category: str, start: datetime) -> Head | None:
        """Takes the first free seat of one category from `start` on, and returns it with the times before it.

        Returns None if none is free.
        """
        slots = sum(slot.time >= start for slot in self._snapshot.slots)
        times = self._require_times(start, category, at_least=slots + 1)
        index = next(self._open(times, self._begin(start, category)), None)
        if index is not None:
            return Head(times.times[bisect_left(times.times, start) : index], self._seat(times, index))
        if not times.last:
            raise MoreTimes(start, category, at_least=slots + 1)
        return None

    def line(self, category: str, start: datetime, most: int) -> Line:
        """Takes the first free seats of one category from `start` on, at most so many."""
        times = self._require_times(start, category, at_least=most)
        free = list(islice(self._open(times, self._begin(start, category)), most))
        if len(free) < most and not times.last:
            raise MoreTimes(start, category, at_least=len(times.times) + most)
        last = free[-1] + 1 if free else 0
        return Line(times.times[bisect_left(times.times, start) : last], [self._seat(times, index) for index in free])

    def seat_of(self, category: str, time: datetime) -> Seat:
        """Returns the seat at a slot time, whether it is free or not."""
        times = self._require_times(time, category)
        return self._seat(times, bisect_left(times.times, time))

    def _seats_of(self, category: str, start: datetime) -> Iterator[Seat]:
        begin = self._begin(start, category)
        times = self._require_times(begin, category)
        for index in self._open(times, begin):
            yield self._seat(times, index)
        if not times.last:
            raise MoreTimes(begin, category)

    def _open(self, times: SlotTimes, begin: datetime) -> Iterator[int]:
        """Yields the places of the free times from `begin` on, each of which is taken then."""
        taken = self._taken = self._taken or _Taken(self._snapshot, self._leaving)
        for index in range(bisect_left(times.times, begin), len(times.times)):
            if taken.is_free(times.times[index]):
                taken.take(times.times[index])
                yield index

    def _seat(self, times: SlotTimes, index: int) -> Seat:
        return seat_at(
            times.times[index],
            SlotOrigin.QUEUE,
            self._snapshot.queue.time_zone,
            nominal=times.nominals[index],
            tzdata_version=min(times.tzdata_version, tzdata_version()),
        )

    def _begin(self, start: datetime, category: str) -> datetime:
        """Returns where the search begins: it skips what is known to be filled, unless a slot leaves its time there."""
        queue = self._snapshot.queue
        skipped_to = queue.frontier_of(category).next_open(start)
        margin = 2 * DAY if queue.max_posts_per_day else SPACING
        left = min((slot.time - margin for slot in self._leaving), default=skipped_to)
        return max(start, min(skipped_to, left))

    def _require_times(self, begin: datetime, category: str, *, at_least: int = 0) -> SlotTimes:
        read = None if self._read is None else usable(self._snapshot.queue, self._read)
        if read is None or category not in read or begin < read[category].after:
            raise MoreTimes(begin, category, at_least=at_least)
        return read[category]


class _Taken:
    """The instants at which an account's slots are, and how many of them count towards each day's cap."""

    def __init__(self, snapshot: Snapshot, leaving: Collection[SeatedSlot]) -> None:
        gone = {slot.slot_id for slot in leaving}
        live = [slot.time for slot in snapshot.slots if slot.slot_id not in gone]
        self._times = sorted([*live, *snapshot.queue.skipped_times])
        self._cap = snapshot.queue.max_posts_per_day
        self._zone: Zone = find_zone(snapshot.queue.time_zone)
        counted = [*live, *snapshot.counted] if self._cap else ()
        self._by_day = Counter[date](local_day(time, self._zone) for time in counted)

    def is_free(self, time: datetime) -> bool:
        nearest = bisect_right(self._times, time - SPACING)
        if nearest < len(self._times) and self._times[nearest] < time + SPACING:
            return False
        return not self._cap or self._by_day[local_day(time, self._zone)] < self._cap

    def take(self, time: datetime) -> None:
        insort(self._times, time)
        if self._cap:
            self._by_day[local_day(time, self._zone)] += 1


def reseat(slots: Iterable[SeatedSlot], free: FreeTimes, *, start: datetime) -> list[tuple[SeatedSlot, Seat]]:
    """Gives the slots, in their order, the next free seats from `start` on, each one of its category."""
    slots = tuple(slots)
    left = free.without(slots)
    seats = {category: left.seats(start, category) for category in {slot.category_id for slot in slots}}
    return [(slot, next(seats[slot.category_id])) for slot in slots]


def paced(
    slots: Iterable[SeatedSlot], others: Iterable[datetime], time_zone: str, *, first: datetime, pace: timedelta
) -> list[tuple[SeatedSlot, Seat]]:
    """Gives the slots times from `first` on, at least `pace` apart and a minute away from the `others`."""
    taken = sorted(others)
    placed: list[tuple[SeatedSlot, Seat]] = []
    time = first
    for slot in slots:
        time = _apart(time, taken)
        seat = seat_at(time, slot.seat.origin, time_zone, tzdata_version=tzdata_version())
        placed.append((slot, seat))
        time += pace
    return placed


def _apart(time: datetime, taken: list[datetime]) -> datetime:
    """Returns the first time from this one on that is at least a minute away from all of those taken."""
    near = bisect_right(taken, time - SPACING)
    while near < len(taken) and taken[near] < time + SPACING:
        time = taken[near] + SPACING
        near += 1
    return time
