"""Compares slots and days with a walk over the minutes of UTC that reads the compiled database itself."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import date, time, timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from civil.days import day_bounds, local_day
from civil.weekly import Occurrence, WeeklySlot, occurrences
from civil.windows import SendWindow
from civil.zones import find_zone
from testkit.zones.wall_clock import (
    DAY,
    EPOCH,
    WEEK,
    Change,
    WallClock,
    changes_by_kind,
    clock,
    distinct_zones,
    instant_of,
    moments,
    seconds,
    weekly_times,
)


def slot_at(wall: int) -> WeeklySlot:
    hour, minute = divmod(wall % DAY, 60)
    return WeeklySlot(day=(wall // DAY + 4) % 7, hour=hour, minute=minute)


def answer(minute: int, wall: int, nominal: int) -> Occurrence:
    offset, shift = timedelta(minutes=wall - minute), timedelta(minutes=wall - nominal)
    return Occurrence(instant_of(minute), offset, shift, slot_at(nominal))


def answers(slots: Iterable[WeeklySlot], zone: WallClock, after: int, until: int) -> list[Occurrence]:
    wanted = {slot.day * DAY + slot.hour * 60 + slot.minute for slot in slots}
    return [answer(*shown) for shown in weekly_times(wanted, zone, after, until)]


def asked(slots: Iterable[WeeklySlot], name: str, after: int, until: int) -> list[Occurrence]:
    return list(occurrences(slots, find_zone(name), after=instant_of(after), until=instant_of(until)))


def edge_walls(change: Change) -> set[int]:
    """Returns local times at both sides of both edges of a gap or overlap, inside it, and at the midnights around."""
    edges = [(change.at + change.before) // 60, (change.at + change.after) // 60]
    edges += [edge // DAY * DAY + midnight for edge in edges for midnight in (0, DAY)]
    return {edge + near for edge in edges for near in (-61, -60, -31, -30, -1, 0, 1, 15, 29, 30, 31, 59, 60, 61)}


def test_changes_of_a_zone_are_days_apart_and_a_day_at_most() -> None:
    """Checks the assumption behind civil: one change between two daily readings, none within the effect of another."""
    for name in distinct_zones():
        changes = clock(name).changes
        assert all(abs(change.after - change.before) <= 86_400 for change in changes), name
        assert all(later.at - earlier.at > 3 * 86_400 for earlier, later in pairwise(changes)), name


def test_every_change_of_every_zone_is_found_to_the_second() -> None:
    start, end = EPOCH, EPOCH + timedelta(seconds=seconds(2038))
    for name in distinct_zones():
        stretches = list(find_zone(name).stretches(start, end))
        assert (stretches[0].start, stretches[-1].end) == (start, end)
        assert all(earlier.end == later.start for earlier, later in pairwise(stretches))
        found = [(int((s.start - EPOCH).total_seconds()), s.before, s.offset) for s in stretches if s.jump]
        assert found == [
            (change.at, timedelta(seconds=change.before), timedelta(seconds=change.after))
            for change in clock(name).changes
            if 0 < change.at < seconds(2038)
        ], name


def test_slots_around_every_change_of_every_zone() -> None:
    """Asks at once, and in two halves that meet while the jump still has an effect."""
    kinds = changes_by_kind(2010, 2037)
    assert sum(map(len, kinds.values())) > 5_000
    for change, names in kinds.items():
        slots = {slot_at(wall) for wall in edge_walls(change)}
        middle = change.at // 60 + abs(change.after - change.before) // 120
        after, until = middle - 30 * 60, middle + 54 * 60
        expected = answers(slots, clock(names[0]), after, until)
        for name in names:
            assert asked(slots, name, after, until) == expected, (name, change)
            halves = asked(slots, name, after, middle) + asked(slots, name, middle, until)
            assert halves == expected, (name, change)


def test_a_daily_slot_occurs_once_on_every_existing_date() -> None:
    daily = [WeeklySlot(day=day, hour=2, minute=30) for day in range(7)]
    after, until = seconds(2010) // 60, seconds(2038) // 60
    for name in distinct_zones():
        found = asked(daily, name, after, until)
        dates = [(one.instant + (one.offset - one.shift)).toordinal() for one in found]
        steps = {later - earlier for earlier, later in pairwise(dates)}
        assert steps == ({1, 2} if name in {"Pacific/Apia", "Pacific/Fakaofo"} else {1}), name


def test_days_around_every_change_of_every_zone() -> None:
    for change, names in changes_by_kind(2010, 2037).items():
        middle = change.at // 60
        walk = range(middle - 3 * DAY, middle + 3 * DAY)
        shown = defaultdict[int, list[int]](list)
        for minute, wall in zip(walk, clock(names[0]).walls(walk), strict=True):
            shown[wall // DAY].append(minute)
        today = clock(names[0]).wall(middle) // DAY
        for day in range(today - 1, today + 2):
            minutes = shown[day] or [shown[day + 1][0], shown[day + 1][0] - 1]
            expected = instant_of(minutes[0]), instant_of(minutes[-1] + 1)
            for name in names:
                assert day_bounds(date(1970, 1, 1) + timedelta(days=day), find_zone(name)) == expected, (name, change)


weekly_slots = st.builds(
    WeeklySlot, day=st.integers(0, 6), hour=st.integers(0, 23), minute=st.sampled_from([0, 1, 15, 30, 45, 59])
)


@settings(deadline=None, max_examples=300)
@given(moments(), st.lists(weekly_slots, min_size=1, max_size=40), st.integers(0, 9 * DAY))
def test_any_slots_in_any_zone(moment: tuple[str, int], slots: list[WeeklySlot], length: int) -> None:
    name, after = moment
    assert asked(slots, name, after, after + length) == answers(slots, clock(name), after, after + length)


times_of_day = st.builds(time, st.integers(0, 23), st.sampled_from([0, 1, 15, 30, 45, 59]))
windows = st.builds(
    lambda days, ends, is_until_midnight: SendWindow(
        days=days, start=min(ends), end=None if is_until_midnight else max(ends)
    ),
    st.frozensets(st.integers(0, 6), min_size=1),
    st.lists(times_of_day, min_size=2, max_size=2, unique=True),
    st.booleans(),
)


@settings(deadline=None, max_examples=500)
@given(moments(), st.lists(weekly_slots, max_size=40), windows, st.integers(0, 20 * DAY))
def test_a_listing_within_a_window_leaves_out_the_times_outside_it(
    moment: tuple[str, int], slots: list[WeeklySlot], window: SendWindow, length: int
) -> None:
    name, after = moment
    start, end = instant_of(after), instant_of(after + length)
    within = list(occurrences(slots, find_zone(name), after=start, until=end, within=window))
    assert within == [each for each in asked(slots, name, after, after + length) if window.contains(each.local)]


def test_shifted_slots_around_every_change_are_judged_by_the_clocks() -> None:
    window = SendWindow(days=frozenset(range(7)), start=time(3), end=None)
    shifted_in = 0
    for change, names in changes_by_kind(2010, 2037).items():
        slots = {slot_at(wall) for wall in edge_walls(change)}
        after, until = instant_of(change.at // 60 - 30 * 60), instant_of(change.at // 60 + 54 * 60)
        zone = find_zone(names[0])
        found = list(occurrences(slots, zone, after=after, until=until, within=window))
        expected = [each for each in occurrences(slots, zone, after=after, until=until) if window.contains(each.local)]
        assert found == expected, (names[0], change)
        shifted_in += sum(not each.slot.is_within(window) for each in found)
    assert shifted_in > 100


@settings(deadline=None, max_examples=200)
@given(moments(), st.lists(weekly_slots, max_size=20), st.integers(0, 60 * DAY), st.integers(0, 60 * DAY))
def test_neighbouring_intervals_add_up(
    moment: tuple[str, int], slots: list[WeeklySlot], first: int, second: int
) -> None:
    name, after = moment
    middle, until = after + first, after + first + second
    whole = asked(slots, name, after, until)
    assert whole == asked(slots, name, after, middle) + asked(slots, name, middle, until)
    assert all(earlier.instant < later.instant for earlier, later in pairwise(whole))


@settings(deadline=None, max_examples=300)
@given(moments())
def test_an_instant_is_within_the_bounds_of_its_day(moment: tuple[str, int]) -> None:
    name, minute = moment
    day = local_day(instant_of(minute), find_zone(name))
    start, end = day_bounds(day, find_zone(name))
    assert (day - date(1970, 1, 1)).days == clock(name).wall(minute) // DAY
    assert start <= instant_of(minute) < end
    assert local_day(start, find_zone(name)) == day == local_day(end - timedelta.resolution, find_zone(name))


@pytest.mark.parametrize("name", ["Africa/Casablanca", "Antarctica/Troll", "Australia/Lord_Howe", "America/Nuuk"])
def test_every_quarter_of_an_hour_through_two_years(name: str) -> None:
    every_quarter = [slot_at(wall) for wall in range(0, WEEK, 15)]
    after, until = seconds(2024) // 60, seconds(2026) // 60
    assert asked(every_quarter, name, after, until) == answers(every_quarter, clock(name), after, until)
