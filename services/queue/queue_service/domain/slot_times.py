"""The times of an account's weekly slots, as read from Schedule."""

from bisect import bisect_left
from dataclasses import dataclass
from datetime import datetime

from queue_service.domain.account import AccountQueue, AnnouncedSchedule


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotTimes:
    """Every slot time inside the send window from `after` until `until`, in order.

    If `last`, there are no more within the horizon. If `all_outside`, the window leaves none of the weekly slots.
    """

    schedule_version: int
    after: datetime
    until: datetime
    times: tuple[datetime, ...]
    # The wall-clock time of each time's weekly slot, if it is known.
    nominals: tuple[datetime | None, ...]
    last: bool
    all_outside: bool = False
    # The schedule that they come from; None if Schedule runs the previous release, which does not send it.
    schedule: AnnouncedSchedule | None = None

    @property
    def tzdata_version(self) -> str:
        return self.schedule.tzdata_version if self.schedule else ""

    def nominal_of(self, time: datetime) -> datetime | None:
        return self.nominals[bisect_left(self.times, time)]

    def are_those_of(self, queue: AccountQueue) -> bool:
        """Returns whether no newer schedule and no newer time zone data have been announced here."""
        return self.schedule_version == queue.schedule_version and self.tzdata_version >= queue.tzdata_version

    def covers(self, start: datetime) -> bool:
        return self.after <= start < self.until

    def window(self, start: datetime, size: int) -> tuple[datetime, ...]:
        """Returns the first `size` times from `start` on."""
        first = bisect_left(self.times, start)
        return self.times[first : first + size]

    def has(self, number: int, start: datetime) -> bool:
        """Returns whether there are so many times from `start` on."""
        return len(self.times) - bisect_left(self.times, start) >= number

    def continues(self, page: "SlotTimes") -> bool:
        """Returns whether these are the times after a page, of the same schedule."""
        return self.schedule_version == page.schedule_version and self.tzdata_version == page.tzdata_version
