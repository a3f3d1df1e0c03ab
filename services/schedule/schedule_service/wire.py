"""Protobuf <-> domain, both ways: the only place where both vocabularies meet."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from hashlib import sha256

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from civil.weekly import Occurrence, WeeklySlot
from civil.zones import UnknownZone, Zone, find_zone
from postflow.schedule.v1 import account_schedule_pb2, schedule_events_pb2
from postflow.schedule.v1.schedule_service_pb2 import FindSlotTimesResponse, PutAccountScheduleResponse
from schedule_service.domain.account_schedule import AccountSchedule, Timetable, in_order_of_week
from schedule_service.domain.slot_times import SlotTimes
from servicekit.faults import InvalidField
from servicekit.pg.ledger import RequestKey
from servicekit.pg.outbox import Announcement
from topology import events_subject

__all__ = [
    "FindSlotTimesResponse",
    "PutAccountScheduleResponse",
    "account_schedule_changed",
    "found_slot_times",
    "moment",
    "request_key",
    "shown",
    "timetable",
]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAYS = (
    account_schedule_pb2.DAY_OF_WEEK_SUNDAY,
    account_schedule_pb2.DAY_OF_WEEK_MONDAY,
    account_schedule_pb2.DAY_OF_WEEK_TUESDAY,
    account_schedule_pb2.DAY_OF_WEEK_WEDNESDAY,
    account_schedule_pb2.DAY_OF_WEEK_THURSDAY,
    account_schedule_pb2.DAY_OF_WEEK_FRIDAY,
    account_schedule_pb2.DAY_OF_WEEK_SATURDAY,
)


def request_key(organization_id: str, method: str, request_id: str, request: Message) -> RequestKey:
    return RequestKey(
        organization_id=organization_id,
        method=method,
        request_id=request_id,
        request_digest=sha256(request.SerializeToString(deterministic=True)).digest(),
    )


def timetable(message: account_schedule_pb2.AccountSchedule) -> Timetable:
    return Timetable(
        name=message.name,
        zone=_zone(message.time_zone),
        weekly_slots=in_order_of_week(_weekly_slots(message.weekly_slots), "account_schedule.weekly_slots"),
        max_posts_per_day=message.max_posts_per_day,
        enabled=message.enabled if message.HasField("enabled") else True,
    )


def shown(schedule: AccountSchedule) -> account_schedule_pb2.AccountSchedule:
    """The schedule as its readers see it."""
    timetable = schedule.timetable
    return account_schedule_pb2.AccountSchedule(
        social_account_id=schedule.social_account_id,
        name=timetable.name,
        time_zone=timetable.zone.name,
        weekly_slots=map(_weekly_slot_message, timetable.weekly_slots),
        max_posts_per_day=timetable.max_posts_per_day,
        enabled=timetable.enabled,
        etag=schedule.etag,
        version=schedule.version,
        create_time=schedule.create_time,
        update_time=schedule.update_time,
    )


def account_schedule_changed(schedule: AccountSchedule) -> Announcement:
    return Announcement(
        subject=events_subject("schedule", schedule.organization_id, "account_schedule"),
        organization_id=schedule.organization_id,
        aggregate_id=schedule.social_account_id,
        message=schedule_events_pb2.AccountScheduleChanged(
            organization_id=schedule.organization_id, account_schedule=shown(schedule)
        ),
    )


def found_slot_times(schedule: AccountSchedule, found: SlotTimes) -> FindSlotTimesResponse:
    return FindSlotTimesResponse(
        slot_times=map(_slot_time, found.times),
        time_zone=schedule.timetable.zone.name,
        schedule_version=schedule.version,
        searched_until=found.searched_until,
    )


def moment(timestamp: Timestamp) -> datetime:
    # Several times cheaper than ToDatetime(), and PostgreSQL keeps microseconds, too.
    return _EPOCH + timedelta(seconds=timestamp.seconds, microseconds=timestamp.nanos // 1000)


def _zone(name: str) -> Zone:
    try:
        return find_zone(name)
    except UnknownZone as unknown:
        raise InvalidField("account_schedule.time_zone", str(unknown), reason="UNKNOWN_TIME_ZONE") from unknown


def _weekly_slots(messages: Iterable[account_schedule_pb2.WeeklySlot]) -> list[WeeklySlot]:
    return [WeeklySlot(day=_DAYS.index(each.day_of_week), hour=each.hour, minute=each.minute) for each in messages]


def _weekly_slot_message(slot: WeeklySlot) -> account_schedule_pb2.WeeklySlot:
    return account_schedule_pb2.WeeklySlot(day_of_week=_DAYS[slot.day], hour=slot.hour, minute=slot.minute)


def _slot_time(occurrence: Occurrence) -> account_schedule_pb2.SlotTime:
    local = occurrence.local
    return account_schedule_pb2.SlotTime(
        time=occurrence.instant,
        local_date=local.date().isoformat(),
        local_time=local.time().isoformat("minutes"),
        utc_offset_seconds=int(occurrence.offset.total_seconds()),
        shifted=occurrence.shifted,
    )
