"""FindSlotTimes: lists the times of an account's weekly slots."""

from datetime import datetime
from typing import NamedTuple

from schedule_service.adapters.postgres.account_schedules import find_schedule
from schedule_service.domain.calendars.account_schedule import AccountSchedule, Edition, edition, found, require_times
from schedule_service.domain.calendars.slot_times import SlotTimes, search, slot_times
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database


class FoundSlotTimes(NamedTuple):
    schedule: AccountSchedule
    times: SlotTimes | None
    """None: the caller knows them."""


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
        category_id: str | None = None,
        inside_window_only: bool = False,
        known: Edition | None = None,
    ) -> FoundSlotTimes:
        """Searches from `after` until `before`; by default from the end of the notice, and as far as possible.

        With a `category_id`, only times of weekly slots that are kept for it or, if it is empty, for no category; with
        `inside_window_only`, only times inside the send window.
        Returns no times if `known` is the current edition, because the caller has them already.
        """
        async with self._database.read_session() as session:
            now = after or await self._clock.now(session)  # A given start needs no clock.
            wanted = search(
                after=after,
                before=before,
                count=count,
                category_id=category_id,
                inside_window_only=inside_window_only,
                now=now,
            )
            schedule = found(await find_schedule(session, organization_id, social_account_id), social_account_id)
        require_times(schedule)
        if edition(schedule) == known:
            return FoundSlotTimes(schedule, None)
        return FoundSlotTimes(schedule, slot_times(schedule.timetable, wanted))
