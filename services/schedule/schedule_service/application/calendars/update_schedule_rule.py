"""UpdateScheduleRule: some of a rule's terms, new."""

import asyncio
from collections.abc import Mapping
from typing import Any

from schedule_service.adapters.postgres import rules as store
from schedule_service.adapters.postgres.zone_data import record_zones
from schedule_service.application.calendars.worker_threads import worker_slots
from schedule_service.domain.calendars.schedule_rule import changed, found, require_etag
from schedule_service.wire import rules as wire
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger_by_hand import RequestKey, RequestLedger
from servicekit.pg.outbox import Outbox


class UpdateScheduleRule:
    def __init__(self, *, database: Database, clock: DatabaseClock, ledger: RequestLedger, outbox: Outbox) -> None:
        self._database = database
        self._clock = clock
        self._ledger = ledger
        self._outbox = outbox
        self._worker_slots = worker_slots()

    async def __call__(
        self, key: RequestKey, *, rule_id: str, changes: Mapping[str, Any], etag: str
    ) -> wire.UpdateScheduleRuleResponse:
        """An empty `etag` is no precondition. What is there already is not announced again."""
        async with self._worker_slots:
            return await self._database.run(lambda tx: self._update(tx, key, rule_id, changes, etag))

    async def _update(
        self, tx: Transaction, key: RequestKey, rule_id: str, changes: Mapping[str, Any], etag: str
    ) -> wire.UpdateScheduleRuleResponse:
        now = await self._clock.now(tx.connection)
        past = await self._ledger.recall(tx, key, now=now)
        if past and past.response is not None:
            return wire.UpdateScheduleRuleResponse.FromString(past.response)
        before = found(await store.lock(tx.connection, key.organization_id, rule_id), rule_id)
        require_etag(before, etag)
        # To count a COUNT may take a tenth of a second, which timers need not wait for.
        rule = await asyncio.to_thread(changed, before, changes, now=now)
        if rule is not before:
            await store.save(tx.connection, rule)
            await record_zones(tx.connection, [rule.terms.time_zone])
            await self._outbox.append(tx, [wire.schedule_rule_changed(rule)], now=now)
        response = wire.UpdateScheduleRuleResponse(schedule_rule=wire.shown(rule))
        await self._ledger.answer(tx, key, response.SerializeToString())
        return response
