"""Which slot time is the next free one."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from datetime import date, datetime

from civil.days import day_bounds, local_day
from civil.zones import DAY, find_zone, zone_names
from queue_service.domain.slot import COUNTED, LIVE, SPACING, SlotState


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """What stands in the way of some slot times of an account: which of them are filled, because a live slot lies less
    than a minute away, and how many slots their local days already count."""

    filled: Set[datetime]
    counted: Mapping[date, int]


def first_free(times: Iterable[datetime], occupancy: Occupancy, *, cap: int, time_zone: str) -> datetime | None:
    """`cap` is the number of posts per local day; 0: as many as there are slot times."""
    zone = find_zone(time_zone)
    for time in times:
        if time in occupancy.filled:
            continue
        if cap and occupancy.counted.get(local_day(time, zone), 0) >= cap:
            continue
        return time
    return None


def days_of(times: Iterable[datetime], time_zone: str) -> dict[date, tuple[datetime, datetime]]:
    """The local days of the times, each with its first instant and the end of its last."""
    zone = find_zone(time_zone)
    return {day: day_bounds(day, zone) for day in {local_day(time, zone) for time in times}}


def reopened_by(
    schedule_time: datetime, before: SlotState, after: SlotState, *, cap: int, time_zone: str
) -> tuple[datetime, datetime] | None:
    """From when until when slot times may be free again once a slot has gone from one state to another.

    The one place for this rule: whatever ends, moves or takes back a slot reopens the account's frontier by it.
    """
    start, end = schedule_time, schedule_time
    if before in LIVE and after not in LIVE:
        start, end = start - SPACING, end + SPACING
    if cap and time_zone and before in COUNTED and after not in COUNTED:
        first, last = _day_of(schedule_time, time_zone)
        start, end = min(start, first), max(end, last)
    return (start, end) if start < end else None


def _day_of(instant: datetime, time_zone: str) -> tuple[datetime, datetime]:
    """Its local day; of a zone that is no more, what holds it whichever that was."""
    if time_zone not in zone_names():
        return instant - 2 * DAY, instant + 2 * DAY
    zone = find_zone(time_zone)
    return day_bounds(local_day(instant, zone), zone)
