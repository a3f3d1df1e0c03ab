"""ListAccountSchedules: returns a page of an organization's schedules, in the order of their account ids."""

from schedule_service.adapters.postgres.account_schedules import list_schedules
from schedule_service.domain.calendars.account_schedule import AccountSchedule
from servicekit.pg.database import Database


class ListAccountSchedules:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def __call__(self, *, organization_id: str, after: str, size: int) -> list[AccountSchedule]:
        """Lists the schedules after the account `after`."""
        async with self._database.read() as connection:
            return await list_schedules(connection, organization_id, after=after, size=size)
