"""GetAccountSchedule: the schedule of an account as it is now."""

from schedule_service.adapters.postgres import account_schedules as store
from schedule_service.domain.calendars.account_schedule import found
from schedule_service.wire import account_schedules as wire
from servicekit.pg.database import Database


class GetAccountSchedule:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def __call__(self, *, organization_id: str, social_account_id: str) -> wire.GetAccountScheduleResponse:
        async with self._database.read() as connection:
            schedule = found(await store.find(connection, organization_id, social_account_id), social_account_id)
        return wire.GetAccountScheduleResponse(account_schedule=wire.shown(schedule))
