"""The queue of one account: its schedule as far as Schedule has announced it, and how far it is filled."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeAlias

from queue_service.domain.frontier import EPOCH, NOTHING_KNOWN, Frontier
from queue_service.domain.late_policy import DEFAULT_POLICY, PACE, LateAction, LatePolicy
from servicekit.faults import Conflict

AccountKey: TypeAlias = tuple[str, str]
"""An organization and one of its accounts."""


class DueAccount(NamedTuple):
    """An account and when its first slot is due; accounts are paged through in this order."""

    due_time: datetime
    organization_id: str
    social_account_id: str

    @property
    def account(self) -> AccountKey:
        return self.organization_id, self.social_account_id


BEFORE_ALL = DueAccount(EPOCH, "", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountQueue:
    """One account's queue.

    `schedule_version` is 0 until Schedule has announced a schedule. After that, an empty `time_zone` means that the
    schedule was deleted. `tzdata_version` is the newest tzdata release with which Schedule has computed times. If
    `slots_behind`, some slots may have been computed with an older one.

    `frontier` is that of the slot times without a category; `category_frontiers` has those of the categories that have
    been searched. The next draft that is added to the end leaves a slot time empty if `skip_next`; `skipped_times` are
    those in the future that are empty for this reason. `arrangement` counts the changes that calls have made.
    """

    social_account_id: str
    schedule_version: int = 0
    time_zone: str = ""
    max_posts_per_day: int = 0
    enabled: bool = False
    frontier: Frontier = NOTHING_KNOWN
    next_due_time: datetime | None = None
    tzdata_version: str = ""
    slots_behind: bool = False
    # The greatest sequence of its slots.
    last_sequence: int = 0
    arrangement: int = 0
    category_frontiers: Mapping[str, Frontier] = field(default_factory=dict)
    # Since when it is paused.
    pause_time: datetime | None = None
    skip_next: bool = False
    skipped_times: tuple[datetime, ...] = ()
    late_policy: LatePolicy = DEFAULT_POLICY
    pace: timedelta = PACE

    @property
    def etag(self) -> str:
        return str(self.arrangement)

    def latest(self, schedule_time: datetime, late_limit: timedelta) -> datetime:
        """Returns the instant after which a slot at this time is MISSED; MISS has a limit of its own."""
        return schedule_time + self.late_policy.limit(late_limit)

    @property
    def reslots(self) -> bool:
        """Returns whether late slots get other times now: not while dispatch passes the account over."""
        is_disabled = self.schedule_version > 0 and bool(self.time_zone) and not self.enabled
        return self.late_policy.action is LateAction.RESLOT and self.pause_time is None and not is_disabled

    def learns_from(self, announced: "AnnouncedSchedule") -> bool:
        return announced.version > self.schedule_version or announced.tzdata_version > self.tzdata_version

    def learned(self, announced: "AnnouncedSchedule") -> "AccountQueue":
        """Returns the account as it is once a newer schedule, or newer time zone data, has been saved."""
        fields: dict[str, Any] = {}
        if announced.version > self.schedule_version:
            fields = {
                "schedule_version": announced.version,
                "time_zone": announced.time_zone,
                "max_posts_per_day": announced.max_posts_per_day,
                "enabled": announced.enabled,
            }
        release = max(announced.tzdata_version, self.tzdata_version)
        return replace(self, **fields, tzdata_version=release, frontier=NOTHING_KNOWN, category_frontiers={})

    def frontier_of(self, category: str) -> Frontier:
        return self.category_frontiers.get(category, NOTHING_KNOWN) if category else self.frontier

    def with_frontier_of(self, category: str, frontier: Frontier) -> "AccountQueue":
        if not category:
            return replace(self, frontier=frontier)
        return replace(self, category_frontiers={**self.category_frontiers, category: frontier})

    def reopened(self, start: datetime, end: datetime) -> "AccountQueue":
        """Records that slot times from `start` until `end` may be free again, those of all categories."""
        categories = {name: frontier.reopened(start, end) for name, frontier in self.category_frontiers.items()}
        return replace(self, frontier=self.frontier.reopened(start, end), category_frontiers=categories)


def require_etag(queue: AccountQueue, etag: str) -> None:
    """Refuses a call that was meant for the queue as it was before another call changed it."""
    if etag and etag != queue.etag:
        raise Conflict(
            "ETAG_MISMATCH",
            "the queue has changed since it was read; read it again",
            metadata={"social_account_id": queue.social_account_id, "etag": queue.etag},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """The state of an account's connection, without which it cannot post, as Publisher announced it."""

    organization_id: str
    social_account_id: str
    version: int
    is_connected: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnouncedSchedule:
    """An account's schedule from an event or an answer of Schedule. An empty `time_zone` means that it was deleted.

    Tzdata releases are ordered by their names: 2026a, 2026b, ...
    """

    organization_id: str
    social_account_id: str
    version: int
    time_zone: str
    max_posts_per_day: int
    enabled: bool
    tzdata_version: str = ""
