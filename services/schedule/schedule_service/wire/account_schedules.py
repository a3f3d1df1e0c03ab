"""Translates account schedules between protobuf and the domain."""

import asyncio

from civil.weekly import Occurrence, none_is_within
from civil.windows import SendWindow
from civil.zones import tzdata_version
from postflow.schedule.v1 import account_schedule_pb2, schedule_events_pb2
from postflow.schedule.v1.schedule_service_pb2 import (
    CheckSendWindowResponse,
    DeleteAccountScheduleResponse,
    FindSlotTimesRequest,
    FindSlotTimesResponse,
    PutAccountScheduleResponse,
)
from schedule_service.domain.calendars.account_schedule import AccountSchedule, Timetable, in_order_of_week
from schedule_service.domain.calendars.slot_times import SlotTimes
from schedule_service.domain.calendars.window_state import WindowState
from schedule_service.wire.civil_times import (
    categories,
    send_window,
    send_window_message,
    weekly_slot_message,
    weekly_slots,
    whole_seconds,
    zone,
)
from servicekit.faults import InvalidField
from servicekit.pg.outbox import Announcement
from servicekit.timestamps import put
from topology import events_subject

_ENCODED_AT_ONCE = 100


def timetable(message: account_schedule_pb2.AccountSchedule) -> Timetable:
    return Timetable(
        name=message.name,
        zone=zone(message.time_zone, "account_schedule.time_zone"),
        weekly_slots=in_order_of_week(weekly_slots(message.weekly_slots), "account_schedule.weekly_slots"),
        categories=categories(message.weekly_slots),
        max_posts_per_day=message.max_posts_per_day,
        enabled=message.enabled if message.HasField("enabled") else True,
        send_window=_send_window(message),
        min_spacing=whole_seconds(message.min_spacing, "account_schedule.min_spacing"),
    )


def shown(schedule: AccountSchedule) -> account_schedule_pb2.AccountSchedule:
    """Returns the schedule as callers see it."""
    timetable = schedule.timetable
    return account_schedule_pb2.AccountSchedule(
        social_account_id=schedule.social_account_id,
        name=timetable.name,
        time_zone=timetable.zone.name,
        weekly_slots=[weekly_slot_message(slot, timetable.category_of(slot)) for slot in timetable.weekly_slots],
        max_posts_per_day=timetable.max_posts_per_day,
        enabled=timetable.enabled,
        etag=schedule.etag,
        version=schedule.version,
        create_time=schedule.create_time,
        update_time=schedule.update_time,
        send_window=send_window_message(timetable.send_window) if timetable.send_window else None,
        min_spacing=timetable.min_spacing or None,
        tzdata_version=schedule.tzdata_version,
    )


def put_account_schedule_response(schedule: AccountSchedule) -> PutAccountScheduleResponse:
    return PutAccountScheduleResponse(account_schedule=shown(schedule))


def delete_account_schedule_response(_: None) -> DeleteAccountScheduleResponse:
    return DeleteAccountScheduleResponse()


def account_schedule_changed(schedule: AccountSchedule) -> Announcement:
    return Announcement(
        subject=events_subject("schedule", "account_schedule"),
        organization_id=schedule.organization_id,
        aggregate_id=schedule.social_account_id,
        message=schedule_events_pb2.AccountScheduleChanged(
            organization_id=schedule.organization_id,
            account_schedule=shown(schedule),
            deleted=schedule.delete_time is not None,
        ),
    )


def wanted_category(request: FindSlotTimesRequest) -> str | None:
    """Returns the category of the times asked for; empty for times of no category, None for all."""
    if request.of_category_only:
        return request.category_id
    if request.category_id:
        raise InvalidField("category_id", "is valid only with of_category_only")
    return None


async def find_slot_times_response(schedule: AccountSchedule, found: SlotTimes | None) -> FindSlotTimesResponse:
    """Encodes the times a hundred at a time: a thousand take milliseconds, and other calls run in between."""
    if found is None:
        return FindSlotTimesResponse(schedule_version=schedule.version, tzdata_version=tzdata_version(), unchanged=True)
    timetable = schedule.timetable
    response = FindSlotTimesResponse(
        time_zone=timetable.zone.name,
        schedule_version=schedule.version,
        searched_until=found.searched_until,
        max_posts_per_day=timetable.max_posts_per_day,
        enabled=timetable.enabled,
        tzdata_version=tzdata_version(),
        none_inside_send_window=none_is_within(timetable.weekly_slots, timetable.send_window),
    )
    for first in range(0, len(found.times), _ENCODED_AT_ONCE):
        if first:
            await asyncio.sleep(0)
        for each in found.times[first : first + _ENCODED_AT_ONCE]:
            _write(response.slot_times.add(), each, timetable)
    return response


def check_send_window_response(schedule: AccountSchedule, state: WindowState) -> CheckSendWindowResponse:
    return CheckSendWindowResponse(
        open=state.open,
        open_time=state.open_time,
        close_time=state.close_time,
        time=state.time,
        time_zone=schedule.timetable.zone.name,
        schedule_version=schedule.version,
    )


def _write(message: account_schedule_pb2.SlotTime, occurrence: Occurrence, timetable: Timetable) -> None:
    """Fills a message in place: a time that is made and then copied costs three times as much."""
    local, window = occurrence.local, timetable.send_window
    put(message.time, occurrence.instant)
    message.local_date = local.date().isoformat()
    message.local_time = local.time().isoformat("minutes")
    message.utc_offset_seconds = int(occurrence.offset.total_seconds())
    message.shifted = occurrence.shifted
    message.outside_send_window = window is not None and not window.contains(local)
    message.nominal_local_time = (occurrence.nominal if occurrence.shifted else local).isoformat(timespec="minutes")
    message.category_id = timetable.category_of(occurrence.slot)


def _send_window(message: account_schedule_pb2.AccountSchedule) -> SendWindow | None:
    if not message.HasField("send_window"):
        return None
    return send_window(message.send_window, "account_schedule.send_window")
