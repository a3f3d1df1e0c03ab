"""Use of the daily caps of an account, as callers see it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from channels import Action
from publisher_service.domain.account_schedule import LocalDay
from publisher_service.domain.limits import LimitDefaults


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    action: Action
    used: int
    cap: int | None
    # The cap is the account's own.
    is_override: bool
    # Posts that wait for the cap.
    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountUsage:
    local_date: date
    time_zone: str
    reset_time: datetime
    usages: Sequence[Usage]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """One action of an account: its own cap, the sends of the day, and how many posts wait for it."""

    cap: int | None
    used: int
    waiting: int


def usage_of(time_zone: str, day: LocalDay, counted: Mapping[Action, Counted], defaults: LimitDefaults) -> AccountUsage:
    """Returns the use of every action that is capped or was used today, in the order of the actions."""
    usages = [_usage(action, counted[action], defaults) for action in Action]
    return AccountUsage(
        local_date=day.date,
        time_zone=time_zone,
        reset_time=day.end,
        usages=[each for each in usages if each.cap is not None or each.used],
    )


def _usage(action: Action, counted: Counted, defaults: LimitDefaults) -> Usage:
    is_override = counted.cap is not None
    return Usage(
        action=action,
        used=counted.used,
        cap=counted.cap if is_override else defaults.caps.get(action),
        is_override=is_override,
        waiting=counted.waiting,
    )
