"""The free slot times of one account, in the order in which drafts take them, as far as they have been looked at.

A weekly slot may be kept for drafts of a category. So an account has a line of slot times without a category, and one
for each category. A draft of a category takes a time of the first line only when its own line has no free time.
"""

from bisect import bisect_left, insort
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta
from enum import StrEnum
from itertools import islice

from civil.days import local_day
from civil.zones import find_zone
from queue_service.domain.account import AccountQueue
from queue_service.domain.allocation import Occupancy
from queue_service.domain.frontier import Frontier
from queue_service.domain.slot import SPACING
from queue_service.domain.slot_times import SlotTimes
from servicekit.record import record

_JUST_AFTER = timedelta(microseconds=1)


class Lack(StrEnum):
    """The reason why the next free time is not known."""

    # The slots near the next times have to be looked up.
    LOOK = "LOOK"
    # More slot times have to be read from Schedule.
    MORE = "MORE"
    # The slot times have to be read again: they begin too late, or those of the category are missing.
    AGAIN = "AGAIN"
    # No time is free within the horizon.
    NONE = "NONE"


@record(frozen=True, slots=True, kw_only=True)
class Opening:
    """A free slot time. `skipped` is the one before it that a pending skip leaves empty."""

    time: datetime
    # The category whose line it is in.
    category: str
    nominal: datetime | None
    tzdata_version: str
    skipped: datetime | None = None


class Openings:
    """The free slot times of a locked account. Each that is taken, and each new slot, counts for those after it."""

    def __init__(self, queue: AccountQueue, times: Mapping[str, SlotTimes], *, earliest: datetime) -> None:
        """`times` has the slot times by category, those without one under the empty string."""
        self._queue = queue
        self._earliest = earliest
        self._lines = {category: _Line(read, queue.frontier_of(category), earliest) for category, read in times.items()}
        self._skip_next = queue.skip_next
        self._skipped = tuple(time for time in queue.skipped_times if time >= earliest)
        self._zone = find_zone(queue.time_zone) if queue.max_posts_per_day else None
        self._counted: dict[date, int] = {}
        self._added: list[datetime] = []
        self._added_on = Counter[date]()

    def find(self, category: str = "", *, at_end: bool = True) -> Opening | Lack:
        """Returns the time that the next draft of the category gets; it stays free until it is taken.

        Only a draft that is added to the end uses a pending skip.
        """
        found = self._first(category, without=None)
        if isinstance(found, Lack) or not (at_end and self._skip_next):
            return found
        following = self._first(category, without=found.time)
        return following if isinstance(following, Lack) else replace(following, skipped=found.time)

    def take(self, opening: Opening) -> None:
        """Puts a new slot on the time."""
        self.fill(opening.time)
        self._lines[opening.category].pass_over(opening.time)
        if opening.skipped:
            self._skip_next = False
            self._skipped = (*self._skipped, opening.skipped)

    def fill(self, time: datetime) -> None:
        """Records a new slot at any time."""
        insort(self._added, time)
        if self._zone:
            self._added_on[local_day(time, self._zone)] += 1

    def expect(self, categories: Iterable[str]) -> None:
        """Says for which drafts, by their categories, times are needed, so that these are looked at together."""
        wanted = Counter(categories)
        for line in self._lines.values():
            line.wanted = 0
        for category, number in wanted.items():
            missing = self._lines[category].want(number) if category in self._lines else 0
            if category and missing and "" in self._lines:
                self._lines[""].want(missing)

    def window(self, size: int) -> tuple[datetime, ...]:
        """Returns the next times to look at."""
        return tuple(time for line in self._lines.values() for time in line.next_window(size))

    def learn(self, occupancy: Occupancy) -> None:
        """Learns which times of the last window are filled, and how many slots their days have."""
        self._counted |= occupancy.counted
        for line in self._lines.values():
            line.learn(occupancy)

    def updated(self, queue: AccountQueue) -> AccountQueue:
        """Returns the account with what it has to remember of this search."""
        for category, line in self._lines.items():
            if line.frontier != self._queue.frontier_of(category):
                queue = queue.with_frontier_of(category, line.frontier)
        return replace(queue, skip_next=self._skip_next, skipped_times=self._skipped)

    @property
    def has_skipped(self) -> bool:
        """Returns whether a draft has used the pending skip."""
        return self._skip_next != self._queue.skip_next

    @property
    def has_searched(self) -> bool:
        """Returns whether the frontiers have moved."""
        return any(line.frontier != self._queue.frontier_of(category) for category, line in self._lines.items())

    def _first(self, category: str, *, without: datetime | None) -> Opening | Lack:
        for name in dict.fromkeys((category, "")):
            if name not in self._lines:
                return Lack.AGAIN
            line = self._lines[name]
            found = line.first(self._is_open, without=without)
            if found:
                return Opening(
                    time=found,
                    category=name,
                    nominal=line.times.nominal_of(found),
                    tzdata_version=line.times.tzdata_version,
                )
            if (lack := line.lacks()) is not Lack.NONE:
                return lack
        return Lack.NONE

    def _is_open(self, time: datetime) -> bool:
        return time not in self._skipped and not self._is_near_a_new_slot(time) and self._is_below_the_cap(time)

    def _is_near_a_new_slot(self, time: datetime) -> bool:
        place = bisect_left(self._added, time)
        return any(abs(added - time) < SPACING for added in self._added[max(place - 1, 0) : place + 1])

    def _is_below_the_cap(self, time: datetime) -> bool:
        if self._zone is None:
            return True
        day = local_day(time, self._zone)
        return self._counted.get(day, 0) + self._added_on[day] < self._queue.max_posts_per_day


class _Line:
    """The slot times of one category. Those before `_position` have been looked at; free ones are kept."""

    def __init__(self, times: SlotTimes, frontier: Frontier, earliest: datetime) -> None:
        self.times = times
        self.frontier = frontier
        self.wanted = 0
        self._position = frontier.next_open(earliest)
        self._known = frontier
        self._free = deque[datetime]()
        self._looked: tuple[datetime, ...] | None = None
        self._is_empty = False

    def first(self, is_open: Callable[[datetime], bool], *, without: datetime | None) -> datetime | None:
        """Returns the first time that is open. A time that has been closed stays closed."""
        while self._free and not is_open(self._free[0]):
            self._free.popleft()
        if without is None or not self._free or self._free[0] != without:
            return self._free[0] if self._free else None
        return next((time for time in islice(self._free, 1, None) if is_open(time)), None)

    def lacks(self) -> Lack:
        """Returns why no more times are known. A page without a free time need not be read again."""
        self._is_empty = True
        if self._position < self.times.after:
            return Lack.AGAIN
        if self._position < self.times.until:
            return Lack.LOOK
        if self.times.last:
            return Lack.NONE
        if not self._free:
            self.frontier = self.frontier.passed(self._position)
        return Lack.MORE

    def want(self, number: int) -> int:
        """Asks for times for so many drafts. Returns how many of them the line cannot have."""
        self.wanted += number
        is_read = self._position >= self.times.until
        return max(self.wanted - len(self._free), 0) if is_read else 0

    def next_window(self, size: int) -> tuple[datetime, ...]:
        """Returns the next times to look at, up to the next stretch that is known to be full; none if it has enough."""
        has_enough = len(self._free) >= self.wanted and not self._is_empty
        if has_enough or not self.times.covers(self._position):
            self._looked = None
            return ()
        window = self.times.window(self._position, max(size, self.wanted + self.wanted // 8))
        self._looked = tuple(time for time in window if time < self._stop)
        return self._looked

    def learn(self, occupancy: Occupancy) -> None:
        if self._looked is None:
            return
        self._free += [time for time in self._looked if time not in occupancy.filled]
        self._position = self._known.next_open(self._looked[-1] + _JUST_AFTER if self._looked else self._stop)
        self._is_empty = False
        self._looked = None

    def pass_over(self, time: datetime) -> None:
        """Records that no time before the end of the minute after this one is free."""
        self.frontier = self.frontier.passed(time + SPACING)

    @property
    def _stop(self) -> datetime:
        full_from = self._known.full_from
        return min(full_from, self.times.until) if self._position < full_from else self.times.until
