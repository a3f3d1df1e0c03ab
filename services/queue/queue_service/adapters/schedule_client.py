"""Schedule, asked for the times of an account's weekly slots; what it said is kept for the next search.

It is asked each time whether what is kept is still so: its announcement of a change may be on the way.
"""

from collections import OrderedDict
from datetime import datetime

import grpc

from postflow.schedule.v1 import schedule_service_pb2, schedule_service_pb2_grpc
from queue_service import wire
from queue_service.domain.account import AccountQueue
from queue_service.domain.slot_times import SlotTimes
from servicekit.faults import DeadlineExceeded, Unavailable
from servicekit.rpc import calling

_PATIENCE = 1.0
"""Seconds, with a Schedule that does not answer, when what is kept will do."""


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
    ) -> SlotTimes:
        """So many times from `start` on; from memory when nothing has changed, or when Schedule is away.

        The answer may follow another version, and may begin before `start`. NotFound: the account has no schedule.
        """
        key = (organization_id, queue.social_account_id)
        kept = self._cache.find(key)
        if kept and not (kept.are_those_of(queue) and kept.covers(start)):
            kept = None
        request = schedule_service_pb2.FindSlotTimesRequest(
            organization_id=organization_id,
            social_account_id=queue.social_account_id,
            after=wire.timestamp(start),
            before=wire.timestamp(horizon),
            count=count,
            known_schedule_version=kept.schedule_version if kept else 0,
            known_tzdata_version=kept.tzdata_version if kept else "",
        )
        try:
            with calling():
                found = await self._service.FindSlotTimes(request, timeout=_PATIENCE if kept else None)
        except (Unavailable, DeadlineExceeded):
            if kept is None:
                raise
            return kept
        if kept and found.unchanged:
            return kept
        times = wire.slot_times(request, found)
        # The last page ends at a horizon that moves on.
        self._cache.put(key, None if times.last else times)
        return times


class _Cache:
    """By account, least recently used first; bounded by the number of times in it."""

    def __init__(self, most_times: int) -> None:
        self._most_times = most_times
        self._held = 0
        self._pages: OrderedDict[tuple[str, str], SlotTimes] = OrderedDict()

    def find(self, key: tuple[str, str]) -> SlotTimes | None:
        if key in self._pages:
            self._pages.move_to_end(key)
        return self._pages.get(key)

    def put(self, key: tuple[str, str], page: SlotTimes | None) -> None:
        if (old := self._pages.pop(key, None)) is not None:
            self._held -= len(old.times)
        if page is None:
            return
        self._pages[key] = page
        self._held += len(page.times)
        while self._held > self._most_times:
            _, dropped = self._pages.popitem(last=False)
            self._held -= len(dropped.times)
