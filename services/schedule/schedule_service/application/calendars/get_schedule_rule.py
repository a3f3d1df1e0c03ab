"""GetScheduleRule: a rule as it is now."""

from schedule_service.adapters.postgres import rules as store
from schedule_service.domain.calendars.schedule_rule import found
from schedule_service.wire import rules as wire
from servicekit.pg.database import Database


class GetScheduleRule:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def __call__(self, *, organization_id: str, rule_id: str) -> wire.GetScheduleRuleResponse:
        async with self._database.read() as connection:
            rule = found(await store.find(connection, organization_id, rule_id), rule_id)
        return wire.GetScheduleRuleResponse(schedule_rule=wire.shown(rule))
