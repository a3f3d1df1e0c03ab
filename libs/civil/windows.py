"""Send windows, such as Monday to Friday 09:00-18:00 in Berlin, and the periods in which they are open.

A window tests the wall-clock time of an instant, and nothing is shifted. A window that lies wholly in a gap does not
open that day; a time that the clocks show twice is in the window twice.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import NamedTuple

from civil.zones import DAY, EARLIEST, LATEST, Zone, in_utc

_EVERY_DAY = frozenset(range(7))


@dataclass(frozen=True, slots=True, kw_only=True)
class SendWindow:
    """The same hours on some days of the week."""

    days: frozenset[int]
    """0 is Sunday, 6 is Saturday."""
    start: time
    end: time | None
    """Excluded; None is the end of the day."""

    def __post_init__(self) -> None:
        if not self.days or not self.days <= _EVERY_DAY:
            raise ValueError(f"not days of the week: {sorted(self.days)}")
        if self.start.tzinfo or (self.end and self.end.tzinfo):
            raise ValueError("the times of a window are wall-clock times without a zone")
        if self.end is not None and self.start >= self.end:
            raise ValueError(f"a window must end after it starts, not at {self.end:%H:%M} from {self.start:%H:%M}")

    @property
    def always(self) -> bool:
        return self.days == _EVERY_DAY and self.start == time.min and self.end is None

    def contains(self, local_time: datetime) -> bool:
        """Returns whether this wall-clock time (naive) is in the window."""
        assert local_time.tzinfo is None, "a wall-clock time is a naive datetime"
        return self.has(local_time.isoweekday() % 7, local_time.time())

    def has(self, day: int, local_time: time) -> bool:
        """Returns whether this time of this day of the week (0 is Sunday) is in the window."""
        return day in self.days and self.start <= local_time and (self.end is None or local_time < self.end)


class Opening(NamedTuple):
    """A period in which a window is open: from `start` (included) to `end` (excluded), both in UTC."""

    start: datetime
    end: datetime


def is_open(window: SendWindow, zone: Zone, instant: datetime) -> bool:
    return window.contains((in_utc(instant) + zone.offset_at(instant)).replace(tzinfo=None))


def openings(window: SendWindow, zone: Zone, *, after: datetime) -> Iterator[Opening]:
    """Yields every opening that ends after this instant, in time order; the first may have begun before it.

    Adjoining times are one opening, such as two days without a closing in between. The openings continue to the end of
    the calendar; a window that never closes has a single one.
    """
    after = min(max(in_utc(after), EARLIEST), LATEST)
    if window.always:
        if after < LATEST:
            yield Opening(EARLIEST, LATEST)
        return
    for opening in _joined(_parts(window, zone, _closed_before(window, zone, after))):
        if opening.end > after:
            yield opening


def _closed_before(window: SendWindow, zone: Zone, instant: datetime) -> datetime:
    """Returns an instant before the opening that includes this one, if any. Most windows are closed within two days."""
    back = 2 * DAY
    while (start := max(instant, EARLIEST + back) - back) > EARLIEST:
        first = next(_joined(_parts(window, zone, start)))
        if first.start > start or first.end <= instant:
            break
        back *= 2
    return start


def _joined(parts: Iterator[Opening]) -> Iterator[Opening]:
    start, end = next(parts, (LATEST, LATEST))
    for part in parts:
        if part.start > end:
            yield Opening(start, end)
            start = part.start
        end = part.end
    if start < end:
        yield Opening(start, end)


def _parts(window: SendWindow, zone: Zone, start: datetime) -> Iterator[Opening]:
    """Yields the part of each day that is in the window, cut where the offset changes."""
    opens, closes = _since_midnight(window.start), DAY if window.end is None else _since_midnight(window.end)
    for stretch in zone.stretches(start, LATEST):
        local = stretch.start + stretch.offset
        midnight = local.replace(hour=0, minute=0, second=0, microsecond=0) - stretch.offset
        day = local.isoweekday() % 7
        while midnight < stretch.end:
            if day in window.days:
                part = Opening(max(midnight + opens, stretch.start), min(midnight + closes, stretch.end))
                if part.start < part.end:
                    yield part
            midnight += DAY
            day = (day + 1) % 7


def _since_midnight(clock: time) -> timedelta:
    return timedelta(hours=clock.hour, minutes=clock.minute, seconds=clock.second, microseconds=clock.microsecond)
