"""Parses cron expressions with the semantics of robfig/cron's `ParseStandard`.

Three texts that robfig/cron accepts are refused, since nobody can mean what it makes of them: `*-5` (read as `*`), a
field of commas alone (never fires) and a negative `@every` (fires every second).
"""

import re
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import NamedTuple

from civil.zones import UnknownZone, find_zone

LONGEST = 256
"""Characters of an expression."""

_SECOND = timedelta(seconds=1)
_LONGEST_SHOWN = 30
_LARGEST_NUMBER = 2**63 - 1


class InvalidCron(ValueError):
    """A text that is no cron expression. The message names the field."""


class UnknownCronZone(InvalidCron):
    """An expression whose prefix names an unknown zone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cron:
    """A parsed expression, with either `every` or fields of sorted numbers. See `parse_cron`."""

    text: str
    zone_name: str | None = None
    """The zone of a `CRON_TZ=` or `TZ=` prefix."""
    every: timedelta | None = None
    seconds: tuple[int, ...] = ()
    minutes: tuple[int, ...] = ()
    hours: tuple[int, ...] = ()
    days: tuple[int, ...] = ()
    months: tuple[int, ...] = ()
    weekdays: tuple[int, ...] = ()
    """0 is Sunday."""
    either_day: bool = False
    """Whether a date may match either `days` or `weekdays`: so if neither of them was written as `*` or `?`."""


def parse_cron(text: str, *, seconds: bool = False) -> Cron:
    """Parses five fields (six with `seconds` first), or a descriptor such as `@daily` or `@every 1h30m`."""
    if len(text) > LONGEST:
        raise InvalidCron(f"the expression has {len(text)} characters; at most {LONGEST} are allowed")
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


class _Field(NamedTuple):
    name: str
    least: int
    most: int
    names: tuple[str, ...] = ()
    """The names of its numbers, from the least on."""


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
        raise UnknownCronZone(f"time zone: {unknown}") from unknown


def _words(expression: str, seconds: bool) -> list[str]:
    """Returns a word for each field, including the seconds."""
    if expression.startswith("@"):
        if expression not in _DESCRIPTORS:
            raise InvalidCron(f"{_shown(expression)} is none of {', '.join(_DESCRIPTORS)}, @every ...")
        return ["0", *_DESCRIPTORS[expression].split()]
    words = expression.split()
    wanted = _FIELDS if seconds else _FIELDS[1:]
    if len(words) != len(wanted):
        names = ", ".join(field.name for field in wanted)
        raise InvalidCron(f"expected {len(wanted)} fields ({names}), found {len(words)}")
    return words if seconds else ["0", *words]


def _parse_field(word: str, field: _Field) -> tuple[tuple[int, ...], bool]:
    """Returns the sorted numbers of a field, and whether it is a star of step 1, which decides `either_day`."""
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
        raise InvalidCron(f"{field.name}: the step is 0")
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
    """Parses a duration in Go's syntax, such as 1h30m or 1.5h; truncated to seconds, at least one."""
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
