"""Single times on the wall: the instant that one means, and those at which the clocks really show it."""

from datetime import UTC, datetime, time, timedelta
from typing import NamedTuple

from civil.zones import DAY, EARLIEST, LATEST, ZERO, Zone

_EARLIEST, _LATEST = EARLIEST.replace(tzinfo=None), LATEST.replace(tzinfo=None)


class Resolved(NamedTuple):
    """The instant of one local time."""

    instant: datetime
    """In UTC."""
    offset: timedelta
    """Local time minus UTC at that instant."""
    shift: timedelta
    """How much later than asked for: zero, unless the clocks jumped over the time."""


def resolve(nominal: datetime, zone: Zone) -> Resolved | None:
    """When this local time (naive) is, by the policy of weekly slots.

    A time that the clocks jump over is shifted forward by the length of the jump; of a time that they show twice the
    first counts; on a date that does not exist there is none, nor outside the calendar.
    """
    if not _in_calendar(nominal):
        return None
    wall = _as_if_utc(nominal)
    before, after = _offsets_around(wall, zone)
    if before == after or zone.offset_at(wall - before) == before:
        return Resolved(wall - before, before, ZERO)
    if zone.offset_at(wall - after) == after:
        return Resolved(wall - after, after, ZERO)
    if after - before >= DAY and _date_is_missing(nominal, zone):
        return None
    return Resolved(wall - before, after, after - before)


def instants_showing(nominal: datetime, zone: Zone) -> tuple[datetime, ...]:
    """Every instant (in UTC, in order) at which the wall shows this local time (naive): none, one or two."""
    if not _in_calendar(nominal):
        return ()
    wall = _as_if_utc(nominal)
    before, after = _offsets_around(wall, zone)
    if before == after:
        return (wall - before,)
    return tuple(wall - offset for offset in (before, after) if zone.offset_at(wall - offset) == offset)


def _offsets_around(wall: datetime, zone: Zone) -> tuple[timedelta, timedelta]:
    """The offsets a day earlier and a day later: no other can apply, since no two changes lie within three days."""
    return zone.offset_at(wall - DAY), zone.offset_at(wall + DAY)


def _date_is_missing(jumped_over: datetime, zone: Zone) -> bool:
    midnight = datetime.combine(jumped_over, time())
    return not instants_showing(midnight, zone) and not instants_showing(midnight + DAY - datetime.resolution, zone)


def _as_if_utc(nominal: datetime) -> datetime:
    return nominal.replace(tzinfo=UTC, fold=0)


def _in_calendar(nominal: datetime) -> bool:
    assert nominal.tzinfo is None, "a time on the wall is a naive datetime"
    return _EARLIEST <= nominal < _LATEST
