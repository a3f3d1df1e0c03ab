"""FindSlotTimes: when the account's weekly slots come round."""

import asyncio
from datetime import datetime

from schedule_service.adapters.postgres import account_schedules as store
from schedule_service.domain.calendars.account_schedule import AccountSchedule, Edition, edition, found, require_times
from schedule_service.domain.calendars.slot_times import SlotTimes, search, slot_times
from schedule_service.wire import account_schedules as wire
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database

_AT_ONCE = 100


class FindSlotTimes:
    def __init__(self, *, database: Database, clock: DatabaseClock) -> None:
        self._database = database
        self._clock = clock

    async def __call__(
        self,
        *,
        organization_id: str,
        social_account_id: str,
        after: datetime | None,
        before: datetime | None,
        count: int,
        known: Edition | None = None,
    ) -> wire.FindSlotTimesResponse:
        """Without `after`: those that can still be given out. Without `before`: as far as a search reaches. Who has the
        times of the `known` edition is told whether it is still the one in force."""
        async with self._database.read() as connection:
            now = after or await self._clock.now(connection)  # who names the start needs no clock
            wanted = search(after=after, before=before, count=count, now=now)
            schedule = found(await store.find(connection, organization_id, social_account_id), social_account_id)
        require_times(schedule)
        if edition(schedule) == known:
            return wire.unchanged(known)
        return await encoded(schedule, slot_times(schedule.timetable, wanted))


async def encoded(schedule: AccountSchedule, found: SlotTimes) -> wire.FindSlotTimesResponse:
    """A thousand times take milliseconds to write down: others have their turn in between."""
    answer = wire.found_slot_times(schedule, found)
    for first in range(0, len(found.times), _AT_ONCE):
        if first:
            await asyncio.sleep(0)
        wire.add_slot_times(answer, schedule, found.times[first : first + _AT_ONCE])
    return answer
