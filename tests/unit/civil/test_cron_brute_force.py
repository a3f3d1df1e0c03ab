"""Compares firings with a walk over the minutes of UTC and a second parser, which share no code with civil."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from itertools import cycle, islice, pairwise, takewhile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from civil.cron import Dst, Firing, firings, parse_cron
from civil.zones import find_zone
from testkit.zones.wall_clock import (
    DAY,
    EPOCH,
    WallClock,
    changes_by_kind,
    clock,
    first_minutes,
    instant_of,
    moments,
    seconds,
)

MINUTE, HOUR, DATE, MONTH, WEEKDAY = (0, 59), (0, 23), (1, 31), (1, 12), (0, 6)
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
NUMBERS = {name: number for names in ([None, *MONTHS], WEEKDAYS) for number, name in enumerate(names) if name}


def matches(field: str, value: int, bounds: tuple[int, int]) -> bool:
    return any(_item_matches(item, value, *bounds) for item in field.split(","))


def _item_matches(item: str, value: int, least: int, most: int) -> bool:
    span, _, step = item.partition("/")
    first, _, last = f"{least}-{most}".partition("-") if span in "*?" else span.partition("-")
    low = _number(first)
    high = _number(last) if last else most if step else low
    return low <= value <= high and (value - low) % int(step or 1) == 0


def _number(text: str) -> int:
    return NUMBERS[text.lower()] if text.isalpha() else int(text)


def is_star(field: str) -> bool:
    return any(item in {"*", "?", "*/1", "?/1"} for item in field.split(","))


class Expression:
    """A second parser: the local times that an expression asks for."""

    def __init__(self, text: str) -> None:
        minute, hour, self._day, self._month, self._weekday = text.split()
        hours = [n for n in range(24) if matches(hour, n, HOUR)]
        self._times = {h * 60 + n for n in range(60) if matches(minute, n, MINUTE) for h in hours}
        self._dates: dict[int, bool] = {}

    def fires_at(self, wall: int) -> bool:
        day, minute = divmod(wall, DAY)
        return minute in self._times and self.fires_on(day)

    def fires_on(self, day: int) -> bool:
        """Returns whether a day, counted from 1970, matches."""
        if day not in self._dates:
            self._dates[day] = self._matches_date(date(1970, 1, 1) + timedelta(days=day))
        return self._dates[day]

    def _matches_date(self, day: date) -> bool:
        if not matches(self._month, day.month, MONTH):
            return False
        both = matches(self._day, day.day, DATE), matches(self._weekday, day.isoweekday() % 7, WEEKDAY)
        return all(both) if is_star(self._day) or is_star(self._weekday) else any(both)


def nominal(wall: int) -> datetime:
    return (EPOCH + timedelta(minutes=wall)).replace(tzinfo=None)


class Walk:
    """The local time of each minute in a period of UTC, and for more than a day on either side."""

    def __init__(self, zone: WallClock, after: int, until: int) -> None:
        minutes = range(after - 30 * 60, until + 30 * 60)
        walls = zone.walls(minutes)
        self._asked = [(n, wall) for n, wall in zip(minutes, walls, strict=True) if after < n <= until]
        self._first = first_minutes(minutes, walls)
        dates = {wall // DAY for wall in self._first}
        self._shifted = {
            minute: skipped
            for before, later in pairwise(walls)
            if later > before + 1
            for skipped in range(before + 1, later)
            if skipped not in self._first and skipped // DAY in dates
            if after < (minute := self._first[skipped + later - before - 1]) <= until
        }

    def firings(self, expression: Expression, dst: Dst) -> list[Firing]:
        found = self._under_cron(expression) if dst is Dst.CRON else self._under_once(expression)
        return [Firing(instant_of(minute), *found[minute]) for minute in sorted(found)]

    def _under_cron(self, expression: Expression) -> dict[int, tuple[datetime, bool]]:
        return {
            minute: (nominal(wall), self._first[wall] != minute)
            for minute, wall in self._asked
            if expression.fires_at(wall)
        }

    def _under_once(self, expression: Expression) -> dict[int, tuple[datetime, bool]]:
        shifted = {
            minute: (nominal(skipped), False)
            for minute, skipped in self._shifted.items()
            if expression.fires_at(skipped)
        }
        own = {
            minute: (nominal(wall), False)
            for minute, wall in self._asked
            if self._first[wall] == minute and expression.fires_at(wall)
        }
        return shifted | own


def asked(text: str, name: str, after: int, until: int, dst: Dst) -> list[Firing]:
    found = firings(parse_cron(text), find_zone(name), after=instant_of(after), dst=dst)
    return list(takewhile(lambda firing: firing.instant <= instant_of(until), found))


def test_firings_around_every_change_of_every_zone() -> None:
    """Asks from before each change, and again at the end of its effect.

    One zone of those that change alike is asked about every expression, the others about one each.
    """
    texts = ["30 2 * * *", "0 * * * *", "*/15 1-3 * * 0", "*/10 0,23 1,31 * fri-sat", "59,58 * */2 * 1"]
    cases = [(text, Expression(text), dst) for text in texts for dst in Dst]
    for change, (first, *others) in changes_by_kind(2010, 2037).items():
        length = abs(change.after - change.before) // 60
        after, late, until = (change.at // 60 + n for n in (-length - 180, length * 9 // 10, length + 180))
        walk = Walk(clock(first), after, until)
        expected = {(text, dst): walk.firings(expression, dst) for text, expression, dst in cases}
        for name, (text, dst) in [*((first, case) for case in expected), *zip(others, cycle(expected), strict=False)]:
            answers = expected[text, dst]
            assert asked(text, name, after, until, dst) == answers, (text, name, change)
            at_last = [firing for firing in answers if firing.instant > instant_of(late)]
            assert asked(text, name, late, until, dst) == at_last, (text, name, change)


def fields(bounds: tuple[int, int], names: Sequence[str] = ()) -> st.SearchStrategy[str]:
    """Draws lists of up to three stars, numbers, names and ranges, with and without steps."""
    written = st.integers(*bounds).map(str)
    if names:
        written |= st.sampled_from([spelling for name in names for spelling in (name, name.title())])
    ordered = st.tuples(written, written).map(lambda pair: sorted(pair, key=_number)).map("-".join)
    spans = st.sampled_from(["*", "?"]) | written | ordered
    steps = st.integers(1, bounds[1] + 2).map(str)
    items = spans | st.tuples(spans, steps).map("/".join)
    return items | st.lists(items, min_size=1, max_size=3).map(",".join)


dates = st.tuples(fields(DATE), fields(MONTH, MONTHS), fields(WEEKDAY, WEEKDAYS)).map(" ".join)
expressions = st.tuples(fields(MINUTE), fields(HOUR), st.just("* * *") | dates).map(" ".join)


@settings(deadline=None, max_examples=300)
@given(moments(), expressions, st.integers(0, 4 * DAY), st.sampled_from(Dst))
def test_any_expression_in_any_zone(moment: tuple[str, int], text: str, length: int, dst: Dst) -> None:
    name, after = moment
    expected = Walk(clock(name), after, after + length).firings(Expression(text), dst)
    assert asked(text, name, after, after + length, dst) == expected


@settings(deadline=None, max_examples=200)
@given(moments(), st.sampled_from(["*/15 0-4", "0,59 *", "30 1,2,3"]), fields(MINUTE), st.sampled_from(Dst))
def test_seconds_are_seconds_of_the_minutes_that_fire(
    moment: tuple[str, int], times: str, seconds: str, dst: Dst
) -> None:
    name, minute = moment
    after, until = instant_of(minute), instant_of(minute + DAY)
    expected = [
        (fires.instant + timedelta(seconds=n), fires.nominal + timedelta(seconds=n), fires.second_pass)
        for fires in asked(f"{times} * * *", name, minute - 1, minute + DAY, dst)
        for n in range(60)
        if matches(seconds, n, MINUTE)
    ]
    cron = parse_cron(f"{seconds} {times} * * *", seconds=True)
    found = takewhile(lambda fires: fires.instant <= until, firings(cron, find_zone(name), after=after, dst=dst))
    assert [fires[:3] for fires in found] == [fires for fires in expected if after < fires[0] <= until]


@settings(deadline=None, max_examples=200)
@given(dates, st.dates(date(1980, 1, 1), date(2110, 1, 1)))
def test_the_next_date_up_to_the_end_of_the_fifth_year(text: str, day: date) -> None:
    expression = Expression(f"0 0 {text}")
    today = (day - EPOCH.date()).days
    last = (date(day.year + 5, 12, 31) - EPOCH.date()).days
    expected = next((EPOCH + timedelta(days=n) for n in range(today + 1, last + 1) if expression.fires_on(n)), None)
    found = next(firings(parse_cron(f"0 0 {text}"), find_zone("UTC"), after=instant_of(today * DAY)), None)
    assert (found and found.instant) == expected


@settings(deadline=None, max_examples=200)
@given(moments(), expressions, st.integers(0, 59_999_999), st.sampled_from(Dst))
def test_the_next_firing_does_not_depend_on_where_the_search_began(
    moment: tuple[str, int], text: str, microseconds: int, dst: Dst
) -> None:
    name, minute = moment
    cron, zone = parse_cron(text), find_zone(name)
    after = instant_of(minute) + timedelta(microseconds=microseconds)
    found = list(islice(firings(cron, zone, after=after, dst=dst), 20))
    for earlier, later in pairwise(found):
        assert earlier.instant < later.instant
        assert next(firings(cron, zone, after=earlier.instant, dst=dst)) == later
        assert next(firings(cron, zone, after=later.instant - timedelta.resolution, dst=dst)) == later
    assert len({firing.key for firing in found}) == len(found)


@pytest.mark.parametrize("name", ["America/New_York", "Australia/Lord_Howe", "America/Nuuk", "Africa/Casablanca"])
def test_keys_are_unique_across_all_jumps_of_the_clocks(name: str) -> None:
    every_five_minutes = firings(parse_cron("*/5 * * * *"), find_zone(name), after=instant_of(seconds(2024) // 60))
    keys = [firing.key for firing in islice(every_five_minutes, 400 * 24 * 12)]
    assert len(set(keys)) == len(keys)
