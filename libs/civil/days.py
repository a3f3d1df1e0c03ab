"""Local days: the day of an instant, and the bounds of a day."""

from datetime import UTC, date, datetime, time

from civil.zones import DAY, Zone, in_utc


def local_day(instant: datetime, zone: Zone) -> date:
    """Returns the local date at that instant."""
    return (in_utc(instant) + zone.offset_at(instant)).date()


def day_bounds(day: date, zone: Zone) -> tuple[datetime, datetime]:
    """Returns the first instant of a local date (included) and the end of its last one (excluded), in UTC.

    A date that the zone skipped is empty: both bounds are the instant of the jump. Where clocks went back over midnight
    (Goose Bay until 2010, at 00:01) the bounds of two days overlap by the time in which the dates alternate, so that
    the bounds of a day enclose every instant of it.
    """
    midnight = datetime.combine(day, time(), UTC)
    stretches = list(zone.stretches(midnight - DAY, midnight + 2 * DAY))
    readings = [(max(s.start, midnight - s.offset), min(s.end, midnight + DAY - s.offset)) for s in stretches]
    shown = [(start, end) for start, end in readings if start < end]
    if not shown:
        passed = next(s.start for s in stretches if s.start + s.offset > midnight)
        return passed, passed
    return shown[0][0], shown[-1][1]
