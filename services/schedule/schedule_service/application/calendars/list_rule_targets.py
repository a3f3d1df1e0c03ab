"""ListRuleTargets: lists the times at which the rules of a brand want a draft to be posted."""

import asyncio
from datetime import datetime, timedelta

from schedule_service.adapters.postgres.schedule_rules import list_enabled_rules
from schedule_service.application.calendars.worker_threads import worker_slots
from schedule_service.domain.calendars.rule_targets import Span, TargetPage, page_of, span
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database


class ListRuleTargets:
    def __init__(self, *, database: Database, clock: DatabaseClock) -> None:
        self._database = database
        self._clock = clock
        self._worker_slots = worker_slots()

    async def __call__(
        self,
        *,
        organization_id: str,
        brand_id: str,
        after: datetime | None,
        horizon: timedelta | None,
        rest: Span | None,
        size: int,
    ) -> TargetPage:
        """Lists targets from `after`, or now, for `horizon`; or those in `rest`, which previous pages have left."""
        async with self._worker_slots:
            async with self._database.read() as connection:
                now = await self._clock.now(connection)
                wanted = rest or span(after=after, horizon=horizon, now=now)
                rules = await list_enabled_rules(connection, organization_id, brand_id)
            # In a thread, because the rules of a large brand take tens of milliseconds, which would delay timers.
            return await asyncio.to_thread(page_of, rules, wanted, size=size)
