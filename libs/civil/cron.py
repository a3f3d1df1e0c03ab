"""Cron expressions and the instants at which they fire, with the semantics of robfig/cron."""

from bisect import bisect_left
from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum
from typing import NamedTuple

from civil.cron_text import Cron, InvalidCron, UnknownCronZone, parse_cron
from civil.zones import DAY, EARLIEST, LATEST, ZERO, Stretch, Zone, in_utc

__all__ = ["Cron", "Dst", "Firing", "InvalidCron", "UnknownCronZone", "firings", "parse_cron"]

_HORIZON_YEARS = 5
_SECOND = timedelta(seconds=1)
_MIDNIGHT = time()


class Dst(StrEnum):
    """What a jump of the clocks does to an expression."""

    CRON = "CRON"
    """The wall clock decides: a time that it jumps over does not fire, a time that it shows twice fires twice."""
    ONCE = "ONCE"
    """Every local time of the expression fires once, as weekly slots do: shifted forward by the length of a gap, at the
    first reading in an overlap, dropped on a date that does not exist. This holds for a `*` in the hour as well:
    `0 * * * *` lets the repeated hour pass, and in a gap the two firings that meet are one."""


class Firing(NamedTuple):
    """One instant of an expression."""

    instant: datetime
    """In UTC."""
    nominal: datetime
    """The local time that the expression asks for, naive, even if the wall never showed it."""
    second_pass: bool
    """Whether the wall shows the nominal time for the second time."""
    by_interval: bool = False
    """Whether an `@every` brought it about."""

    @property
    def key(self) -> str:
        """Names this firing among all of its expression and zone: the same again is a repeat."""
        if self.by_interval:
            return f"{self.instant.replace(tzinfo=None).isoformat(timespec='seconds')}Z"
        shown = self.nominal.isoformat(timespec="seconds" if self.nominal.second else "minutes")
        return f"{shown}/2" if self.second_pass else shown


def firings(cron: Cron, zone: Zone, *, after: datetime, dst: Dst = Dst.CRON) -> Iterator[Firing]:
    """Every firing with `after` < instant, in time order and lazily.

    `zone` is where the fields are read: a caller that heeds `zone_name` passes that zone. The firings end when none
    follows up to the end of the fifth local year after that of the last one, or of `after`. An `@every` counts from
    `after` and has no such bound.
    """
    after = min(max(in_utc(after), EARLIEST), LATEST)
    after -= timedelta(microseconds=after.microsecond)
    if cron.every is not None:
        yield from _by_interval(cron.every, zone, after)
        return
    start = after + _SECOND
    last_year = _last_year(start, zone.offset_at(start))
    # A jump reaches a day at most: what it shifts, or shows for the second time, lies within a day of it.
    for stretch in zone.stretches(start - DAY, LATEST):
        if (stretch.start + stretch.offset).year > last_year:
            return
        for firing in _within(cron, stretch, start, dst):
            if firing.nominal.year > last_year:
                return
            yield firing
            last_year = _last_year(firing.instant + _SECOND, stretch.offset)


def _last_year(start: datetime, offset: timedelta) -> int:
    return (start + offset).year + _HORIZON_YEARS


def _by_interval(every: timedelta, zone: Zone, after: datetime) -> Iterator[Firing]:
    instant = after
    while LATEST - instant >= every:
        instant += every
        yield Firing(instant, (instant + zone.offset_at(instant)).replace(tzinfo=None), False, by_interval=True)


def _within(cron: Cron, stretch: Stretch, start: datetime, dst: Dst) -> Iterator[Firing]:
    """The firings of one stretch, from `start` on."""
    settled = min(stretch.start + abs(stretch.jump), stretch.end)
    if stretch.jump < ZERO and dst is Dst.CRON:
        again = _read(cron, max(stretch.start, start), settled, stretch.offset)
        yield from (firing._replace(second_pass=True) for firing in again)
    elif stretch.jump > ZERO and dst is Dst.ONCE:
        yield from (firing for firing in _after_gap(cron, stretch, settled) if firing.instant >= start)
    elif stretch.jump > ZERO:
        settled = stretch.start
    yield from _read(cron, max(settled, start), stretch.end, stretch.offset)


def _after_gap(cron: Cron, stretch: Stretch, settled: datetime) -> list[Firing]:
    """While the shifted firings of the gap fall among those whose own time it is. The latter win where they meet."""
    own = {firing.instant: firing for firing in _read(cron, stretch.start, settled, stretch.offset)}
    jumped_over = _read(cron, stretch.start, settled, stretch.before)
    gap_start = (stretch.start + stretch.before).replace(tzinfo=None)
    gap_end = gap_start + stretch.jump
    shifted = {
        firing.instant: firing for firing in jumped_over if not _date_is_missing(firing.nominal, gap_start, gap_end)
    }
    return sorted((shifted | own).values())


def _date_is_missing(nominal: datetime, gap_start: datetime, gap_end: datetime) -> bool:
    midnight = datetime.combine(nominal, _MIDNIGHT)
    return gap_start <= midnight and midnight + DAY <= gap_end


def _read(cron: Cron, start: datetime, end: datetime, offset: timedelta) -> Iterator[Firing]:
    """The firings in [start, end) on a clock with this offset throughout. The wall is reckoned as if it were UTC."""
    first, past = start + offset, end + offset
    for day in _dates(cron, first, past):
        for time_of_day in _times(cron, max(day, first)):
            wall = datetime.combine(day, time_of_day, UTC)
            if wall >= past:
                return
            yield Firing(wall - offset, datetime.combine(day, time_of_day), False)


def _dates(cron: Cron, first: datetime, past: datetime) -> Iterator[datetime]:
    """The midnights of the dates that match."""
    day = datetime.combine(first, _MIDNIGHT, UTC)
    while day < past:
        if day.month not in cron.months:
            day = _next_month(cron.months, day)
            continue
        in_month, in_week = day.day in cron.days, day.isoweekday() % 7 in cron.weekdays
        if (in_month or in_week) if cron.either_day else (in_month and in_week):
            yield day
        day += DAY


def _next_month(months: tuple[int, ...], day: datetime) -> datetime:
    later = _from(months, day.month)
    return datetime(day.year, later[0], 1, tzinfo=UTC) if later else datetime(day.year + 1, months[0], 1, tzinfo=UTC)


def _times(cron: Cron, since: datetime) -> Iterator[time]:
    """The times of that day from `since` on."""
    for hour in _from(cron.hours, since.hour):
        this_hour = hour == since.hour
        for minute in _from(cron.minutes, since.minute if this_hour else 0):
            this_minute = this_hour and minute == since.minute
            for second in _from(cron.seconds, since.second if this_minute else 0):
                yield time(hour, minute, second)


def _from(values: tuple[int, ...], least: int) -> tuple[int, ...]:
    return values if values[0] >= least else values[bisect_left(values, least) :]
