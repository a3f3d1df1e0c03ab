"""CreateScheduleRule: adds a rule to a brand."""

import asyncio
from datetime import datetime

from schedule_service.adapters.postgres.schedule_rules import count_rules, insert_rule, lock_brand
from schedule_service.adapters.postgres.zone_data import record_zones
from schedule_service.application.calendars.worker_threads import worker_slots
from schedule_service.domain.calendars.schedule_rule import ScheduleRule, Terms, created, require_room
from schedule_service.wire import schedule_rules as wire
from servicekit.faults import AlreadyExists
from servicekit.ids import IdSource
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Answer, Call, RequestLedger
from servicekit.pg.outbox import Outbox


class CreateScheduleRule:
    def __init__(self, *, ids: IdSource, ledger: RequestLedger, outbox: Outbox) -> None:
        self._ids = ids
        self._ledger = ledger
        self._outbox = outbox
        self._worker_slots = worker_slots()

    async def __call__(self, call: Call[ScheduleRule, Answer], *, rule_id: str, brand_id: str, terms: Terms) -> Answer:
        """Creates the rule; it gets an id if none is given."""
        new_id = rule_id or self._ids.new()
        async with self._worker_slots:
            return await self._ledger.once(
                call, lambda tx, now: self._create(tx, now, call.organization_id, new_id, brand_id, terms)
            )

    async def _create(
        self, tx: Transaction, now: datetime, organization_id: str, rule_id: str, brand_id: str, terms: Terms
    ) -> ScheduleRule:
        # In a thread, because an rrule with COUNT may take a tenth of a second, which would delay timers.
        rule = await asyncio.to_thread(created, organization_id, rule_id, brand_id, terms, now=now)
        await lock_brand(tx.connection, organization_id, brand_id)
        if not await insert_rule(tx.connection, rule):
            raise AlreadyExists(
                "SCHEDULE_RULE_EXISTS",
                "a schedule rule with this id exists, or has been deleted",
                metadata={"schedule_rule_id": rule.id},
            )
        require_room(brand_id, await count_rules(tx.connection, organization_id, brand_id))
        await record_zones(tx.connection, [rule.terms.time_zone])
        await self._outbox.append(tx, [wire.schedule_rule_changed(rule)], now=now)
        return rule
