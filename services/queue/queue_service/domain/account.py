"""The queue of one account: what Schedule has told of it, and how far it is filled."""

from dataclasses import dataclass
from datetime import datetime

from queue_service.domain.frontier import NOTHING_KNOWN, Frontier


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountQueue:
    """`schedule_version` 0: Schedule has not told of a schedule (yet); without a zone: of one that is gone.

    `tzdata_version` is the newest release of the IANA database by which Schedule has told times; with `slots_behind`
    some of the account's slots may follow an older one.
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

    def learns_from(self, told: "ToldSchedule") -> bool:
        return told.version > self.schedule_version or told.tzdata_version > self.tzdata_version


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """Whether an account can post, as Publisher announced it; the version orders its announcements."""

    organization_id: str
    social_account_id: str
    version: int
    is_connected: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldSchedule:
    """An account's schedule as Schedule has told of it. Without a zone: it has none any more.

    Releases of the IANA database are in the order of their names: 2026a, 2026b, ...
    """

    organization_id: str
    social_account_id: str
    version: int
    time_zone: str
    max_posts_per_day: int
    enabled: bool
    tzdata_version: str = ""
