"""The late policy of a queue, for posts that could not be handed over in time."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class LateAction(StrEnum):
    PUBLISH = "PUBLISH"
    RESLOT = "RESLOT"
    MISS = "MISS"


@dataclass(frozen=True, slots=True, kw_only=True)
class LatePolicy:
    """Up to `grace` late, a post goes out as if nothing had happened; then `action` applies."""

    grace: timedelta = timedelta(minutes=10)
    action: LateAction = LateAction.PUBLISH

    def limit(self, late_limit: timedelta) -> timedelta:
        """Returns how late a post may be before it is MISSED: `late_limit` unless the action is MISS, or the grace."""
        return self.grace if self.action is LateAction.MISS else max(self.grace, late_limit)

    def first_time(self, now: datetime, notice: timedelta) -> datetime:
        """Returns the first time for overdue posts: now, unless they might be too late again before they go out."""
        return now if self.action is LateAction.PUBLISH or self.grace >= notice else now + notice


DEFAULT_POLICY = LatePolicy()
PACE = timedelta(minutes=5)
"""The time between two overdue posts that go out paced, unless the queue has another one."""
