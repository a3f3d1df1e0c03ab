"""The knowledge of Queue about a slot besides the slot itself: its account, its draft, and what was asked about it."""

from dataclasses import dataclass
from datetime import datetime

from queue_service.domain.late_policy import DEFAULT_POLICY, LateAction, LatePolicy
from queue_service.domain.slot import QueueSlot, SlotState, TakingBack


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """An account or a draft that has not been announced has the defaults.

    `is_connected` and `is_approved` are None while that is unknown. `next_due_time` is when dispatch looks at the
    account next.
    """

    move_reason: str = ""
    taking_back: TakingBack = TakingBack.NO
    pause_time: datetime | None = None
    pauser: str = ""
    pause_reason: str = ""
    is_disabled: bool = False
    is_connected: bool | None = None
    next_due_time: datetime | None = None
    late_policy: LatePolicy = DEFAULT_POLICY
    max_posts_per_day: int = 0
    time_zone: str = ""
    skipped_times: tuple[datetime, ...] = ()
    category_id: str = ""
    is_approved: bool | None = None

    def is_moved_when_late(self, slot: QueueSlot) -> bool:
        """Returns whether the late policy gives the slot another time when its grace has passed."""
        is_reslot = self.late_policy.action is LateAction.RESLOT
        return is_reslot and slot.state is SlotState.SCHEDULED and not self.is_held_up

    @property
    def is_held_up(self) -> bool:
        """Returns whether dispatch passes over the account."""
        return self.pause_time is not None or self.is_disabled or self.is_connected is False
