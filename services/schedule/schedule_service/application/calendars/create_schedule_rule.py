"""CreateScheduleRule: a new rule of a brand."""

import asyncio

from schedule_service.adapters.postgres import rules as store
from schedule_service.adapters.postgres.zone_data import record_zones
from schedule_service.application.calendars.worker_threads import worker_slots
from schedule_service.domain.calendars.schedule_rule import Terms, created, require_room
from schedule_service.wire import rules as wire
from servicekit.faults import AlreadyExists
from servicekit.ids import IdSource
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger_by_hand import RequestKey, RequestLedger
from servicekit.pg.outbox import Outbox


class CreateScheduleRule:
    def __init__(
        self, *, database: Database, clock: DatabaseClock, ids: IdSource, ledger: RequestLedger, outbox: Outbox
    ) -> None:
        self._database = database
        self._clock = clock
        self._ids = ids
        self._ledger = ledger
        self._outbox = outbox
        self._worker_slots = worker_slots()

    async def __call__(
        self, key: RequestKey, *, rule_id: str, brand_id: str, terms: Terms
    ) -> wire.CreateScheduleRuleResponse:
        """Without an id the rule gets one."""
        async with self._worker_slots:
            return await self._database.run(lambda tx: self._create(tx, key, rule_id, brand_id, terms))

    async def _create(
        self, tx: Transaction, key: RequestKey, rule_id: str, brand_id: str, terms: Terms
    ) -> wire.CreateScheduleRuleResponse:
        now = await self._clock.now(tx.connection)
        past = await self._ledger.recall(tx, key, now=now)
        if past and past.response is not None:
            return wire.CreateScheduleRuleResponse.FromString(past.response)
        # To count a COUNT may take a tenth of a second, which timers need not wait for.
        rule = await asyncio.to_thread(
            created, key.organization_id, rule_id or self._ids.new(), brand_id, terms, now=now
        )
        await store.lock_brand(tx.connection, rule.organization_id, brand_id)
        if not await store.insert(tx.connection, rule):
            raise AlreadyExists(
                "SCHEDULE_RULE_EXISTS",
                "a schedule rule with this id exists, or has been deleted",
                metadata={"schedule_rule_id": rule.id},
            )
        require_room(brand_id, await store.count(tx.connection, rule.organization_id, brand_id))
        await record_zones(tx.connection, [rule.terms.time_zone])
        await self._outbox.append(tx, [wire.schedule_rule_changed(rule)], now=now)
        response = wire.CreateScheduleRuleResponse(schedule_rule=wire.shown(rule))
        await self._ledger.answer(tx, key, response.SerializeToString())
        return response
