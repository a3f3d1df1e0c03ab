"""ListScheduleRules: returns a page of the rules of an organization or a brand, in the order of their ids."""

from schedule_service.adapters.postgres.schedule_rules import list_rules
from schedule_service.domain.calendars.schedule_rule import ScheduleRule
from servicekit.pg.database import Database


class ListScheduleRules:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def __call__(self, *, organization_id: str, brand_id: str, after: str, size: int) -> list[ScheduleRule]:
        """Lists the rules after the rule `after`; an empty brand means those of all."""
        async with self._database.read() as connection:
            return await list_rules(connection, organization_id, brand_id=brand_id, after=after, size=size)
