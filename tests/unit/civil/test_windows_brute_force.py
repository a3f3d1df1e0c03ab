"""Compares send windows with a walk over the minutes of UTC that reads the wall clock."""

from collections.abc import Iterator, Sequence
from datetime import time, timedelta
from itertools import islice, pairwise, takewhile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from civil.windows import Opening, SendWindow, is_open, openings
from civil.zones import find_zone
from testkit.zones.wall_clock import DAY, Change, WallClock, changes_by_kind, clock, instant_of, moments, seconds

WEEK = 7 * DAY


def minutes_of(window: SendWindow) -> set[int]:
    """Returns the minutes of a week, from Thursday on, as 1970 began."""
    start = window.start.hour * 60 + window.start.minute
    end = DAY if window.end is None else window.end.hour * 60 + window.end.minute
    return {(day - 4) % 7 * DAY + minute for day in window.days for minute in range(start, end)}


def runs(window: SendWindow, zone: WallClock, walk: range) -> list[Opening]:
    """Returns the runs of minutes in the window. Runs at either end of the walk may be longer."""
    return runs_of(window, [wall % WEEK for wall in zone.walls(walk)], walk.start)


def runs_of(window: SendWindow, shown: list[int], first: int) -> list[Opening]:
    wanted = minutes_of(window)
    inside = [False, *map(wanted.__contains__, shown), False]
    edges = [n for n, (before, after) in enumerate(pairwise(inside), first) if before != after]
    return [Opening(instant_of(start), instant_of(end)) for start, end in zip(edges[::2], edges[1::2], strict=True)]


def asked(window: SendWindow, name: str, after: int, until: int) -> list[Opening]:
    """Returns the openings that end after the first instant and begin before the second."""
    found = openings(window, find_zone(name), after=instant_of(after))
    return list(takewhile(lambda opening: opening.start < instant_of(until), found))


def clipped(found: Sequence[Opening], walk: range) -> Iterator[Opening]:
    first, last = instant_of(walk.start), instant_of(walk.stop)
    return (Opening(max(start, first), min(end, last)) for start, end in found)


def at(minute: int) -> time:
    return time(*divmod(minute % DAY, 60))


def windows_around(change: Change) -> list[SendWindow]:
    """Returns windows within, across, up to and from the edges of a gap or overlap, on its days and on every day."""
    edges = [(change.at + change.before) // 60 % DAY, (change.at + change.after) // 60 % DAY]
    first, last = min(edges), max(edges)
    middle = (first + last) // 2
    bounds = [(first, last), (first, middle), (first - 20, middle), (middle, last + 20), (first + 1, last - 1)]
    bounds += [(0, first), (last, DAY), (0, last), (first, DAY), (0, DAY)]
    today = (change.at + change.before) // 86_400 + 4
    days = [
        frozenset({today % 7}),
        frozenset({(today + 1) % 7}),
        frozenset(range(7)) - {today % 7},
        frozenset(range(7)),
    ]
    hours = [(start, end) for start, end in bounds if 0 <= start < end <= DAY]
    return [
        SendWindow(days=some, start=at(start), end=None if end == DAY else at(end))
        for some in days
        for start, end in hours
        if len(some) < 7 or end - start < DAY
    ]


def test_windows_around_every_change_of_every_zone() -> None:
    """Asks about seven of the windows at each change; other years ask about the others."""
    kinds = changes_by_kind(2010, 2037)
    assert sum(map(len, kinds.values())) > 5_000
    for turn, (change, names) in enumerate(kinds.items()):
        middle = change.at // 60
        walk = range(middle - 30 * 60, middle + 30 * 60)
        shown = [wall % WEEK for wall in clock(names[0]).walls(walk)]
        for window in windows_around(change)[turn % 5 :: 5]:
            expected = runs_of(window, shown, walk.start)
            for name in names:
                found = asked(window, name, walk.start, walk.stop)
                assert list(clipped(found, walk)) == expected, (name, change, window)


def test_every_minute_around_a_change_is_in_an_opening_or_closed() -> None:
    for change, names in list(changes_by_kind(2010, 2037).items())[::10]:
        zone, name = clock(names[0]), names[0]
        for window in windows_around(change)[::3]:
            wanted = minutes_of(window)
            for minute in range(change.at // 60 - 90, change.at // 60 + 90, 7):
                inside = zone.wall(minute) % WEEK in wanted
                wall = instant_of(zone.wall(minute)).replace(tzinfo=None)
                assert window.contains(wall) == is_open(window, find_zone(name), instant_of(minute)) == inside


clock_minutes = st.sampled_from([0, 1, 60, 119, 120, 121, 150, 180, 539, 720, 1380, 1439]) | st.integers(0, DAY - 1)


@st.composite
def windows(draw: st.DrawFn) -> SendWindow:
    start, end = draw(clock_minutes), draw(clock_minutes | st.just(DAY))
    start, end = min(start, end), max(start, end) + (start == end)
    days = frozenset(draw(st.sets(st.integers(0, 6), min_size=1)))
    if len(days) == 7 and (start, end) == (0, DAY):
        days -= {3}
    return SendWindow(days=days, start=at(start), end=None if end == DAY else at(end))


@settings(deadline=None, max_examples=300)
@given(moments(), windows(), st.integers(0, 9 * DAY))
def test_any_window_in_any_zone(moment: tuple[str, int], window: SendWindow, length: int) -> None:
    """Expects whole openings, also of one that began before the question and one that ends after it."""
    name, after = moment
    walk = range(after - 15 * DAY, after + length + 15 * DAY)
    first, last = instant_of(after), instant_of(after + length)
    expected = [run for run in runs(window, clock(name), walk) if run.end > first and run.start < last]
    assert asked(window, name, after, after + length) == expected


@settings(deadline=None, max_examples=300)
@given(moments(), windows(), st.integers(0, 59), st.integers(1, 40))
def test_openings_do_not_depend_on_the_second_of_the_question(
    moment: tuple[str, int], window: SendWindow, second: int, count: int
) -> None:
    name, minute = moment
    after = instant_of(minute) + timedelta(seconds=second)
    zone = find_zone(name)
    found = list(islice(openings(window, zone, after=after), count))
    assert is_open(window, zone, after) == (found[0].start <= after)
    for one in found:
        assert next(openings(window, zone, after=one.start)) == one
        assert next(openings(window, zone, after=one.end - timedelta.resolution)) == one
        assert not is_open(window, zone, one.end)
        assert not is_open(window, zone, one.start - timedelta.resolution)
    assert found[1:] == list(islice(openings(window, zone, after=found[0].end), count - 1))


@settings(deadline=None, max_examples=200)
@given(moments(), st.sets(st.integers(0, 6), min_size=1), st.times(), st.times() | st.none())
def test_windows_are_exact_to_the_microsecond(
    moment: tuple[str, int], days: set[int], start: time, end: time | None
) -> None:
    if end is not None and start >= end:
        start, end = end, start
    if start == end:
        end = None
    window = SendWindow(days=frozenset(days), start=start, end=end)
    zone, after = find_zone(moment[0]), instant_of(moment[1])
    for one in islice(openings(window, zone, after=after), 5):
        for edge, inside in [(one.start, True), (one.end - timedelta.resolution, True), (one.end, False)]:
            assert is_open(window, zone, edge) is inside or window.always


@pytest.mark.parametrize("name", ["Africa/Casablanca", "Antarctica/Troll", "Australia/Lord_Howe", "America/Nuuk"])
def test_openings_through_two_years(name: str) -> None:
    for window in (
        SendWindow(days=frozenset({0, 6}), start=time(2, 15), end=time(3, 30)),
        SendWindow(days=frozenset(range(7)), start=time(0, 1), end=None),
    ):
        walk = range(seconds(2024) // 60, seconds(2026) // 60)
        found = asked(window, name, walk.start, walk.stop)
        assert list(clipped(found, walk)) == runs(window, clock(name), walk)
