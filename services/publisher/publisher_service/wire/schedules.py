"""Schedules of accounts, as Schedule announces them."""

from datetime import time

from civil.windows import SendWindow
from civil.zones import UnknownZone, find_zone
from postflow.schedule.v1 import account_schedule_pb2, schedule_events_pb2
from publisher_service.domain.account_schedule import AccountSchedule
from publisher_service.wire.unreadable import UnreadableMessage


def account_schedule_from(message: schedule_events_pb2.AccountScheduleChanged) -> AccountSchedule:
    """Reads a schedule. Raises UnreadableMessage if it names no account, or a zone or window that cannot be."""
    schedule = message.account_schedule
    if not (message.organization_id and schedule.social_account_id):
        raise UnreadableMessage("an AccountScheduleChanged lacks its organization or account")
    if message.deleted:
        return AccountSchedule(
            organization_id=message.organization_id,
            social_account_id=schedule.social_account_id,
            version=schedule.version,
            deleted=True,
        )
    try:
        zone, window = find_zone(schedule.time_zone).name, _window(schedule)
    except (UnknownZone, ValueError) as error:
        raise UnreadableMessage(f"an AccountScheduleChanged that cannot be applied: {error}") from None
    return AccountSchedule(
        organization_id=message.organization_id,
        social_account_id=schedule.social_account_id,
        version=schedule.version,
        time_zone=zone,
        enabled=schedule.enabled if schedule.HasField("enabled") else True,
        window=window,
        min_spacing=schedule.min_spacing.ToTimedelta() or None,
    )


def _window(schedule: account_schedule_pb2.AccountSchedule) -> SendWindow | None:
    if not schedule.HasField("send_window"):
        return None
    window = schedule.send_window
    return SendWindow(
        # Sunday is 7 there, and 0 here.
        days=frozenset(day % 7 for day in window.days_of_week),
        start=_clock(window.start),
        end=_clock(window.end) if window.HasField("end") else None,
    )


def _clock(message: account_schedule_pb2.LocalTime) -> time:
    return time(message.hour, message.minute)
