"""Accounts' schedules and their slot times, as Schedule answers and announces them."""

from datetime import datetime, time, timedelta

from civil.weekly import WeeklySlot
from civil.windows import SendWindow
from civil.zones import find_zone, zone_names
from postflow.schedule.v1 import account_schedule_pb2, schedule_events_pb2, schedule_service_pb2
from queue_service.domain.account import AnnouncedSchedule
from queue_service.domain.passed_times import OfferedTime
from queue_service.domain.rescheduling import Timetable
from queue_service.domain.slot_times import SlotTimes
from queue_service.wire.required import required
from servicekit.timestamps import moment

_JUST_AFTER = timedelta(microseconds=1)


def slot_times(
    asked: schedule_service_pb2.FindSlotTimesRequest, found: schedule_service_pb2.FindSlotTimesResponse
) -> SlotTimes:
    """Reads the answer to the request for `count` times from `after` until `before`."""
    cut_off = len(found.slot_times) >= asked.count
    wanted = [each for each in found.slot_times if _is_wanted(asked, each)]
    return SlotTimes(
        schedule_version=found.schedule_version,
        after=moment(asked.after),
        until=moment(found.slot_times[-1].time) + _JUST_AFTER if cut_off else moment(asked.before),
        times=tuple(moment(each.time) for each in wanted),
        nominals=tuple(map(_nominal, wanted)),
        last=not cut_off,
        all_outside=found.none_inside_send_window and not wanted,
        schedule=_schedule(asked, found),
    )


def offered_times(found: schedule_service_pb2.FindSlotTimesResponse) -> list[OfferedTime]:
    return [OfferedTime(moment(each.time), each.category_id, each.outside_send_window) for each in found.slot_times]


def _is_wanted(asked: schedule_service_pb2.FindSlotTimesRequest, found: account_schedule_pb2.SlotTime) -> bool:
    """Returns whether the time is one of those asked for. The previous release answers with all times."""
    is_of_category = not asked.of_category_only or found.category_id == asked.category_id
    return is_of_category and not (asked.inside_send_window_only and found.outside_send_window)


def _nominal(found: account_schedule_pb2.SlotTime) -> datetime | None:
    """Returns the nominal time. The previous release sends none: then it is the local time, unless that was shifted."""
    if found.nominal_local_time:
        return datetime.fromisoformat(found.nominal_local_time)
    if found.shifted or not found.local_date:
        return None
    return datetime.fromisoformat(f"{found.local_date}T{found.local_time}")


def _schedule(
    asked: schedule_service_pb2.FindSlotTimesRequest, found: schedule_service_pb2.FindSlotTimesResponse
) -> AnnouncedSchedule | None:
    """Returns None if Schedule runs the previous release, which sends no schedule, or has a zone unknown here."""
    if not found.tzdata_version or found.time_zone not in zone_names():
        return None
    return AnnouncedSchedule(
        organization_id=asked.organization_id,
        social_account_id=asked.social_account_id,
        version=found.schedule_version,
        time_zone=found.time_zone,
        max_posts_per_day=found.max_posts_per_day,
        enabled=found.enabled,
        tzdata_version=found.tzdata_version,
    )


def timetable(schedule: account_schedule_pb2.AccountSchedule) -> Timetable:
    return Timetable(
        weekly_slots={weekly_slot(each): each.category_id for each in schedule.weekly_slots},
        time_zone=schedule.time_zone,
        max_posts_per_day=schedule.max_posts_per_day,
        enabled=schedule.enabled,
        send_window=_send_window(schedule.send_window) if schedule.HasField("send_window") else None,
    )


def _send_window(message: account_schedule_pb2.SendWindow) -> SendWindow:
    return SendWindow(
        days=frozenset(day % 7 for day in message.days_of_week),
        start=_clock(message.start),
        end=_clock(message.end) if message.HasField("end") else None,
    )


def _clock(message: account_schedule_pb2.LocalTime) -> time:
    return time(message.hour, message.minute)


def weekly_slot(message: account_schedule_pb2.WeeklySlot) -> WeeklySlot:
    # Sunday is 7 there, and 0 here.
    return WeeklySlot(day=message.day_of_week % 7, hour=message.hour, minute=message.minute)


def changed_schedule(message: schedule_events_pb2.AccountScheduleChanged) -> AnnouncedSchedule:
    schedule = message.account_schedule
    is_deleted = message.deleted
    return AnnouncedSchedule(
        organization_id=required(message.organization_id, "organization_id"),
        social_account_id=required(schedule.social_account_id, "social_account_id"),
        version=schedule.version,
        # Refused here, an unknown zone stops this event only, and not each of the account's posts.
        time_zone="" if is_deleted else find_zone(schedule.time_zone).name,
        max_posts_per_day=0 if is_deleted else schedule.max_posts_per_day,
        enabled=schedule.enabled and not is_deleted,
        tzdata_version=schedule.tzdata_version,
    )
