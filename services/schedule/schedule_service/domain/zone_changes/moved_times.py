"""What a new law of a zone moves: the local times that have become other instants.

Two laws are compared first, over the time that matters; what recurs in a zone is looked at only around the stretches
in which they differ.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import NamedTuple, TypeAlias

from civil.wall_clock import resolve
from civil.zones import DAY, Stretch, Zone

HORIZON = timedelta(days=730)
"""How far ahead a time counts as announced."""

MOST_LISTED = 10
"""Of one schedule, rule or timer."""

# What a local time means depends on the offsets within two days of it; it lies within a day of its instant.
_REACH = 3 * DAY


class MovedTime(NamedTuple):
    nominal: datetime
    """What the clock on the wall is to show, naive."""
    old: datetime | None
    """When that was, in UTC; None: never."""
    new: datetime | None
    """When it is now; None: never."""


NominalTimes: TypeAlias = Callable[[datetime, datetime], Iterable[datetime]]
"""The local times asked for (naive), from the first argument on and before the second, in order."""


def laws_differ(old: Zone, new: Zone, *, start: datetime, end: datetime) -> bool:
    """Whether any local time that is an instant between the two can have moved."""
    return any(True for _ in _differences(old, new, start - _REACH, end + _REACH))


def differences(old: Zone, new: Zone, *, now: datetime) -> list[tuple[datetime, datetime]]:
    """The stretches of time ahead in which the two show different times, each with its start and without its end."""
    return list(_differences(old, new, now, now + HORIZON))


def moved_times(
    nominal_times: NominalTimes, old: Zone, new: Zone, *, start: datetime, end: datetime
) -> Iterator[MovedTime]:
    """Those that were, or now are, an instant from `start` on and before `end`: in the order of the wall and lazily."""
    reached = _naive(start - 2 * _REACH)
    for since, until in _differences(old, new, start - _REACH, end + _REACH):
        first, reached = max(reached, _naive(since - _REACH)), _naive(until + _REACH)
        for nominal in nominal_times(first, reached):
            moved = MovedTime(nominal, _instant(nominal, old, nominal_times), _instant(nominal, new, nominal_times))
            if moved.old != moved.new and any(at and start <= at < end for at in moved[1:]):
                yield moved


def first_moved(nominal_times: NominalTimes, old: Zone, new: Zone, *, now: datetime) -> tuple[MovedTime, ...]:
    return tuple(islice(moved_times(nominal_times, old, new, start=now, end=now + HORIZON), MOST_LISTED))


def _instant(nominal: datetime, zone: Zone, nominal_times: NominalTimes) -> datetime | None:
    found = resolve(nominal, zone)
    if found is None:
        return None
    own = nominal + found.shift
    if found.shift and any(True for _ in nominal_times(own, own + datetime.resolution)):
        return None  # the clocks jump over it, to a time that is asked for anyway
    return found.instant


def _differences(old: Zone, new: Zone, start: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
    """The stretches of time in which the two show different times, in order and lazily; they may adjoin."""
    if old.data == new.data:
        return
    olds, news = old.stretches(start, end), new.stretches(start, end)
    before, after = next(olds), next(news)
    while True:
        until = min(before.end, after.end)
        if before.offset != after.offset:
            yield start, until
        if until >= end:
            return
        start = until
        before, after = _at(start, before, olds), _at(start, after, news)


def _at(start: datetime, stretch: Stretch, following: Iterator[Stretch]) -> Stretch:
    return next(following) if stretch.end == start else stretch


def _naive(instant: datetime) -> datetime:
    return instant.astimezone(UTC).replace(tzinfo=None)
