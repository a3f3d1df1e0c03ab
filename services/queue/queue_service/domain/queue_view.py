"""The queue of an account as callers see it: its settings, what holds it up, and how far its slots reach."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from civil.days import local_day
from civil.zones import find_zone, zone_names
from queue_service.domain.late_policy import DEFAULT_POLICY, PACE, LatePolicy
from queue_service.domain.slot import QueueSlot


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveSlots:
    """Counts an account's live slots, and says from when to when they reach. Overdue ones are SCHEDULED, too."""

    scheduled: int = 0
    dispatched: int = 0
    overdue: int = 0
    next_time: datetime | None = None
    last_time: datetime | None = None


NO_SLOTS = LiveSlots()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueView:
    """An account that Queue has no row of has the defaults.

    `is_connected` is None while Publisher has announced nothing about the account.
    """

    social_account_id: str
    etag: str = "0"
    pause_time: datetime | None = None
    pauser: str = ""
    pause_reason: str = ""
    is_hold_pending: bool = False
    schedule_enabled: bool = False
    is_connected: bool | None = None
    time_zone: str = ""
    skip_next: bool = False
    skipped_times: tuple[datetime, ...] = ()
    late_policy: LatePolicy = DEFAULT_POLICY
    pace: timedelta = PACE
    slots: LiveSlots = NO_SLOTS
    next_free_time: datetime | None = None

    @property
    def empty_on(self) -> date | None:
        """Returns the local date of the last slot, in UTC if the zone is unknown."""
        if self.slots.last_time is None:
            return None
        if self.time_zone not in zone_names():
            return self.slots.last_time.astimezone(UTC).date()
        return local_day(self.slots.last_time, find_zone(self.time_zone))


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused:
    """A paused queue, and the posts of it that were being sent or may be out."""

    view: QueueView
    in_flight: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """A resumed queue, and the first of its overdue slots by what has become of them."""

    view: QueueView
    moved: tuple[QueueSlot, ...] = ()
    canceled: tuple[QueueSlot, ...] = ()
