"""A client of Schedule, for the times of an account's weekly slots, with a cache, and for its schedule.

Each call for times asks Schedule whether the cached ones are still valid, because the event of a change may not have
arrived.
"""

from collections import OrderedDict
from datetime import datetime
from typing import TypeAlias

import grpc

from postflow.schedule.v1 import schedule_service_pb2, schedule_service_pb2_grpc
from queue_service.domain.account import AccountKey, AccountQueue
from queue_service.domain.passed_times import OfferedTime
from queue_service.domain.rescheduling import Timetable
from queue_service.domain.slot_times import SlotTimes
from queue_service.wire import schedules as wire
from servicekit.faults import DeadlineExceeded, Unavailable
from servicekit.rpc import calling
from servicekit.timestamps import timestamp

_SHORT_TIMEOUT = 1.0
"""The timeout in seconds when cached times can serve as the answer, or the caller can do without one."""
_MOST = 1000
"""The most times that Schedule lists in one answer: more than a week has."""


class ScheduleClient:
    def __init__(self, channel: grpc.aio.Channel, *, cached_times: int) -> None:
        self._service = schedule_service_pb2_grpc.ScheduleServiceStub(channel)
        self._cache = _Cache(cached_times)

    async def slot_times(
        self,
        organization_id: str,
        queue: AccountQueue,
        *,
        start: datetime,
        horizon: datetime,
        count: int,
        category_id: str | None = None,
        needed: int = 1,
    ) -> SlotTimes:
        """Returns `count` times inside the send window from `start` on.

        They are cached ones if those are still valid, or if Schedule is unreachable. A cached page is used if it has
        `needed` times from `start` on. With a `category_id`, only times that are kept for this category or, if it is
        empty, for none. The times may be of another schedule version than the queue's, and may begin before `start`.
        Raises NotFound for an account without a schedule.
        """
        key = (organization_id, queue.social_account_id, category_id)
        cached = self._cache.find(key)
        if cached and not (cached.are_those_of(queue) and cached.covers(start) and cached.has(needed, start)):
            cached = None
        request = schedule_service_pb2.FindSlotTimesRequest(
            organization_id=organization_id,
            social_account_id=queue.social_account_id,
            after=timestamp(start),
            before=timestamp(horizon),
            count=count,
            known_schedule_version=cached.schedule_version if cached else 0,
            known_tzdata_version=cached.tzdata_version if cached else "",
            of_category_only=category_id is not None,
            category_id=category_id,
            inside_send_window_only=True,
        )
        try:
            with calling():
                found = await self._service.FindSlotTimes(request, timeout=_SHORT_TIMEOUT if cached else None)
        except (Unavailable, DeadlineExceeded):
            if cached is None:
                raise
            return cached
        if cached and found.unchanged:
            return cached
        times = wire.slot_times(request, found)
        # The last page is not cached, because it ends at the horizon, which moves with the clock; nor is one without
        # times, which the bound of the cache would not count.
        self._cache.put(key, None if times.last or not times.times else times)
        return times

    async def offered_times(self, account: AccountKey, start: datetime, end: datetime) -> list[OfferedTime]:
        """Returns the times of all categories, outside the send window too, from `start` until `end`, 1,000 at most.

        Caches nothing.
        """
        organization_id, social_account_id = account
        request = schedule_service_pb2.FindSlotTimesRequest(
            organization_id=organization_id,
            social_account_id=social_account_id,
            after=timestamp(start),
            before=timestamp(end),
            count=_MOST,
        )
        with calling():
            return wire.offered_times(await self._service.FindSlotTimes(request, timeout=_SHORT_TIMEOUT))

    async def timetable(self, organization_id: str, social_account_id: str) -> Timetable:
        """Returns the schedule of an account. Raises NotFound if it has none."""
        request = schedule_service_pb2.GetAccountScheduleRequest(
            organization_id=organization_id, social_account_id=social_account_id
        )
        with calling():
            return wire.timetable((await self._service.GetAccountSchedule(request)).account_schedule)


_CacheKey: TypeAlias = tuple[str, str, str | None]
"""An organization, one of its accounts, and the category of the times; None stands for times of any category."""


class _Cache:
    """Pages by account and category, least recently used first, bounded by the number of times in them."""

    def __init__(self, most_times: int) -> None:
        self._most_times = most_times
        self._held = 0
        self._pages: OrderedDict[_CacheKey, SlotTimes] = OrderedDict()

    def find(self, key: _CacheKey) -> SlotTimes | None:
        if key in self._pages:
            self._pages.move_to_end(key)
        return self._pages.get(key)

    def put(self, key: _CacheKey, page: SlotTimes | None) -> None:
        if (old := self._pages.pop(key, None)) is not None:
            self._held -= len(old.times)
        if page is None:
            return
        self._pages[key] = page
        self._held += len(page.times)
        while self._held > self._most_times:
            _, dropped = self._pages.popitem(last=False)
            self._held -= len(dropped.times)
