"""Finding the local times that become other instants when a time zone's data changes.

The two versions of the zone are compared first, over the period that matters. Recurring times are then expanded only
around the stretches in which the versions differ.
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
"""The most moved times listed for one schedule, rule or timer."""

# A local time is resolved by the offsets within two days of it, and lies within a day of its instant.
_REACH = 3 * DAY


class MovedTime(NamedTuple):
    nominal: datetime
    """The requested wall-clock time, naive."""
    old: datetime | None
    """Its instant by the old data, in UTC; None: it did not exist."""
    new: datetime | None
    """Its instant by the current data, in UTC; None: it does not exist."""


NominalTimes: TypeAlias = Callable[[datetime, datetime], Iterable[datetime]]
"""Returns the requested local times (naive) from the first argument until before the second, in order."""


def zones_differ(old: Zone, new: Zone, *, start: datetime, end: datetime) -> bool:
    """Returns whether any local time with an instant between `start` and `end` may have moved."""
    return any(True for _ in _differences(old, new, start - _REACH, end + _REACH))


def differences(old: Zone, new: Zone, *, now: datetime) -> list[tuple[datetime, datetime]]:
    """Lists the stretches ahead in which the two show different times. Each includes its start, but not its end."""
    return list(_differences(old, new, now, now + HORIZON))


def moved_times(
    nominal_times: NominalTimes, old: Zone, new: Zone, *, start: datetime, end: datetime
) -> Iterator[MovedTime]:
    """Yields the moved times whose old or new instant is between `start` and `end`, lazily and in local order."""
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
        return None  # The clocks jump over it, to a time that is requested anyway.
    return found.instant


def _differences(old: Zone, new: Zone, start: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Yields the stretches in which the two show different times, lazily and in order; stretches may adjoin."""
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
