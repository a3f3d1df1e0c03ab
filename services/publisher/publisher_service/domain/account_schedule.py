"""The schedule of an account as Schedule announces it, and the instants that it means for sending."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta

from civil.days import day_bounds, local_day
from civil.windows import Opening, SendWindow, openings
from civil.zones import LATEST, Zone, find_zone, stored_zone

_UTC = "UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountSchedule:
    organization_id: str
    social_account_id: str
    version: int
    deleted: bool = False
    # Empty without a schedule.
    time_zone: str = ""
    # The user's switch: while it is off, nothing is sent.
    enabled: bool = True
    window: SendWindow | None = None
    min_spacing: timedelta | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.organization_id, self.social_account_id


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalDay:
    """A local calendar day, from `start` (included) to `end` (excluded)."""

    date: date
    start: datetime
    end: datetime


def opening(schedule: AccountSchedule, at: datetime) -> Opening | None:
    """Returns the opening of the send window that includes `at`, or else the next one; None if it is always open."""
    if schedule.window is None or schedule.window.always:
        return None
    found = next(openings(schedule.window, zone_of(schedule.time_zone), after=at), None)
    # A window that opens no more before the end of the calendar.
    return found or Opening(LATEST, LATEST)


def day_of(time_zone: str, at: datetime) -> LocalDay:
    """Returns the local day that includes `at`."""
    zone = zone_of(time_zone)
    day = local_day(at, zone)
    start, end = day_bounds(day, zone)
    return LocalDay(date=day, start=start, end=end)


def zone_of(name: str) -> Zone:
    """Returns the zone; UTC without a name, and for a zone that this release of the time zone data does not have."""
    zone = stored_zone(name or _UTC)
    return zone if zone.is_known else find_zone(_UTC)
