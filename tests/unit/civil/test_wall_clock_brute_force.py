"""Compares single local times with a walk over the minutes of UTC that reads the wall clock."""

from collections import defaultdict
from datetime import datetime, timedelta
from itertools import islice, pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from civil.wall_clock import Resolved, instants_showing, resolve
from civil.weekly import WeeklySlot, occurrences
from civil.zones import find_zone
from testkit.zones.wall_clock import DAY, EPOCH, Change, WallClock, changes_by_kind, clock, instant_of, moments

REACH = 26 * 60
"""Minutes. Offsets and jumps are a day at most."""


class Shown:
    """The wall-clock times around some minutes of UTC."""

    def __init__(self, zone: WallClock, first: int, last: int) -> None:
        walls = zone.walls(range(first, last))
        self.minutes = defaultdict[int, list[int]](list)
        for minute, wall in enumerate(walls, first):
            self.minutes[wall].append(minute)
        self._dates = {wall // DAY for wall in walls}
        self._gaps = [(earlier, later) for earlier, later in pairwise(walls) if later - earlier > 1]

    def resolved(self, nominal: int) -> Resolved | None:
        if nominal in self.minutes:
            first = self.minutes[nominal][0]
            return Resolved(instant_of(first), timedelta(minutes=nominal - first), timedelta())
        if nominal // DAY not in self._dates:
            return None
        (jump,) = (later - earlier - 1 for earlier, later in self._gaps if earlier < nominal < later)
        shifted = self.minutes[nominal + jump][0]
        return Resolved(instant_of(shifted), timedelta(minutes=nominal + jump - shifted), timedelta(minutes=jump))

    def readings(self, nominal: int) -> tuple[datetime, ...]:
        return tuple(map(instant_of, self.minutes.get(nominal, ())))


def naive(wall: int) -> datetime:
    return instant_of(wall).replace(tzinfo=None)


def around(change: Change) -> set[int]:
    """Returns local times at both sides of both edges of a gap or overlap, inside it, and at the midnights around."""
    edges = [(change.at + change.before) // 60, (change.at + change.after) // 60]
    edges += [edge // DAY * DAY + midnight for edge in edges for midnight in (0, DAY)]
    return {edge + near for edge in edges for near in (-61, -31, -30, -1, 0, 1, 15, 29, 30, 31, 59, 60, 61)}


def test_times_around_every_change_of_every_zone() -> None:
    kinds = changes_by_kind(2010, 2037)
    assert sum(map(len, kinds.values())) > 5_000
    for change, names in kinds.items():
        nominals = around(change)
        middle, reach = change.at // 60, REACH + abs(change.after - change.before) // 60
        shown = Shown(clock(names[0]), middle - reach, middle + reach)
        expected = [(shown.resolved(nominal), shown.readings(nominal)) for nominal in nominals]
        for name in names:
            zone = find_zone(name)
            found = [(resolve(naive(nominal), zone), instants_showing(naive(nominal), zone)) for nominal in nominals]
            assert found == expected, (name, change)


@settings(deadline=None, max_examples=500)
@given(moments(), st.integers(-2 * DAY, 2 * DAY))
def test_any_time_in_any_zone(moment: tuple[str, int], away: int) -> None:
    name, minute = moment
    nominal = clock(name).wall(minute) + away
    shown = Shown(clock(name), nominal - 2 * REACH, nominal + 2 * REACH)
    assert resolve(naive(nominal), find_zone(name)) == shown.resolved(nominal)
    assert instants_showing(naive(nominal), find_zone(name)) == shown.readings(nominal)


@settings(deadline=None, max_examples=500)
@given(moments(), st.integers(0, 6), st.integers(0, 23), st.integers(0, 59))
def test_a_weekly_slot_is_the_same_time_week_by_week(moment: tuple[str, int], day: int, hour: int, minute: int) -> None:
    name, after = moment
    slot = WeeklySlot(day=day, hour=hour, minute=minute)
    weekly = list(islice(occurrences([slot], find_zone(name), after=instant_of(after)), 6))
    for found in weekly:
        assert resolve(found.nominal, find_zone(name)) == (found.instant, found.offset, found.shift)
    nominal = weekly[0].nominal
    while nominal <= weekly[-1].nominal:
        resolved = resolve(nominal, find_zone(name))
        assert resolved is None or resolved.instant in {found.instant for found in weekly}
        nominal += timedelta(days=7)


@settings(deadline=None, max_examples=500)
@given(moments(), st.timedeltas(timedelta(days=-2), timedelta(days=2)))
def test_the_first_instant_that_shows_a_time_is_what_it_means(moment: tuple[str, int], away: timedelta) -> None:
    name, minute = moment
    nominal = naive(clock(name).wall(minute)) + away
    resolved, read = resolve(nominal, find_zone(name)), instants_showing(nominal, find_zone(name))
    if read:
        assert resolved is not None
        assert (resolved.instant, resolved.shift) == (read[0], timedelta())
    for instant in read:
        seconds = (instant - EPOCH) // timedelta(seconds=1)
        assert nominal == naive(clock(name).wall(seconds // 60)) + (instant - instant_of(seconds // 60))
