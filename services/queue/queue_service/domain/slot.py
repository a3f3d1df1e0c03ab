"""A queue slot: one instant at which one draft goes out on one account, to one or more targets."""

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import StrEnum

from queue_service.domain.job import JobState

# Two live slots of an account lie at least this far apart.
SPACING = timedelta(minutes=1)
HORIZON = timedelta(days=730)


class SlotState(StrEnum):
    SCHEDULED = "SCHEDULED"
    DISPATCHED = "DISPATCHED"
    PUBLISHED = "PUBLISHED"
    PARTIALLY_PUBLISHED = "PARTIALLY_PUBLISHED"
    FAILED = "FAILED"
    MISSED = "MISSED"
    NEEDS_ATTENTION = "NEEDS_ATTENTION"
    CANCELED = "CANCELED"


class SlotOrigin(StrEnum):
    QUEUE = "QUEUE"
    EXACT = "EXACT"


# Still to go out: such a slot holds its time and the minute on either side.
LIVE = frozenset({SlotState.SCHEDULED, SlotState.DISPATCHED})
# Uses up a place under the daily cap: what is to go out, what went out, and what may have gone out.
COUNTED = LIVE | {SlotState.PUBLISHED, SlotState.PARTIALLY_PUBLISHED, SlotState.NEEDS_ATTENTION}


# Of a slot that sent nothing because its targets were out already, and of a call that asks for such a slot.
DRAFT_PUBLISHED = "DRAFT_PUBLISHED"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotTarget:
    """One target of a slot, and its job as Publisher announced it; `job_version` 0 and no state: not announced yet."""

    channel: str
    destination: str
    job_id: str = ""
    job_state: JobState | None = None
    job_version: int = 0
    external_url: str = ""
    error_message: str = ""
    state_reason: str = ""
    next_action_time: datetime | None = None
    publish_time: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A live slot that stands in the way."""

    slot_id: str
    social_account_id: str
    schedule_time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSlot:
    organization_id: str
    id: str
    draft_id: str
    social_account_id: str
    schedule_time: datetime
    state: SlotState
    origin: SlotOrigin
    revision: int
    # Of two slots of a draft on an account the newer has the greater one; given by the database when it is stored.
    sequence: int = 0
    targets: tuple[SlotTarget, ...]
    not_after: datetime
    time_zone: str
    local_date: date | None
    local_time: time | None
    content_revision: int
    traceparent: str
    create_time: datetime
    update_time: datetime
    expected_time: datetime | None = None
    publish_time: datetime | None = None
    state_reason: str = ""
    # What the weekly slot asked for on the wall, and the release of the IANA database that made an instant of it.
    nominal: datetime | None = None
    tzdata_version: str = ""
