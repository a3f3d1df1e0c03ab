"""Cron expressions and the instants at which they fire, with the semantics of robfig/cron's `ParseStandard`.

Three things that it lets through, though nobody can have meant what it makes of them, are refused: `*-5` (it reads
`*`), a field of commas alone (it never fires) and a negative `@every` (it fires every second).
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from civil.zones import DAY, EARLIEST, LATEST, ZERO, Stretch, UnknownZone, Zone, find_zone, in_utc

LONGEST = 256
"""Characters of an expression."""

_HORIZON_YEARS = 5
_SECOND = timedelta(seconds=1)
_MIDNIGHT = time()
_LONGEST_SHOWN = 30
_LARGEST_NUMBER = 2**63 - 1


class InvalidCron(ValueError):
    """Not a cron expression; the message names the field."""


class Dst(StrEnum):
    """What a jump of the clocks does to an expression."""

    CRON = "CRON"
    """The wall clock decides: a time that it jumps over does not fire, a time that it shows twice fires twice."""
    ONCE = "ONCE"
    """Every local time of the expression fires once, as weekly slots do: shifted forward by the length of a gap, at the
    first reading in an overlap, dropped on a date that does not exist. This holds for a `*` in the hour as well:
    `0 * * * *` lets the repeated hour pass, and in a gap the two firings that meet are one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cron:
    """A parsed expression; `parse_cron` makes them. It has either `every` or fields of sorted numbers."""

    text: str
    zone_name: str | None = None
    """Of its `CRON_TZ=` or `TZ=` prefix."""
    every: timedelta | None = None
    seconds: tuple[int, ...] = ()
    minutes: tuple[int, ...] = ()
    hours: tuple[int, ...] = ()
    days: tuple[int, ...] = ()
    months: tuple[int, ...] = ()
    weekdays: tuple[int, ...] = ()
    """0 is Sunday."""
    either_day: bool = False
    """Whether a date need match only one of `days` and `weekdays`: when neither of them was written as `*` or `?`."""


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


def parse_cron(text: str, *, seconds: bool = False) -> Cron:
    """Five fields, or six with `seconds` first; or a descriptor such as `@daily` or `@every 1h30m`."""
    if len(text) > LONGEST:
        raise InvalidCron(f"the expression has {len(text)} characters; at most {LONGEST} are read")
    return _parsed(text, seconds)


@lru_cache(maxsize=1024)
def _parsed(text: str, seconds: bool) -> Cron:
    zone_name, expression = _zone_prefix(text)
    if expression.startswith(_EVERY):
        return Cron(text=text, zone_name=zone_name, every=_interval(expression.removeprefix(_EVERY)))
    words = _words(expression, seconds)
    values, stars = zip(*(_parse_field(word, field) for word, field in zip(words, _FIELDS, strict=True)), strict=True)
    return Cron(
        text=text,
        zone_name=zone_name,
        seconds=values[0],
        minutes=values[1],
        hours=values[2],
        days=values[3],
        months=values[4],
        weekdays=values[5],
        either_day=not (stars[3] or stars[5]),
    )


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


class _Field(NamedTuple):
    name: str
    least: int
    most: int
    names: tuple[str, ...] = ()
    """Of its numbers, from the least on."""


_FIELDS = (
    _Field("second", 0, 59),
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")),
    _Field("day of week", 0, 6, ("sun", "mon", "tue", "wed", "thu", "fri", "sat")),
)
_STARS = frozenset({"*", "?"})
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY = "@every "


def _zone_prefix(text: str) -> tuple[str | None, str]:
    if not text.startswith(("TZ=", "CRON_TZ=")):
        return None, text
    prefix, _, expression = text.partition(" ")
    name = prefix.partition("=")[2]
    try:
        return find_zone(name).name, expression.strip()
    except UnknownZone as unknown:
        raise InvalidCron(f"time zone: {unknown}") from unknown


def _words(expression: str, seconds: bool) -> list[str]:
    """One for each field, the seconds included."""
    if expression.startswith("@"):
        if expression not in _DESCRIPTORS:
            raise InvalidCron(f"{_shown(expression)} is none of {', '.join(_DESCRIPTORS)}, @every ...")
        return ["0", *_DESCRIPTORS[expression].split()]
    words = expression.split()
    wanted = _FIELDS if seconds else _FIELDS[1:]
    if len(words) != len(wanted):
        names = ", ".join(field.name for field in wanted)
        raise InvalidCron(f"wanted are {len(wanted)} fields ({names}), found {len(words)}")
    return words if seconds else ["0", *words]


def _parse_field(word: str, field: _Field) -> tuple[tuple[int, ...], bool]:
    """Its numbers in order, and whether it is a star (of step 1), which the rule about days asks."""
    ranges = [_parse_range(part, field) for part in word.split(",") if part]
    if not ranges:
        raise InvalidCron(f"{field.name}: {_shown(word)} names no value")
    return tuple(sorted({value for values, _ in ranges for value in values})), any(star for _, star in ranges)


def _parse_range(part: str, field: _Field) -> tuple[range, bool]:
    span, *steps = part.split("/")
    if len(steps) > 1:
        raise InvalidCron(f"{field.name}: {_shown(part)} has more than one slash")
    start, end = _span(span, part, field)
    step = _number(steps[0], part, field) if steps else 1
    if steps and "-" not in span:
        end = field.most
    if start < field.least:
        raise InvalidCron(f"{field.name}: {start} is below {field.least}")
    if max(start, end) > field.most:
        raise InvalidCron(f"{field.name}: {max(start, end)} is above {field.most}")
    if start > end:
        raise InvalidCron(f"{field.name}: {_shown(span)} ends before it begins")
    if step == 0:
        raise InvalidCron(f"{field.name}: a step of 0 leads nowhere")
    return range(start, end + 1, step), span in _STARS and step == 1


def _span(span: str, part: str, field: _Field) -> tuple[int, int]:
    if span in _STARS:
        return field.least, field.most
    low, *highs = span.split("-")
    if len(highs) > 1:
        raise InvalidCron(f"{field.name}: {_shown(part)} has more than one hyphen")
    start = _value(low, part, field)
    return start, _value(highs[0], part, field) if highs else start


def _value(text: str, part: str, field: _Field) -> int:
    if text.lower() in field.names:
        return field.least + field.names.index(text.lower())
    return _number(text, part, field)


def _number(text: str, part: str, field: _Field) -> int:
    where = "" if text == part else f" in {_shown(part)}"
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise InvalidCron(f"{field.name}: {_shown(text)}{where} is not a number")
    number = int(text)
    if number < 0:
        raise InvalidCron(f"{field.name}: {_shown(text)}{where} is negative")
    if number > _LARGEST_NUMBER:
        raise InvalidCron(f"{field.name}: {_shown(text)}{where} is too large")
    return number


_UNITS = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,  # micro sign
    "\u03bcs": 1_000,  # Greek mu
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_AMOUNT = re.compile(rf"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)({'|'.join(_UNITS)})")
_DURATION = re.compile(rf"(?:{_AMOUNT.pattern})+|0")


def _interval(text: str) -> timedelta:
    """Go's syntax of a duration, such as 1h30m or 1.5h: cut to seconds, one at least."""
    sign, amounts = (text[:1], text[1:]) if text[:1] in {"+", "-"} else ("", text)
    if not _DURATION.fullmatch(amounts):
        raise InvalidCron(f"@every: {_shown(text)} is not a duration such as 1h30m")
    nanoseconds = sum(_nanoseconds(amount, _UNITS[unit]) for amount, unit in _AMOUNT.findall(amounts))
    if nanoseconds > _LARGEST_NUMBER:
        raise InvalidCron(f"@every: {_shown(text)} is too long")
    if sign == "-" and nanoseconds:
        raise InvalidCron(f"@every: {_shown(text)} is negative")
    return max(_SECOND, timedelta(seconds=nanoseconds // _UNITS["s"]))


def _nanoseconds(amount: str, unit: int) -> int:
    whole, _, fraction = amount.partition(".")
    scale: int = 10 ** len(fraction)
    return int(whole or 0) * unit + int(fraction or 0) * unit // scale


def _shown(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}...")
