"""GetAccountSchedule: returns the schedule of an account."""

from schedule_service.adapters.postgres.account_schedules import find_schedule
from schedule_service.domain.calendars.account_schedule import AccountSchedule, found
from servicekit.pg.database import Database


class GetAccountSchedule:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def __call__(self, *, organization_id: str, social_account_id: str) -> AccountSchedule:
        async with self._database.read_session() as session:
            return found(await find_schedule(session, organization_id, social_account_id), social_account_id)
