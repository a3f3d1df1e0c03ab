"""A seat in a queue: an instant and what belongs to it. Rearranging a queue gives seats to slots."""

import datetime as dt
from datetime import datetime
from typing import NamedTuple

from civil.zones import stored_zone
from queue_service.domain.slot import SlotOrigin


class Seat(NamedTuple):
    """An instant, how it came about, and its local time in the zone of the account's schedule.

    `nominal` is the wall-clock time of the weekly slot, and `tzdata_version` the release that turned it into `time`.
    """

    time: datetime
    origin: SlotOrigin
    time_zone: str = ""
    local_date: dt.date | None = None
    local_time: dt.time | None = None
    nominal: datetime | None = None
    tzdata_version: str = ""


def seat_at(
    instant: datetime, origin: SlotOrigin, time_zone: str, *, nominal: datetime | None = None, tzdata_version: str
) -> Seat:
    """Makes a seat. It has local times only if this process knows the time zone."""
    zone = stored_zone(time_zone)
    if not zone.is_known:
        return Seat(instant, origin, nominal=nominal)
    local = instant + zone.offset_at(instant)
    return Seat(instant, origin, zone.name, local.date(), local.time(), nominal, tzdata_version)
