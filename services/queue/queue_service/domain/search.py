"""The search for the next free slot time of one account, window by window."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from queue_service.domain.account import AccountQueue
from queue_service.domain.allocation import Occupancy, first_free
from queue_service.domain.frontier import Frontier
from queue_service.domain.slot import SPACING
from queue_service.domain.slot_times import SlotTimes

_JUST_AFTER = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A search for a free time of one account. `frontier` is what it has learned so far; `found` ends it."""

    queue: AccountQueue
    times: SlotTimes
    earliest: datetime
    frontier: Frontier
    found: datetime | None = None

    @property
    def start(self) -> datetime:
        return self.frontier.next_open(self.earliest)

    @property
    def is_exhausted(self) -> bool:
        """Returns whether there is no free time within the horizon."""
        return self.times.last and self.start >= self.times.until

    @property
    def can_continue(self) -> bool:
        """Returns whether to search another window; False if more slot times have to be read first."""
        return self.found is None and self.times.covers(self.start)

    def window(self, size: int) -> tuple[datetime, ...]:
        """Returns the next times to search; none if the next stretch that is known to be full begins before them."""
        return tuple(time for time in self.times.window(self.start, size) if time < self._stop)

    def looked(self, window: tuple[datetime, ...], occupancy: Occupancy) -> "Search":
        queue = self.queue
        free = first_free(window, occupancy, cap=queue.max_posts_per_day, time_zone=queue.time_zone)
        if free is not None:
            return replace(self, found=free, frontier=self.frontier.passed(free))
        return replace(self, frontier=self.frontier.passed(window[-1] + _JUST_AFTER if window else self._stop))

    def taken(self) -> Frontier:
        """Returns the frontier after a slot has taken the time found."""
        assert self.found is not None
        return self.frontier.passed(self.found + SPACING)

    @property
    def _stop(self) -> datetime:
        full_from = self.frontier.full_from
        return min(full_from, self.times.until) if self.start < full_from else self.times.until
