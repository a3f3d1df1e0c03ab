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
    """The effect of a jump of the clocks on an expression."""

    CRON = "CRON"
    """A time that the clocks skip does not fire, and a time that they show twice fires twice."""
    ONCE = "ONCE"
    """Every local time of the expression fires once, as weekly slots do: shifted forward in a gap, at the first of two
    readings in an overlap, not at all on a date that the zone skipped. A `*` in the hour is no exception: `0 * * * *`
    does not fire in the repeated hour, and the two firings that meet after a gap are one."""


class Firing(NamedTuple):
    """One instant of an expression."""

    instant: datetime
    """In UTC."""
    nominal: datetime
    """The local time that the expression asks for, naive, even if the clocks skip it."""
    second_pass: bool
    """Whether the clocks show the nominal time for the second time."""
    by_interval: bool = False
    """Whether the expression is an `@every`."""

    @property
    def key(self) -> str:
        """Returns a text that is unique among the firings of the expression: the same key means a repeat."""
        if self.by_interval:
            return f"{self.instant.replace(tzinfo=None).isoformat(timespec='seconds')}Z"
        shown = self.nominal.isoformat(timespec="seconds" if self.nominal.second else "minutes")
        return f"{shown}/2" if self.second_pass else shown


def firings(cron: Cron, zone: Zone, *, after: datetime, dst: Dst = Dst.CRON) -> Iterator[Firing]:
    """Yields every firing with `after` < instant, in time order.

    The fields are read in `zone`; honouring `Cron.zone_name` is up to the caller. The firings end if none follows by
    the end of the fifth local year after the last one, or after `after`. An `@every` counts from `after`, without end.
    """
    after = min(max(in_utc(after), EARLIEST), LATEST)
    after -= timedelta(microseconds=after.microsecond)
    if cron.every is not None:
        yield from _by_interval(cron.every, zone, after)
        return
    start = after + _SECOND
    last_year = _last_year(start, zone.offset_at(start))
    # A jump has an effect for a day at most: shifted times, and times shown again, lie within a day after it.
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
    """Yields the firings of one stretch, from `start` on."""
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
    """Merges the firings shifted out of a gap with those whose own time follows it, which win at the same instant."""
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
    """Yields the firings in [start, end), all of which has this offset. Local times are computed as if in UTC."""
    first, past = start + offset, end + offset
    for day in _dates(cron, first, past):
        for time_of_day in _times(cron, max(day, first)):
            local = datetime.combine(day, time_of_day, UTC)
            if local >= past:
                return
            yield Firing(local - offset, datetime.combine(day, time_of_day), False)


def _dates(cron: Cron, first: datetime, past: datetime) -> Iterator[datetime]:
    """Yields the midnights of the dates that match."""
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
    """Yields the matching times of the day from `since` on."""
    for hour in _from(cron.hours, since.hour):
        this_hour = hour == since.hour
        for minute in _from(cron.minutes, since.minute if this_hour else 0):
            this_minute = this_hour and minute == since.minute
            for second in _from(cron.seconds, since.second if this_minute else 0):
                yield time(hour, minute, second)


def _from(values: tuple[int, ...], least: int) -> tuple[int, ...]:
    return values if values[0] >= least else values[bisect_left(values, least) :]
