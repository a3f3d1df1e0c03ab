"""Translates zones, weekly slots, windows, instants and durations. `field` names a value's field in the request."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, time, timedelta

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from civil.weekly import WeeklySlot
from civil.windows import SendWindow
from civil.zones import UnknownZone, Zone, find_zone
from postflow.schedule.v1 import account_schedule_pb2
from servicekit.faults import InvalidField
from servicekit.timestamps import moment

_LATEST = datetime.max.replace(tzinfo=UTC)
DAYS = (
    account_schedule_pb2.DAY_OF_WEEK_SUNDAY,
    account_schedule_pb2.DAY_OF_WEEK_MONDAY,
    account_schedule_pb2.DAY_OF_WEEK_TUESDAY,
    account_schedule_pb2.DAY_OF_WEEK_WEDNESDAY,
    account_schedule_pb2.DAY_OF_WEEK_THURSDAY,
    account_schedule_pb2.DAY_OF_WEEK_FRIDAY,
    account_schedule_pb2.DAY_OF_WEEK_SATURDAY,
)
"""Days in the order of `civil`: 0 is Sunday."""


def not_before(timestamp: Timestamp) -> datetime:
    """Rounds up to microseconds, the precision of a datetime: for the ends of a range."""
    earlier = moment(timestamp)
    if timestamp.nanos % 1000 == 0 or earlier == _LATEST:
        return earlier
    return earlier + timedelta.resolution


def span(duration: Duration) -> timedelta:
    return timedelta(seconds=duration.seconds, microseconds=duration.nanos // 1000)


def whole_seconds(duration: Duration, field: str) -> timedelta:
    if duration.nanos:
        raise InvalidField(field, "must be whole seconds")
    return timedelta(seconds=duration.seconds)


def zone(name: str, field: str) -> Zone:
    if not name:
        raise InvalidField(field, "is required")
    try:
        return find_zone(name)
    except UnknownZone as unknown:
        raise InvalidField(field, str(unknown), reason="UNKNOWN_TIME_ZONE") from unknown


def weekly_slots(messages: Iterable[account_schedule_pb2.WeeklySlot]) -> list[WeeklySlot]:
    return [_weekly_slot(each) for each in messages]


def categories(messages: Iterable[account_schedule_pb2.WeeklySlot]) -> dict[WeeklySlot, str]:
    """Returns the categories of the weekly slots that are kept for one."""
    return {_weekly_slot(each): each.category_id for each in messages if each.category_id}


def weekly_slot_message(slot: WeeklySlot, category_id: str = "") -> account_schedule_pb2.WeeklySlot:
    return account_schedule_pb2.WeeklySlot(
        day_of_week=DAYS[slot.day], hour=slot.hour, minute=slot.minute, category_id=category_id
    )


def _weekly_slot(message: account_schedule_pb2.WeeklySlot) -> WeeklySlot:
    return WeeklySlot(day=DAYS.index(message.day_of_week), hour=message.hour, minute=message.minute)


def send_window(message: account_schedule_pb2.SendWindow, field: str) -> SendWindow:
    days = _days(message.days_of_week, f"{field}.days_of_week")
    start, end = clock(message.start), clock(message.end) if message.HasField("end") else None
    if end is not None and end <= start:
        raise InvalidField(f"{field}.end", "must be later than `start`; leave it out for the end of the day")
    return SendWindow(days=days, start=start, end=end)


def send_window_message(window: SendWindow) -> account_schedule_pb2.SendWindow:
    return account_schedule_pb2.SendWindow(
        days_of_week=[DAYS[day] for day in sorted(window.days)],
        start=clock_message(window.start),
        end=clock_message(window.end) if window.end is not None else None,
    )


def _days(values: Sequence[int], field: str) -> frozenset[int]:
    for place, value in enumerate(values):
        if value not in DAYS:
            raise InvalidField(f"{field}[{place}]", "is required")
        if (first := list(values).index(value)) != place:
            raise InvalidField(f"{field}[{place}]", f"is the same as {field}[{first}]")
    return frozenset(map(DAYS.index, values))


def clock(message: account_schedule_pb2.LocalTime) -> time:
    return time(message.hour, message.minute)


def clock_message(clock: time) -> account_schedule_pb2.LocalTime:
    return account_schedule_pb2.LocalTime(hour=clock.hour, minute=clock.minute)
