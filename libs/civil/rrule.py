"""Parses recurrence rules (RRULE of RFC 5545) strictly: nothing is ignored or guessed."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time
from enum import StrEnum

LONGEST = 500
"""Characters."""
MOST_OCCURRENCES = 10_000
LONGEST_INTERVAL = 10_000

WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
"""As `date.weekday` counts them."""

_OTHER_PROPERTIES = re.compile(r"\b(DTSTART|DTEND|DURATION|TZID|EXDATE|EXRULE|RDATE)\b")
_NUMBER = re.compile(r"[+-]?[0-9]{1,5}")
_WEEKDAY = re.compile(rf"([+-]?[0-9]{{1,2}})?({'|'.join(WEEKDAYS)})")
_UNTIL = re.compile(
    "(?P<year>[0-9]{4})(?P<month>[0-9]{2})(?P<day>[0-9]{2})(T(?P<hour>[0-9]{2})(?P<minute>[0-9]{2})(?P<second>[0-9]{2}))?"
)
_LONGEST_SHOWN = 32


class InvalidRecurrence(ValueError):
    """A text that is no supported rule. `part` names the part that is wrong, or is empty."""

    def __init__(self, part: str, why: str) -> None:
        super().__init__(f"{_shown(part)} {why}" if part else why)
        self.part = part


class Frequency(StrEnum):
    YEARLY = "YEARLY"
    MONTHLY = "MONTHLY"
    WEEKLY = "WEEKLY"
    DAILY = "DAILY"
    HOURLY = "HOURLY"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """The parts of a rule. A part that is not given is empty; weekdays count from Monday as 0."""

    frequency: Frequency
    interval: int
    months: frozenset[int]
    weeks: frozenset[int]
    year_days: frozenset[int]
    month_days: frozenset[int]
    weekdays: frozenset[int]
    nth_weekdays: frozenset[tuple[int, int]]
    """Numbered weekdays, such as (-1, 4), the last Friday of the month or year."""
    numbered_weekdays: frozenset[int]
    """The weekdays that `nth_weekdays` contains."""
    hours: tuple[int, ...]
    minutes: tuple[int, ...]
    positions: tuple[int, ...]
    week_start: int
    count: int | None
    until: datetime | None
    """Included."""


def parse_rule(text: str) -> tuple[Rule, str]:
    """Returns the rule and its normalised text, the same for all ways to write the rule. Raises InvalidRecurrence."""
    given = _parts(text)
    frequency = _frequency(given.get("FREQ"))
    weekdays = [_weekday(value) for value in given["BYDAY"].split(",")] if "BYDAY" in given else []
    rule = Rule(
        frequency=frequency,
        interval=_number(given, "INTERVAL", 1, LONGEST_INTERVAL) or 1,
        months=frozenset(_numbers(given, "BYMONTH", 1, 12)),
        weeks=frozenset(_numbers(given, "BYWEEKNO", 1, 53, from_end=True)),
        year_days=frozenset(_numbers(given, "BYYEARDAY", 1, 366, from_end=True)),
        month_days=frozenset(_numbers(given, "BYMONTHDAY", 1, 31, from_end=True)),
        weekdays=frozenset(weekday for n, weekday in weekdays if not n),
        nth_weekdays=frozenset((n, weekday) for n, weekday in weekdays if n),
        numbered_weekdays=frozenset(weekday for n, weekday in weekdays if n),
        hours=_numbers(given, "BYHOUR", 0, 23),
        minutes=_numbers(given, "BYMINUTE", 0, 59),
        positions=_numbers(given, "BYSETPOS", 1, 366, from_end=True),
        week_start=_week_start(given.get("WKST", "MO")),
        count=_number(given, "COUNT", 1, MOST_OCCURRENCES),
        until=_until(given["UNTIL"]) if "UNTIL" in given else None,
    )
    if given.get("BYSECOND", "0").strip("0"):
        raise InvalidRecurrence("BYSECOND", "must be 0 or left out: occurrences are on the minute")
    _require_sense(rule)
    return rule, _text(rule, given.get("UNTIL"))


def _parts(text: str) -> dict[str, str]:
    if len(text) > LONGEST:
        raise InvalidRecurrence("", f"a rule may have at most {LONGEST} characters, not {len(text)}")
    line = text.strip().upper()
    if other := _OTHER_PROPERTIES.search(line):
        raise InvalidRecurrence(other[0], "does not belong in a rule, which has no start, zone or dates")
    if not line.isascii() or not line.isprintable():
        raise InvalidRecurrence("", "a rule must be one line of ASCII characters")
    if not line:
        raise InvalidRecurrence("", "a rule must not be empty: FREQ=DAILY is the shortest")
    found: dict[str, str] = {}
    for part in line.removeprefix("RRULE:").split(";"):
        name, _, value = part.partition("=")
        if name not in _ORDER:
            raise InvalidRecurrence(name or "an empty part", "is not a supported part of a rule")
        if name in found:
            raise InvalidRecurrence(name, "is given twice")
        if not value:
            raise InvalidRecurrence(name, "has no value")
        found[name] = value
    return found


def _frequency(value: str | None) -> Frequency:
    known = ", ".join(Frequency)
    if value is None:
        raise InvalidRecurrence("FREQ", f"is missing; it must be one of {known}")
    if value in {"SECONDLY", "MINUTELY"}:
        raise InvalidRecurrence("FREQ", f"{value} is too frequent; it must be one of {known}")
    if value not in set(Frequency):
        raise InvalidRecurrence("FREQ", f"must be one of {known}, not {_shown(value)}")
    return Frequency(value)


def _numbers(given: dict[str, str], name: str, least: int, most: int, *, from_end: bool = False) -> tuple[int, ...]:
    """Returns the sorted distinct numbers of a part; negative numbers count from the end."""
    if name not in given:
        return ()
    texts = given[name].split(",")
    numbers = [int(text) if _NUMBER.fullmatch(text) else None for text in texts]
    for number, text in zip(numbers, texts, strict=True):
        if number is None or not least <= (abs(number) if from_end else number) <= most:
            mirrored = f" or from -{most} to -{least}" if from_end else ""
            raise InvalidRecurrence(name, f"takes numbers from {least} to {most}{mirrored}, not {_shown(text)}")
    return tuple(sorted({number for number in numbers if number is not None}))


def _number(given: dict[str, str], name: str, least: int, most: int) -> int | None:
    numbers = _numbers(given, name, least, most)
    if len(numbers) > 1:
        raise InvalidRecurrence(name, "must be one number")
    return numbers[0] if numbers else None


def _weekday(value: str) -> tuple[int, int]:
    """Returns the number (0 for every one) and the weekday of a BYDAY value."""
    found = _WEEKDAY.fullmatch(value)
    n = int(found[1] or 0) if found else 0
    if found is None or abs(n) > 53 or (found[1] and not n):
        raise InvalidRecurrence("BYDAY", f"takes days such as MO, 1MO or -1FR, not {_shown(value)}")
    return n, WEEKDAYS.index(found[2])


def _week_start(value: str) -> int:
    if value not in WEEKDAYS:
        raise InvalidRecurrence("WKST", f"must be one of {', '.join(WEEKDAYS)}, not {_shown(value)}")
    return WEEKDAYS.index(value)


def _until(value: str) -> datetime:
    if value.endswith("Z"):
        raise InvalidRecurrence("UNTIL", "must be in local time, as the whole rule: convert it and leave out the Z")
    found = _UNTIL.fullmatch(value)
    try:
        if found is None:
            raise ValueError("not in this form")
        day = date(int(found["year"]), int(found["month"]), int(found["day"]))
        if found["hour"] is None:
            return datetime.combine(day, time.max)
        return datetime.combine(day, time(int(found["hour"]), int(found["minute"]), int(found["second"])))
    except ValueError:
        wanted = "must be a date such as 20271231, which is included, or a local time such as 20271231T090000"
        raise InvalidRecurrence("UNTIL", f"{wanted}, not {_shown(value)}") from None


def _require_sense(rule: Rule) -> None:
    """Refuses the combinations that RFC 5545 excludes, since implementations disagree about their meaning."""
    nth_within_month = rule.frequency == Frequency.MONTHLY or rule.months
    nth_allowed = rule.frequency == Frequency.MONTHLY or (rule.frequency == Frequency.YEARLY and not rule.weeks)
    by_parts = (rule.months, rule.weeks, rule.year_days, rule.month_days, rule.weekdays, rule.nth_weekdays)
    excluded: list[tuple[object, str, str]] = [
        (rule.count and rule.until, "COUNT", "and UNTIL exclude each other"),
        (rule.weeks and rule.frequency != Frequency.YEARLY, "BYWEEKNO", "goes with FREQ=YEARLY only"),
        (
            rule.year_days and rule.frequency not in {Frequency.YEARLY, Frequency.HOURLY},
            "BYYEARDAY",
            f"does not go with FREQ={rule.frequency}",
        ),
        (rule.month_days and rule.frequency == Frequency.WEEKLY, "BYMONTHDAY", "does not go with FREQ=WEEKLY"),
        (
            rule.nth_weekdays and not nth_allowed,
            "BYDAY",
            "takes numbers (as in 1MO) with FREQ=MONTHLY, and with FREQ=YEARLY without BYWEEKNO",
        ),
        (
            nth_within_month and any(abs(n) > 5 for n, _ in rule.nth_weekdays),
            "BYDAY",
            "counts weekdays within a month here, where none occurs more than five times",
        ),
        (
            rule.positions and not any((*by_parts, rule.hours, rule.minutes)),
            "BYSETPOS",
            "chooses among the times of other BY parts, and there are none",
        ),
    ]
    for is_so, part, why in excluded:
        if is_so:
            raise InvalidRecurrence(part, why)


def _text(rule: Rule, until: str | None) -> str:
    return ";".join(f"{name}={value}" for name, write in _ORDER.items() if (value := write(rule, until)))


def _listed(numbers: frozenset[int] | tuple[int, ...]) -> str:
    return ",".join(map(str, sorted(numbers)))


def _days(rule: Rule) -> str:
    nth = [f"{n}{WEEKDAYS[weekday]}" for n, weekday in sorted(rule.nth_weekdays)]
    return ",".join([*(WEEKDAYS[weekday] for weekday in sorted(rule.weekdays)), *nth])


def _shown(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


# The parts in the order of a normalised text, which leaves out defaults.
_ORDER: dict[str, Callable[[Rule, str | None], str]] = {
    "FREQ": lambda rule, _: rule.frequency,
    "INTERVAL": lambda rule, _: str(rule.interval) if rule.interval > 1 else "",
    "BYMONTH": lambda rule, _: _listed(rule.months),
    "BYWEEKNO": lambda rule, _: _listed(rule.weeks),
    "BYYEARDAY": lambda rule, _: _listed(rule.year_days),
    "BYMONTHDAY": lambda rule, _: _listed(rule.month_days),
    "BYDAY": lambda rule, _: _days(rule),
    "BYHOUR": lambda rule, _: _listed(rule.hours),
    "BYMINUTE": lambda rule, _: _listed(rule.minutes),
    "BYSECOND": lambda _rule, _until: "",
    "BYSETPOS": lambda rule, _: _listed(rule.positions),
    "WKST": lambda rule, _: WEEKDAYS[rule.week_start] if rule.week_start else "",
    "COUNT": lambda rule, _: str(rule.count or ""),
    "UNTIL": lambda _, until: until or "",
}
