"""The queue of one account: what Schedule has told of it, and how far it is filled."""

from dataclasses import dataclass
from datetime import datetime

from queue_service.domain.frontier import NOTHING_KNOWN, Frontier


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountQueue:
    """`schedule_version` 0: Schedule has not told of a schedule (yet)."""

    social_account_id: str
    schedule_version: int = 0
    time_zone: str = ""
    max_posts_per_day: int = 0
    enabled: bool = False
    frontier: Frontier = NOTHING_KNOWN
    next_due_time: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedSchedule:
    """An account's schedule as Schedule has announced it."""

    organization_id: str
    social_account_id: str
    version: int
    time_zone: str
    max_posts_per_day: int
    enabled: bool
