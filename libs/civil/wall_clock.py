"""Converts single wall-clock times of a zone to instants.

A *nominal* time, here and in every module, is the local time that somebody asked for (naive): a weekly slot's, a rule's
or a cron expression's. The clocks of a zone may skip it or show it twice.
"""

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
    """How much later than the nominal time it is: zero, unless the clocks skip that time."""


def resolve(nominal: datetime, zone: Zone) -> Resolved | None:
    """Returns the instant that a nominal time means, by the same policy as weekly slots.

    A time that the clocks skip is shifted forward by the length of the gap; a time that they show twice means the first
    of the two instants; on a date that the zone skipped, or outside the calendar, there is none.
    """
    if not _in_calendar(nominal):
        return None
    local = _as_if_utc(nominal)
    before, after = _offsets_around(local, zone)
    if before == after or zone.offset_at(local - before) == before:
        return Resolved(local - before, before, ZERO)
    if zone.offset_at(local - after) == after:
        return Resolved(local - after, after, ZERO)
    if after - before >= DAY and _date_is_missing(nominal, zone):
        return None
    return Resolved(local - before, after, after - before)


def instants_showing(nominal: datetime, zone: Zone) -> tuple[datetime, ...]:
    """Returns the instants (in UTC, in order) at which the clocks show this local time: none, one or two."""
    if not _in_calendar(nominal):
        return ()
    local = _as_if_utc(nominal)
    before, after = _offsets_around(local, zone)
    if before == after:
        return (local - before,)
    return tuple(local - offset for offset in (before, after) if zone.offset_at(local - offset) == offset)


def _offsets_around(local: datetime, zone: Zone) -> tuple[timedelta, timedelta]:
    """Returns the offsets a day earlier and later. No other can apply, since changes are over three days apart."""
    return zone.offset_at(local - DAY), zone.offset_at(local + DAY)


def _date_is_missing(jumped_over: datetime, zone: Zone) -> bool:
    midnight = datetime.combine(jumped_over, time())
    return not instants_showing(midnight, zone) and not instants_showing(midnight + DAY - datetime.resolution, zone)


def _as_if_utc(nominal: datetime) -> datetime:
    return nominal.replace(tzinfo=UTC, fold=0)


def _in_calendar(nominal: datetime) -> bool:
    assert nominal.tzinfo is None, "a wall-clock time is a naive datetime"
    return _EARLIEST <= nominal < _LATEST
