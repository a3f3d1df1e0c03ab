"""A queue slot: one instant at which one draft is sent to one or more targets of one account."""

from datetime import date, datetime, time, timedelta
from enum import StrEnum

from queue_service.domain.job import JobState
from servicekit.record import record

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
    DRAFT = "DRAFT"


class MoveReason(StrEnum):
    """The reason why a slot has another time than it had at first."""

    ZONE_DATA = "ZONE_DATA"
    REORDERED = "REORDERED"
    MOVED = "MOVED"
    SHUFFLED = "SHUFFLED"
    SHIFTED = "SHIFTED"
    RESUMED = "RESUMED"
    LATE = "LATE"
    DRAFT_TIME = "DRAFT_TIME"
    TAKEN_BACK = "TAKEN_BACK"


class CancelReason(StrEnum):
    """The reason why a call canceled a slot, which sent nothing."""

    REMOVED = "REMOVED"
    CLEARED = "CLEARED"
    OVERDUE = "OVERDUE"


class TakingBack(StrEnum):
    """The purpose for which Publisher is asked to give a dispatched slot back."""

    NO = ""
    RETURN = "RETURN"
    CANCEL = "CANCEL"


# Still to be sent: such a slot occupies its time and the minute on either side.
LIVE = frozenset({SlotState.SCHEDULED, SlotState.DISPATCHED})
# Uses up a place under the daily cap: still to be sent, sent, and possibly sent.
COUNTED = LIVE | {SlotState.PUBLISHED, SlotState.PARTIALLY_PUBLISHED, SlotState.NEEDS_ATTENTION}


# The reason of a slot that sent nothing because its targets had been sent, and of a refused call for such a slot.
DRAFT_PUBLISHED = "DRAFT_PUBLISHED"


@record(frozen=True, slots=True, kw_only=True)
class SlotTarget:
    """One target of a slot with its job as Publisher announced it; `job_version` is 0 until the first announcement."""

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


@record(frozen=True, slots=True, kw_only=True)
class BlockingSlot:
    """A live slot that prevents a new one."""

    slot_id: str
    social_account_id: str
    schedule_time: datetime

    @property
    def metadata(self) -> dict[str, str]:
        """The slot as the metadata of a refusal."""
        return {
            "social_account_id": self.social_account_id,
            "queue_slot_id": self.slot_id,
            "schedule_time": self.schedule_time.isoformat().replace("+00:00", "Z"),
        }


@record(frozen=True, slots=True, kw_only=True)
class QueueSlot:
    organization_id: str
    id: str
    draft_id: str
    social_account_id: str
    schedule_time: datetime
    state: SlotState
    origin: SlotOrigin
    revision: int
    # The newer of two slots of a draft on an account has the greater one. It is assigned under the account's lock.
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
    # The wall-clock time of the weekly slot, and the tzdata release that turned it into `schedule_time`.
    nominal: datetime | None = None
    tzdata_version: str = ""

    @property
    def account(self) -> tuple[str, str]:
        return self.organization_id, self.social_account_id

    def as_blocking(self) -> BlockingSlot:
        return BlockingSlot(slot_id=self.id, social_account_id=self.social_account_id, schedule_time=self.schedule_time)
