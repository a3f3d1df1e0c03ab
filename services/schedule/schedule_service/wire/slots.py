"""Translates Queue's slot events."""

from datetime import datetime
from typing import TypeAlias

from postflow.queue.v1.queue_events_pb2 import SlotCanceled, SlotMoved, SlotScheduled
from schedule_service.domain.calendars.upcoming_slot import UpcomingSlot
from servicekit.faults import InvalidRequest
from servicekit.timestamps import moment

SlotEvent: TypeAlias = SlotScheduled | SlotMoved | SlotCanceled


def upcoming_slot(event: SlotEvent) -> UpcomingSlot:
    if not (event.organization_id and event.slot_id and event.social_account_id and event.HasField("schedule_time")):
        raise InvalidRequest("MALFORMED_EVENT", "a slot without its ids or its time")
    return UpcomingSlot(
        organization_id=event.organization_id,
        slot_id=event.slot_id,
        social_account_id=event.social_account_id,
        revision=event.revision,
        schedule_time=moment(event.schedule_time),
        time_zone="" if isinstance(event, SlotCanceled) else event.time_zone,
        nominal=None if isinstance(event, SlotCanceled) else _nominal(event.nominal_local_time),
        is_canceled=isinstance(event, SlotCanceled),
    )


def _nominal(text: str) -> datetime | None:
    if not text:
        return None
    try:
        nominal = datetime.fromisoformat(text)  # a fifth of the time of strptime, but it reads other formats, too
    except ValueError:
        raise _malformed(text) from None
    if nominal.tzinfo or nominal.isoformat(timespec="minutes") != text:
        raise _malformed(text)
    return nominal


def _malformed(text: str) -> InvalidRequest:
    return InvalidRequest("MALFORMED_EVENT", f"a slot with the wall-clock time {text!r}")
