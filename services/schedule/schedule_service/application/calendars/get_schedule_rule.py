"""GetScheduleRule: returns a rule."""

from schedule_service.adapters.postgres.schedule_rules import find_rule
from schedule_service.domain.calendars.schedule_rule import ScheduleRule, found
from servicekit.pg.database import Database


class GetScheduleRule:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def __call__(self, *, organization_id: str, rule_id: str) -> ScheduleRule:
        async with self._database.read() as connection:
            return found(await find_rule(connection, organization_id, rule_id), rule_id)
