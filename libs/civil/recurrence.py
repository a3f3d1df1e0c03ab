"""Recurrences such as the last Friday of every month at 09:00: an RRULE (RFC 5545) with a start, in local time.

The answers are wall-clock times without a zone; `civil.wall_clock.resolve` turns them into instants. No question walks
from the start of a rule, and a rule that never occurs costs no more than the days that are asked about.
"""

from calendar import isleap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from itertools import islice, product
from typing import TypeVar

from civil.rrule import Frequency, InvalidRecurrence, Rule, parse_rule
from civil.zones import EARLIEST, LATEST

__all__ = ["InvalidRecurrence", "Recurrence", "nominal_times", "occurs", "parse_recurrence"]

SOON = timedelta(days=5 * 366)
"""A rule that has not occurred this long after its start counts as one that never does."""
COUNTED_FOR = timedelta(days=100 * 366)

_EARLIEST, _LATEST = EARLIEST.replace(tzinfo=None), LATEST.replace(tzinfo=None)
_EVERY_HOUR = tuple(range(24))
_MONTH_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrence:
    """A rule and its local start time. See `parse_recurrence`."""

    text: str
    """The normalised text, such as "FREQ=MONTHLY;BYDAY=-1FR"."""
    start: datetime
    """Naive. Supplies what the rule leaves open: the time of day, the weekday, the day of the month."""
    last: datetime | None = field(compare=False)
    """The last possible occurrence, from UNTIL or COUNT."""
    rule: Rule = field(repr=False, compare=False)
    """The rule, completed with the parts that it takes from the start."""


def parse_recurrence(text: str, *, start: datetime) -> Recurrence:
    """Parses `FREQ=...`, with or without the prefix `RRULE:`. Raises InvalidRecurrence."""
    assert start.tzinfo is None, "a rule starts at a naive wall-clock time"
    assert start.second == start.microsecond == 0, "a rule starts on the minute"
    rule, normalised = parse_rule(text)
    rule = _completed(rule, start)
    last = rule.until if rule.count is None else _last_of_count(rule, rule.count, start)
    return Recurrence(text=normalised, start=start, last=last, rule=rule)


def nominal_times(recurrence: Recurrence, *, first: datetime, until: datetime) -> Iterator[datetime]:
    """Yields the nominal times with `first` <= time < `until`, in order and each once."""
    start, end = max(first, recurrence.start), until
    if recurrence.last is not None:
        end = min(end, _later(recurrence.last, timedelta.resolution))
    return _between(recurrence.rule, recurrence.start, start, end)


def occurs(recurrence: Recurrence) -> bool:
    """Returns whether the rule occurs at all within five years of its start."""
    start = recurrence.start
    return any(True for _ in nominal_times(recurrence, first=start, until=_later(start, SOON)))


def _completed(rule: Rule, start: datetime) -> Rule:
    """Returns the rule with the parts that its start supplies."""
    hours = rule.hours or (_EVERY_HOUR if rule.frequency == Frequency.HOURLY else (start.hour,))
    rule = replace(rule, hours=hours, minutes=rule.minutes or (start.minute,))
    no_day = not (rule.year_days or rule.month_days or rule.weekdays or rule.nth_weekdays)
    match rule.frequency:
        case Frequency.YEARLY if no_day and not rule.weeks:
            return replace(rule, months=rule.months or frozenset({start.month}), month_days=frozenset({start.day}))
        case Frequency.MONTHLY if no_day:
            return replace(rule, month_days=frozenset({start.day}))
        case Frequency.WEEKLY | Frequency.YEARLY if no_day:
            return replace(rule, weekdays=frozenset({start.weekday()}))
    return rule


def _last_of_count(rule: Rule, count: int, start: datetime) -> datetime:
    last = next(islice(_between(rule, start, start, _later(start, COUNTED_FOR)), count - 1, None), None)
    if last is None:
        raise InvalidRecurrence("COUNT", "is not reached within a hundred years")
    return last


def _between(rule: Rule, anchor: datetime, start: datetime, end: datetime) -> Iterator[datetime]:
    """Yields the times from `start` (included) to `end` (excluded). INTERVAL counts from the anchor."""
    start, end = max(start, _EARLIEST), min(end, _LATEST)
    if start >= end:
        return
    for found in _times(rule, anchor, start.date(), end.date()):
        if found >= end:
            return
        if found >= start:
            yield found


def _later(moment: datetime, by: timedelta) -> datetime:
    return min(moment, _LATEST - by) + by


def _times(rule: Rule, anchor: datetime, first: date, last: date) -> Iterator[datetime]:
    """Yields the times on the days from first to last, and possibly others of the same periods."""
    clock = [time(hour, minute) for hour, minute in product(rule.hours, rule.minutes)]
    match rule.frequency:
        case Frequency.HOURLY:
            return _hourly(rule, anchor, first, last)
        case Frequency.DAILY:
            days = _matching(rule, _on_phase(first.toordinal(), last.toordinal(), anchor.toordinal(), rule.interval))
            return _on_days(days, _chosen(clock, rule.positions))
        case _ if rule.positions:
            periods = _periods(rule, anchor, first, last)
            return (found for period in periods for found in _positioned(rule, period, clock))
        case _:
            asked = range(first.toordinal(), last.toordinal() + 1)
            parts = (_shared(period, asked) for period in _periods(rule, anchor, first, last))
            return (found for part in parts for found in _on_days(_matching(rule, part), clock))


def _hourly(rule: Rule, anchor: datetime, first: date, last: date) -> Iterator[datetime]:
    minutes = _chosen(rule.minutes, rule.positions)
    reached = {(anchor.hour + n) % 24 for n in range(0, 24 * rule.interval, rule.interval)}
    if not minutes or reached.isdisjoint(rule.hours):
        return
    anchor_hour = anchor.toordinal() * 24 + anchor.hour
    if rule.interval >= 24:
        # Most days have no such hour, and none has two.
        for n in _on_phase(first.toordinal() * 24, last.toordinal() * 24 + 23, anchor_hour, rule.interval):
            number, hour = divmod(n, 24)
            if hour in rule.hours and _matches(rule, day := date.fromordinal(number)):
                yield from (datetime.combine(day, time(hour, minute)) for minute in minutes)
        return
    for day in _matching(rule, range(first.toordinal(), last.toordinal() + 1)):
        midnight = day.toordinal() * 24
        hours = (n - midnight for n in _on_phase(midnight, midnight + 23, anchor_hour, rule.interval))
        clock = (time(hour, minute) for hour in hours if hour in rule.hours for minute in minutes)
        yield from (datetime.combine(day, shown) for shown in clock)


def _on_phase(first: int, last: int, anchor: int, interval: int) -> range:
    return range(first + (anchor - first) % interval, last + 1, interval)


def _on_days(days: Iterator[date], clock: Sequence[time]) -> Iterator[datetime]:
    return (datetime.combine(day, shown) for day in days for shown in clock)


def _positioned(rule: Rule, period: range, clock: Sequence[time]) -> Iterator[datetime]:
    """Yields the times that BYSETPOS chooses in a period, which may have half a million times."""
    days = list(_matching(rule, period))
    for place in _chosen(range(len(days) * len(clock)), rule.positions):
        day, shown = divmod(place, len(clock))
        yield datetime.combine(days[day], clock[shown])


def _chosen(items: Sequence[_Item], positions: tuple[int, ...]) -> Sequence[_Item]:
    """Returns the items at these positions (1 is the first, -1 the last), or all items without positions."""
    places = {n - 1 if n > 0 else len(items) + n for n in positions}
    return [items[place] for place in sorted(places) if 0 <= place < len(items)] if positions else items


def _shared(one: range, other: range) -> range:
    return range(max(one.start, other.start), min(one.stop, other.stop))


def _periods(rule: Rule, anchor: datetime, first: date, last: date) -> Iterator[range]:
    """Yields the whole years, months or weeks that overlap the days from first to last, one in every interval."""
    numbers = _on_phase(_period_of(rule, first), _period_of(rule, last), _period_of(rule, anchor), rule.interval)
    return (range(_first_day(rule, number), _first_day(rule, number + 1)) for number in numbers)


def _period_of(rule: Rule, day: date) -> int:
    match rule.frequency:
        case Frequency.YEARLY:
            return day.year
        case Frequency.MONTHLY:
            return day.year * 12 + day.month - 1
        case _:
            return (day.toordinal() - _first_day(rule, 0)) // 7


def _first_day(rule: Rule, period: int) -> int:
    match rule.frequency:
        case Frequency.YEARLY:
            return date(period, 1, 1).toordinal()
        case Frequency.MONTHLY:
            return date(period // 12, period % 12 + 1, 1).toordinal()
        case _:
            return period * 7 + 1 + rule.week_start  # the first day of the calendar was a Monday


def _matching(rule: Rule, days: Iterable[int]) -> Iterator[date]:
    return (day for day in map(date.fromordinal, days) if _matches(rule, day))


def _matches(rule: Rule, day: date) -> bool:
    """Returns whether a day matches; the cheapest test comes first, since COUNT may test a hundred years of days."""
    if rule.months and day.month not in rule.months:
        return False
    if (rule.weekdays or rule.nth_weekdays) and not _is_wanted_weekday(rule, day):
        return False
    if rule.month_days and not _counts(day.day, _days_in_month(day), rule.month_days):
        return False
    if rule.year_days and not _counts(_day_of_year(day), _days_in_year(day.year), rule.year_days):
        return False
    return not rule.weeks or _in_week(rule, day)


def _is_wanted_weekday(rule: Rule, day: date) -> bool:
    weekday = day.weekday()
    return weekday in rule.weekdays or (weekday in rule.numbered_weekdays and _is_nth_weekday(rule, day, weekday))


def _counts(number: int, of: int, wanted: frozenset[int]) -> bool:
    """Returns whether the number is wanted, counted from the beginning or, as a negative one, from the end."""
    return number in wanted or number - of - 1 in wanted


def _in_week(rule: Rule, day: date) -> bool:
    """Returns whether the day's week is wanted. A week belongs to the year that has its fourth day."""
    year = day.year
    fourth = _day_of_year(day) + 3 - (day.weekday() - rule.week_start) % 7
    if fourth < 1:
        year -= 1
        fourth += _days_in_year(year)
    elif fourth > _days_in_year(year):
        fourth -= _days_in_year(year)
        year += 1
    number = (fourth + 6) // 7
    return _counts(number, number + (_days_in_year(year) - fourth) // 7, rule.weeks)


def _is_nth_weekday(rule: Rule, day: date, weekday: int) -> bool:
    if rule.months or rule.frequency is Frequency.MONTHLY:
        number, of = day.day, _days_in_month(day)
    else:
        number, of = _day_of_year(day), _days_in_year(day.year)
    nth = rule.nth_weekdays
    return ((number + 6) // 7, weekday) in nth or (-((of - number) // 7 + 1), weekday) in nth


def _day_of_year(day: date) -> int:
    return day.toordinal() - _days_before(day.year)


@lru_cache(maxsize=256)
def _days_before(year: int) -> int:
    return date(year, 1, 1).toordinal() - 1


def _days_in_month(day: date) -> int:
    return 29 if day.month == 2 and isleap(day.year) else _MONTH_LENGTHS[day.month - 1]


def _days_in_year(year: int) -> int:
    return 366 if isleap(year) else 365
