"""Local times that new time zone data moves: named cases, and a walk over the minutes of both versions."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from civil.weekly import WeeklySlot, occurrences
from civil.zones import Zone, find_zone, zone_data, zone_from_data, zone_names
from schedule_service.domain.calendars.rule_targets import times_of_week
from schedule_service.domain.zone_changes.moved_times import (
    HORIZON,
    MovedTime,
    NominalTimes,
    first_moved,
    moved_times,
    zones_differ,
)
from testkit.zones.compiled_zones import compiled_zone
from testkit.zones.wall_clock import DAY, EPOCH, WallClock, distinct_zones, instant_of
from testkit.zones.wall_clock import weekly_times as weekly_walk

NOW = datetime(2026, 10, 20, 12, 0, tzinfo=UTC)
HOUR, TICK = timedelta(hours=1), timedelta.resolution
MONDAY_NINE = WeeklySlot(day=1, hour=9, minute=0)

# Until 2026 clocks in Vancouver went back in November; since then they stay.
VANCOUVER = find_zone("America/Vancouver")
VANCOUVER_BEFORE = zone_from_data(
    "America/Vancouver", compiled_zone("PST8PDT,M3.2.0,M11.1.0", offset=timedelta(hours=-8))
)


def weekly_times(slots: Iterable[WeeklySlot]) -> NominalTimes:
    return partial(times_of_week, sorted(set(slots)))


def made_zone(rule: str, *changes: tuple[datetime, timedelta], offset: timedelta = timedelta()) -> Zone:
    return zone_from_data("Etc/UTC", compiled_zone(rule, offset=offset, changes=changes))


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


def test_a_slot_moves_by_an_hour_where_winter_time_was_abolished() -> None:
    moved = first_moved(weekly_times([MONDAY_NINE]), VANCOUVER_BEFORE, VANCOUVER, now=NOW)
    assert len(moved) == 10
    assert moved[0] == MovedTime(datetime(2026, 11, 2, 9, 0), utc(2026, 11, 2, 17), utc(2026, 11, 2, 16))
    assert {earlier.nominal - later.nominal for later, earlier in pairwise(moved)} == {timedelta(days=7)}


def test_the_list_continues_where_the_zones_differ_again() -> None:
    moved = list(moved_times(weekly_times([MONDAY_NINE]), VANCOUVER_BEFORE, VANCOUVER, start=NOW, end=NOW + HORIZON))
    nominal = [each.nominal for each in moved]
    assert datetime(2027, 3, 8, 9, 0) in nominal
    assert datetime(2027, 3, 15, 9, 0) not in nominal
    assert datetime(2027, 11, 8, 9, 0) in nominal
    assert nominal == sorted(set(nominal))


def test_nothing_moves_where_the_zones_agree() -> None:
    summer = weekly_times([WeeklySlot(day=3, hour=9, minute=0)])
    assert list(moved_times(summer, VANCOUVER_BEFORE, VANCOUVER, start=NOW, end=utc(2026, 10, 31))) == []
    assert not zones_differ(VANCOUVER_BEFORE, VANCOUVER, start=NOW, end=utc(2026, 10, 28))


def test_zones_are_compared_by_their_times_not_their_bytes() -> None:
    renamed = zone_from_data("Europe/Berlin", zone_data("Europe/Berlin").replace(b"LMT", b"XYZ"))
    assert renamed.data != zone_data("Europe/Berlin")
    assert not zones_differ(renamed, find_zone("Europe/Berlin"), start=NOW, end=NOW + HORIZON)
    assert first_moved(weekly_times([MONDAY_NINE]), renamed, find_zone("Europe/Berlin"), now=NOW) == ()


def test_a_change_beyond_the_horizon_moves_nothing_yet() -> None:
    old = made_zone("ZZZ0")
    far, near = (made_zone("ABC-1", (NOW + ahead, HOUR)) for ahead in (timedelta(days=750), timedelta(days=700)))
    assert not zones_differ(old, far, start=NOW, end=NOW + HORIZON)
    assert zones_differ(old, near, start=NOW, end=NOW + HORIZON)
    assert first_moved(weekly_times([MONDAY_NINE]), old, far, now=NOW) == ()
    assert first_moved(weekly_times([MONDAY_NINE]), old, near, now=NOW)[0].nominal > datetime(2028, 9, 1)


def test_a_time_in_a_new_gap_keeps_its_instant() -> None:
    gap = utc(2026, 11, 1, 2)
    jumps = made_zone("ZZZ0", (gap, HOUR), (gap + timedelta(days=6), timedelta()))
    in_the_gap = weekly_times([WeeklySlot(day=0, hour=2, minute=30)])
    assert zones_differ(made_zone("ZZZ0"), jumps, start=NOW, end=NOW + HORIZON)
    assert list(moved_times(in_the_gap, made_zone("ZZZ0"), jumps, start=NOW, end=NOW + HORIZON)) == []


def test_a_time_that_coincides_with_another_in_a_new_gap_is_dropped() -> None:
    gap = utc(2026, 11, 1, 2)
    jumps = made_zone("ZZZ0", (gap, HOUR), (gap + timedelta(days=6), timedelta()))
    both = weekly_times([WeeklySlot(day=0, hour=2, minute=30), WeeklySlot(day=0, hour=3, minute=30)])
    moved = list(moved_times(both, made_zone("ZZZ0"), jumps, start=NOW, end=NOW + HORIZON))
    assert moved == [
        MovedTime(datetime(2026, 11, 1, 2, 30), utc(2026, 11, 1, 2, 30), None),
        MovedTime(datetime(2026, 11, 1, 3, 30), utc(2026, 11, 1, 3, 30), utc(2026, 11, 1, 2, 30)),
    ]
    assert list(moved_times(both, jumps, made_zone("ZZZ0"), start=NOW, end=NOW + HORIZON)) == [
        MovedTime(nominal, new, old) for nominal, old, new in moved
    ]


def test_a_date_skipped_by_new_data_has_no_times() -> None:
    before, after = timedelta(hours=-11), timedelta(hours=13)
    leaves = utc(2026, 11, 6, 11)  # Friday 00:00 becomes Saturday 00:00
    old = made_zone("AAA11", offset=before)
    new = made_zone("BBB-13", (leaves, after), offset=before)
    friday = weekly_times([WeeklySlot(day=5, hour=10, minute=0)])
    first = next(moved_times(friday, old, new, start=NOW, end=NOW + HORIZON))
    assert first == MovedTime(datetime(2026, 11, 6, 10, 0), utc(2026, 11, 6, 21), None)


def test_a_past_time_that_moves_to_the_future_is_listed() -> None:
    """Compares a time that is past by the old data and ahead by the new, and the other way round."""
    ahead = weekly_times([MONDAY_NINE])
    between = utc(2026, 11, 2, 16, 30)
    for old, new in ((VANCOUVER, VANCOUVER_BEFORE), (VANCOUVER_BEFORE, VANCOUVER)):
        assert next(moved_times(ahead, old, new, start=between, end=NOW + HORIZON)).nominal.day == 2
        after = between + HOUR
        assert next(moved_times(ahead, old, new, start=after, end=NOW + HORIZON)).nominal.day == 9


def test_times_are_expanded_only_where_the_zones_differ() -> None:
    asked: list[datetime] = []
    times = weekly_times([WeeklySlot(day=day, hour=hour, minute=0) for day in range(7) for hour in range(24)])

    def counted(first: datetime, until: datetime) -> Iterator[datetime]:
        for nominal in times(first, until):
            asked.append(nominal)
            yield nominal

    far = made_zone("ABC-1", (NOW + timedelta(days=700), HOUR))
    assert len(list(islice(moved_times(counted, made_zone("ZZZ0"), far, start=NOW, end=NOW + HORIZON), 10))) == 10
    assert len(asked) < 24 * 10
    asked.clear()
    assert list(moved_times(counted, VANCOUVER, VANCOUVER, start=NOW, end=NOW + HORIZON)) == []
    assert asked == []


# Random zones


def clock_times(least: int, most: int) -> st.SearchStrategy[str]:
    """Generates times of day as POSIX writes them, in half hours."""
    return st.integers(2 * least, 2 * most).map(clock_time)


def clock_time(halves: int) -> str:
    return f"{'-' if halves < 0 else ''}{abs(halves) // 2}:{30 * (abs(halves) % 2):02}"


# Keeps any two clock changes of a zone more than three days apart.
MONTHS = st.tuples(st.integers(1, 12), st.integers(1, 12)).filter(lambda both: 1 < abs(both[0] - both[1]) < 11)


@st.composite
def rules(draw: st.DrawFn, halves_west: int) -> bytes:
    """Generates a zone with this standard time; most have summer time too."""
    name, offset = f"AAA{clock_time(halves_west)}", HOUR / 2 * -halves_west
    if draw(st.integers(0, 3)) == 0:
        return compiled_zone(name, offset=offset)
    at = clock_times(-3, 26)
    turns = [f"M{month}.{draw(st.integers(1, 5))}.{draw(st.integers(0, 6))}/{draw(at)}" for month in draw(MONTHS)]
    return compiled_zone(",".join([f"{name}BBB", *turns]), offset=offset)


@st.composite
def pairs_of_zones(draw: st.DrawFn) -> tuple[bytes, bytes]:
    if draw(st.booleans()):
        names = st.sampled_from(distinct_zones())
        return zone_data(draw(names)), zone_data(draw(names))
    halves_west = draw(st.integers(-26, 22))
    return draw(rules(halves_west)), draw(rules(halves_west))


def instants(data: bytes, wanted: set[int], start: int, end: int) -> dict[int, int]:
    """Maps each local minute to its minute of UTC, by a walk over every minute."""
    return {shown.nominal: shown.minute for shown in weekly_walk(wanted, WallClock(data), start, end)}


@settings(max_examples=80, deadline=None)
@given(
    pair=pairs_of_zones(),
    slots=st.lists(
        st.builds(WeeklySlot, day=st.integers(0, 6), hour=st.integers(0, 23), minute=st.sampled_from((0, 15, 30, 59))),
        max_size=12,
    ),
    anywhere=st.integers(0, 365 * DAY),
    near=st.integers(0, 10**6),
    is_near=st.booleans(),
    length=st.integers(DAY // 2, 9 * DAY),
)
def test_the_moved_times_match_a_walk_over_every_minute(
    pair: tuple[bytes, bytes], slots: list[WeeklySlot], anywhere: int, near: int, is_near: bool, length: int
) -> None:
    base = int((utc(2026, 1, 1) - EPOCH) / timedelta(minutes=1))
    changes = [
        change.at // 60
        for data in pair
        for change in WallClock(data).changes
        if 0 <= change.at // 60 - base < 365 * DAY
    ]
    start = changes[near % len(changes)] - length // 2 if is_near and changes else base + anywhere
    end = start + length
    wanted = {slot.day * DAY + slot.hour * 60 + slot.minute for slot in slots}
    old, new = (instants(data, wanted, start - 4 * DAY, end + 4 * DAY) for data in pair)
    expected = [
        (local, old.get(local), new.get(local))
        for local in sorted({*old, *new})
        if old.get(local) != new.get(local)
        and any(at is not None and start <= at < end for at in (old.get(local), new.get(local)))
    ]
    zones = [zone_from_data("Etc/UTC", data) for data in pair]
    found = moved_times(weekly_times(slots), *zones, start=instant_of(start), end=instant_of(end))
    assert list(found) == [
        MovedTime(
            instant_of(local).replace(tzinfo=None), *(None if at is None else instant_of(at) for at in (before, after))
        )
        for local, before, after in expected
    ]
    if expected:
        assert zones_differ(*zones, start=instant_of(start), end=instant_of(end))


@settings(max_examples=60, deadline=None)
@given(pair=pairs_of_zones(), days=st.integers(0, 700))
def test_unmoved_times_have_the_same_instants(pair: tuple[bytes, bytes], days: int) -> None:
    """Compares with the search for slots itself: what it finds in only one of the two zones is listed as moved."""
    slots = [WeeklySlot(day=day, hour=hour, minute=30) for day in range(7) for hour in (1, 2, 12)]
    old, new = (zone_from_data("Etc/UTC", data) for data in pair)
    start = NOW + timedelta(days=days)
    end = start + timedelta(days=20)
    times = [
        {(each.nominal, each.instant) for each in occurrences(slots, zone, after=start - TICK, until=end - TICK)}
        for zone in (old, new)
    ]
    moved = list(moved_times(weekly_times(slots), old, new, start=start, end=end))
    for index, only in ((1, times[0] - times[1]), (2, times[1] - times[0])):
        listed = {(each.nominal, each[index]) for each in moved}
        assert only <= listed


def test_every_zone_agrees_with_itself() -> None:
    for name in zone_names():
        assert not zones_differ(find_zone(name), find_zone(name), start=NOW, end=NOW + HORIZON)


@pytest.mark.parametrize("slots", [[], [MONDAY_NINE]])
def test_times_of_the_week_are_listed_in_order(slots: list[WeeklySlot]) -> None:
    listed = list(weekly_times(slots)(datetime(2026, 11, 2, 9, 0), datetime(2026, 11, 9, 9, 0)))
    assert listed == [datetime(2026, 11, 2, 9, 0)][: len(slots)]
