"""Zones, days and times of the wall, and instants. `field` is where the caller wrote what is read."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from google.protobuf.timestamp_pb2 import Timestamp

from civil.weekly import WeeklySlot
from civil.zones import UnknownZone, Zone, find_zone
from postflow.schedule.v1 import account_schedule_pb2
from servicekit.faults import InvalidField

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAYS = (
    account_schedule_pb2.DAY_OF_WEEK_SUNDAY,
    account_schedule_pb2.DAY_OF_WEEK_MONDAY,
    account_schedule_pb2.DAY_OF_WEEK_TUESDAY,
    account_schedule_pb2.DAY_OF_WEEK_WEDNESDAY,
    account_schedule_pb2.DAY_OF_WEEK_THURSDAY,
    account_schedule_pb2.DAY_OF_WEEK_FRIDAY,
    account_schedule_pb2.DAY_OF_WEEK_SATURDAY,
)
"""In the order of civil: 0 is Sunday."""


def moment(timestamp: Timestamp) -> datetime:
    # Several times cheaper than ToDatetime(), and PostgreSQL keeps microseconds, too.
    return _EPOCH + timedelta(seconds=timestamp.seconds, microseconds=timestamp.nanos // 1000)


def zone(name: str, field: str) -> Zone:
    try:
        return find_zone(name)
    except UnknownZone as unknown:
        raise InvalidField(field, str(unknown), reason="UNKNOWN_TIME_ZONE") from unknown


def weekly_slots(messages: Iterable[account_schedule_pb2.WeeklySlot]) -> list[WeeklySlot]:
    return [WeeklySlot(day=DAYS.index(each.day_of_week), hour=each.hour, minute=each.minute) for each in messages]


def weekly_slot_message(slot: WeeklySlot) -> account_schedule_pb2.WeeklySlot:
    return account_schedule_pb2.WeeklySlot(day_of_week=DAYS[slot.day], hour=slot.hour, minute=slot.minute)
