"""The knowledge of Queue about a slot besides the slot itself: its account, its draft, and what was asked about it."""

from dataclasses import dataclass
from datetime import datetime

from queue_service.domain.late_policy import DEFAULT_POLICY, LatePolicy
from queue_service.domain.slot import TakingBack


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

    @property
    def is_held_up(self) -> bool:
        """Returns whether dispatch passes over the account."""
        return self.pause_time is not None or self.is_disabled or self.is_connected is False
