"""Quotas of the sandbox provider: how many posts an application, an account or a channel may make in a while."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from devstack.sandbox.checks import Refusal
from devstack.sandbox.posts import Surface


class Level(StrEnum):
    APPLICATION = "application"
    """All accounts that post through one surface."""
    ACCOUNT = "account"
    CHANNEL = "channel"
    """One channel of an account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    level: Level
    name: str
    """A surface or an account; empty: each has a quota of its own."""
    limit: int
    seconds: float


@dataclass(slots=True)
class _Used:
    count: int
    end: datetime


class Quotas:
    def __init__(self) -> None:
        self._quotas: list[Quota] = []
        self._used: dict[tuple[int, str], _Used] = {}

    def put(self, quotas: object) -> list[dict[str, object]]:
        """Replaces all quotas, of which nothing is used yet. Raises ValueError."""
        if not isinstance(quotas, list):
            raise TypeError("send a JSON list of quotas")
        self._quotas = [_quota(entry) for entry in quotas]
        self._used.clear()
        return [
            {"level": each.level, "name": each.name, "limit": each.limit, "seconds": each.seconds}
            for each in self._quotas
        ]

    def take(self, surface: Surface, account: str, channel: str, now: datetime) -> str:
        """Counts a post. Returns header lines that say what is left; raises Refusal if nothing is."""
        if not self._quotas:
            return ""
        found = list(self._matching(surface, account, channel, now))
        headers = "".join(_header(quota, used, now) for quota, used in found)
        for quota, used in found:
            if used.count >= quota.limit:
                after = _seconds_to(used.end, now)
                raise Refusal(
                    429,
                    "RATE_LIMITED",
                    f"the quota of the {quota.level} is used up",
                    headers=f"{headers}Retry-After: {after}\r\n",
                    level=quota.level,
                )
        for _, used in found:
            used.count += 1
        return "".join(_header(quota, used, now) for quota, used in found)

    def _matching(self, surface: Surface, account: str, channel: str, now: datetime) -> Iterator[tuple[Quota, _Used]]:
        names = {Level.APPLICATION: str(surface), Level.ACCOUNT: account, Level.CHANNEL: f"{account}/{channel}"}
        for index, quota in enumerate(self._quotas):
            name = names[quota.level]
            if quota.name in {"", name, account}:
                used = self._used.get((index, name))
                if used is None or used.end <= now:
                    used = self._used[index, name] = _Used(0, now + timedelta(seconds=quota.seconds))
                yield quota, used


def _quota(entry: object) -> Quota:
    match entry:
        case {"level": str(level), "limit": int(limit), "seconds": int() | float() as seconds, **rest}:
            quota = Quota(level=Level(level), name="", limit=limit, seconds=seconds)
            return replace(quota, name=str(rest.get("name", "")))
        case _:
            raise ValueError(f"a quota has level ({', '.join(Level)}), limit, seconds and may have a name")


def _header(quota: Quota, used: _Used, now: datetime) -> str:
    left = max(quota.limit - used.count, 0)
    return f"X-Quota-{quota.level.title()}: {left};{_seconds_to(used.end, now)}\r\n"


def _seconds_to(end: datetime, now: datetime) -> int:
    return max(-(-(end - now) // timedelta(seconds=1)), 1)
