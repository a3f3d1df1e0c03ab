"""ListActivity and GetUsage: what an account did, and how much of its daily caps that has used."""

from collections.abc import Sequence

from publisher_service.adapters.postgres.account_schedules import schedules_of
from publisher_service.adapters.postgres.accounts import get_account
from publisher_service.adapters.postgres.activities import count_use, list_activities
from publisher_service.domain.account import require_account
from publisher_service.domain.account_schedule import day_of, zone_of
from publisher_service.domain.activity import Activity, ActivityFilter
from publisher_service.domain.limits import DEFAULTS, LimitDefaults
from publisher_service.domain.usage import AccountUsage, usage_of
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database


class ReadActivity:
    def __init__(self, database: Database, clock: DatabaseClock, limits: LimitDefaults = DEFAULTS) -> None:
        self._database = database
        self._clock = clock
        self._limits = limits

    async def list(
        self, wanted: ActivityFilter, *, before: tuple[object, str] | None, limit: int
    ) -> Sequence[Activity]:
        """Lists activities, newest first, behind the (create_time, id) that ended the page before."""
        async with self._database.read() as connection:
            found = await get_account(connection, wanted.organization_id, wanted.account_id)
            require_account(found, wanted.account_id)
            return await list_activities(connection, wanted, before=before, limit=limit)

    async def usage(self, organization_id: str, account_id: str) -> AccountUsage:
        account = (organization_id, account_id)
        async with self._database.read() as connection:
            require_account(await get_account(connection, *account), account_id)
            now = await self._clock.now(connection)
            schedule = (await schedules_of(connection, [account])).get(account)
            zone = zone_of(schedule.time_zone if schedule else "").name
            day = day_of(zone, now)
            return usage_of(zone, day, await count_use(connection, account, day), self._limits)
