"""The times of an account's weekly slots, as far as they have been read from Schedule."""

from bisect import bisect_left
from dataclasses import dataclass
from datetime import datetime

from queue_service.domain.account import AccountQueue, ToldSchedule


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotTimes:
    """Every slot time from `after` until `until`, in order. `last`: there is none behind them within the horizon."""

    schedule_version: int
    after: datetime
    until: datetime
    times: tuple[datetime, ...]
    # What each of them is by its weekly slot on the wall, as far as that is known.
    nominals: tuple[datetime | None, ...]
    last: bool
    # What they follow; None when Schedule did not say.
    schedule: ToldSchedule | None = None

    @property
    def tzdata_version(self) -> str:
        return self.schedule.tzdata_version if self.schedule else ""

    def nominal_of(self, time: datetime) -> datetime | None:
        return self.nominals[bisect_left(self.times, time)]

    def are_those_of(self, queue: AccountQueue) -> bool:
        """As far as is known here."""
        return self.schedule_version == queue.schedule_version and self.tzdata_version >= queue.tzdata_version

    def covers(self, start: datetime) -> bool:
        return self.after <= start < self.until

    def window(self, start: datetime, size: int) -> tuple[datetime, ...]:
        """The first so many times that are not before `start`."""
        first = bisect_left(self.times, start)
        return self.times[first : first + size]
