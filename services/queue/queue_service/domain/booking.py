"""Making a slot."""

from datetime import datetime, timedelta

from civil.zones import stored_zone
from queue_service.domain.account import AccountQueue
from queue_service.domain.draft import Draft
from queue_service.domain.slot import HORIZON, QueueSlot, SlotOrigin, SlotState, SlotTarget
from servicekit.faults import InvalidField

# How long ago an exact time may lie: clocks differ, and a request takes its time.
_TOLERANCE = timedelta(minutes=1)


def check_exact_time(schedule_time: datetime, now: datetime) -> None:
    if schedule_time < now - _TOLERANCE:
        raise InvalidField("schedule_time", "lies more than a minute ago")
    if schedule_time > now + HORIZON:
        raise InvalidField("schedule_time", f"lies more than {HORIZON.days} days ahead")


def book(
    draft: Draft,
    account: AccountQueue,
    schedule_time: datetime,
    *,
    slot_id: str,
    origin: SlotOrigin,
    late_limit: timedelta,
    traceparent: str,
    now: datetime,
    tzdata_version: str,
    nominal: datetime | None = None,
) -> QueueSlot:
    zone = stored_zone(account.time_zone)
    local = schedule_time + zone.offset_at(schedule_time) if zone.is_known else None
    targets = draft.targets_on(account.social_account_id)
    return QueueSlot(
        organization_id=draft.organization_id,
        id=slot_id,
        draft_id=draft.id,
        social_account_id=account.social_account_id,
        schedule_time=schedule_time,
        state=SlotState.SCHEDULED,
        origin=origin,
        revision=1,
        targets=tuple(SlotTarget(channel=target.channel, destination=target.destination) for target in targets),
        not_after=schedule_time + late_limit,
        time_zone=zone.name if local else "",
        local_date=local.date() if local else None,
        local_time=local.time() if local else None,
        content_revision=draft.revision,
        traceparent=traceparent,
        create_time=now,
        update_time=now,
        nominal=nominal,
        tzdata_version=tzdata_version if local else "",
    )
