"""Reading the latest slot times before an instant from Schedule, which lists them from the earliest on."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

from queue_service.domain.account import AccountKey
from queue_service.domain.passed_times import MOST_PASSED, OfferedTime

_WEEK = timedelta(days=7)
_JUST_AFTER = timedelta(microseconds=1)


class Schedule(Protocol):
    async def offered_times(self, account: AccountKey, start: datetime, end: datetime) -> Sequence[OfferedTime]: ...


class EarlierTimes:
    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule

    async def __call__(self, account: AccountKey, *, since: datetime, until: datetime) -> Sequence[OfferedTime]:
        """Returns about the 50 latest slot times up to `until`, and those at it, but none before `since`.

        Slot times are weekly: the last week says how many weeks have as many.
        """
        end = until + _JUST_AFTER
        week = await self._schedule.offered_times(account, max(since, until - _WEEK), end)
        weekly = sum(each.time < until for each in week)
        if not 0 < weekly < MOST_PASSED or until - _WEEK <= since:
            return week
        weeks = -(-MOST_PASSED // weekly) + 1
        return await self._schedule.offered_times(account, max(since, until - weeks * _WEEK), end)
