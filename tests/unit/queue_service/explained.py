"""Slots to explain."""

from datetime import timedelta
from typing import Any

from queue_service.domain.job import JobState
from queue_service.domain.slot import QueueSlot, SlotOrigin, SlotState, SlotTarget
from testkit.clocks import START

HOUR = timedelta(hours=1)


def target(state: JobState | None = None, reason: str = "", *, channel: str = "facebook", **fields: Any) -> SlotTarget:
    return SlotTarget(channel=channel, destination="", job_state=state, state_reason=reason, **fields)


def slot_of(*targets: SlotTarget, state: SlotState = SlotState.SCHEDULED, **changes: Any) -> QueueSlot:
    """Makes a slot in an hour."""
    fields: dict[str, Any] = {
        "organization_id": "acme",
        "id": "s1",
        "draft_id": "d1",
        "social_account_id": "page",
        "schedule_time": START + HOUR,
        "state": state,
        "origin": SlotOrigin.QUEUE,
        "revision": 1,
        "targets": targets or (target(),),
        "not_after": START + 25 * HOUR,
        "time_zone": "",
        "local_date": None,
        "local_time": None,
        "content_revision": 1,
        "traceparent": "",
        "create_time": START,
        "update_time": START,
    }
    return QueueSlot(**fields | changes)
