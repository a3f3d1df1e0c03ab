"""The times of an account's weekly slots, as far as they have been read from Schedule."""

from bisect import bisect_left
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotTimes:
    """Every slot time from `after` until `until`, in order. `last`: there is none behind them within the horizon."""

    schedule_version: int
    after: datetime
    until: datetime
    times: tuple[datetime, ...]
    last: bool

    def covers(self, start: datetime) -> bool:
        return self.after <= start < self.until

    def window(self, start: datetime, size: int) -> tuple[datetime, ...]:
        """The first so many times that are not before `start`."""
        first = bisect_left(self.times, start)
        return self.times[first : first + size]
