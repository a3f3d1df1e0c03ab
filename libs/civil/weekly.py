"""Weekly slots, such as Monday 09:00 in Berlin, and the instants at which they occur.

A slot in a gap of the clocks is shifted forward by the length of the gap. A time that the clocks show twice counts
once, at the first. A slot on a date that the zone skipped is dropped. Two slots at one instant are one.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from civil.windows import SendWindow
from civil.zones import DAY, EARLIEST, LATEST, ZERO, Stretch, Zone, in_utc

_WEEK = 7 * DAY
_MIDNIGHT = time()


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class WeeklySlot:
    """A recurring local time. `day` is 0 for Sunday to 6 for Saturday."""

    day: int
    hour: int
    minute: int

    def __post_init__(self) -> None:
        if not (0 <= self.day <= 6 and 0 <= self.hour <= 23 and 0 <= self.minute <= 59):
            raise ValueError(f"not a time of the week: day {self.day}, {self.hour}:{self.minute}")

    def is_within(self, window: SendWindow) -> bool:
        """Returns whether the slot's own time is in the window; its occurrences are, too, unless they are shifted."""
        return window.has(self.day, time(self.hour, self.minute))

    @property
    def since_sunday(self) -> timedelta:
        return timedelta(self.day, self.hour * 3600 + self.minute * 60)


class Occurrence(NamedTuple):
    """One instant of a weekly slot."""

    instant: datetime
    """In UTC."""
    offset: timedelta
    """Local time minus UTC at that instant."""
    shift: timedelta
    """How much later than the slot's own time: zero, unless the clocks skip that."""
    slot: WeeklySlot

    @property
    def local(self) -> datetime:
        """Returns the wall-clock time at that instant, naive."""
        return (self.instant + self.offset).replace(tzinfo=None)

    @property
    def local_date(self) -> date:
        return self.local.date()

    @property
    def local_time(self) -> time:
        return self.local.time()

    @property
    def nominal(self) -> datetime:
        """Returns the time that the slot asks for, naive, even if the clocks skip it."""
        return self.local - self.shift

    @property
    def shifted(self) -> bool:
        return self.shift != ZERO


def none_is_within(slots: Collection[WeeklySlot], window: SendWindow | None) -> bool:
    """Returns whether there are slots, and the window leaves none of them."""
    return bool(slots) and window is not None and not any(slot.is_within(window) for slot in slots)


_Week: TypeAlias = tuple[tuple[timedelta, WeeklySlot], ...]


def occurrences(
    slots: Iterable[WeeklySlot],
    zone: Zone,
    *,
    after: datetime,
    until: datetime | None = None,
    within: SendWindow | None = None,
) -> Iterator[Occurrence]:
    """Yields every occurrence with `after` < instant <= `until`, in time order; with a window, only those in it.

    Without `until` they continue to the end of the calendar; without slots there are none.
    """
    slots = tuple(slots)
    week, open_week = _week(slots), _open_week(slots, within)
    if not week:
        return
    start, end = _just_after(after), LATEST if until is None else _just_after(until)
    # A jump has an effect for a day at most: shifted slots, and times shown again, lie before `settled`.
    for stretch in zone.stretches(start - DAY, end):
        jump = stretch.jump
        settled = stretch.start + abs(jump)
        if jump > ZERO:
            yield from (
                found
                for found in _after_gap(week, stretch, settled)
                if start <= found.instant < end and (within is None or within.contains(found.local))
            )
        yield from _read(open_week, max(settled, start), min(stretch.end, end), stretch.offset)


@lru_cache(maxsize=1024)
def _week(slots: tuple[WeeklySlot, ...]) -> _Week:
    return tuple(sorted({slot.since_sunday: slot for slot in slots}.items()))


@lru_cache(maxsize=1024)
def _open_week(slots: tuple[WeeklySlot, ...], window: SendWindow | None) -> _Week:
    """Returns the slots whose own times are in the window, so that a search passes over all others at no cost."""
    return _week(slots if window is None else tuple(slot for slot in slots if slot.is_within(window)))


def _after_gap(week: _Week, stretch: Stretch, settled: datetime) -> list[Occurrence]:
    """Merges the slots shifted out of a gap with those whose own time follows it, which win at the same instant."""
    own = {found.instant: found for found in _read(week, stretch.start, settled, stretch.offset)}
    jumped_over = _read(week, stretch.start, settled, stretch.before)
    shifted = {
        found.instant: found._replace(offset=stretch.offset, shift=stretch.jump)
        for found in jumped_over
        if not _date_is_missing(found, stretch.start, settled)
    }
    return sorted((shifted | own).values())


def _date_is_missing(jumped_over: Occurrence, start: datetime, settled: datetime) -> bool:
    midnight = jumped_over.instant - timedelta(hours=jumped_over.slot.hour, minutes=jumped_over.slot.minute)
    return start <= midnight and midnight + DAY <= settled


def _read(week: _Week, start: datetime, end: datetime, offset: timedelta) -> Iterator[Occurrence]:
    """Yields the slots in [start, end), all of which has this offset."""
    if not week:
        return
    local = start + offset
    sunday = datetime.combine(local, _MIDNIGHT, UTC) - DAY * (local.isoweekday() % 7) - offset
    slots = week[bisect_left(week, (start - sunday,)) :]
    while sunday < end:
        for since_sunday, slot in slots:
            instant = sunday + since_sunday
            if instant >= end:
                return
            yield Occurrence(instant, offset, ZERO, slot)
        slots = week
        sunday += _WEEK


def _just_after(instant: datetime) -> datetime:
    return min(max(in_utc(instant), EARLIEST), LATEST) + datetime.resolution
