"""The slots that make slot times unavailable, and the times that a slot makes free again."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from datetime import date, datetime

from civil.days import day_bounds, local_day
from civil.zones import DAY, find_zone, zone_names
from queue_service.domain.slot import COUNTED, LIVE, SPACING, SlotState


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """The slots that make slot times of an account unavailable."""

    # Times with a live slot less than a minute away.
    filled: Set[datetime]
    # Slots that use up the cap, by local day.
    counted: Mapping[date, int]


def days_of(times: Iterable[datetime], time_zone: str) -> dict[date, tuple[datetime, datetime]]:
    """Returns the local days of the times, each with its first instant and the first of the next day."""
    zone = find_zone(time_zone)
    return {day: day_bounds(day, zone) for day in {local_day(time, zone) for time in times}}


def reopened_by(
    schedule_time: datetime, before: SlotState, after: SlotState, *, cap: int, time_zone: str
) -> tuple[datetime, datetime] | None:
    """Returns the stretch in which slot times may be free again after a slot has changed its state.

    All code that ends a slot reopens the account's frontier with this rule.
    """
    start, end = schedule_time, schedule_time
    if before in LIVE and after not in LIVE:
        start, end = start - SPACING, end + SPACING
    if cap and time_zone and before in COUNTED and after not in COUNTED:
        first, last = _day_of(schedule_time, time_zone)
        start, end = min(start, first), max(end, last)
    return (start, end) if start < end else None


def _day_of(instant: datetime, time_zone: str) -> tuple[datetime, datetime]:
    """Returns the bounds of the local day; for a zone that tzdata has dropped, bounds wide enough for any zone."""
    if time_zone not in zone_names():
        return instant - 2 * DAY, instant + 2 * DAY
    zone = find_zone(time_zone)
    return day_bounds(local_day(instant, zone), zone)
