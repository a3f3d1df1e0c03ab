"""UpdateScheduleRule: changes some terms of a rule."""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from schedule_service.adapters.postgres.schedule_rules import lock_rule, save_rule
from schedule_service.adapters.postgres.zone_data import record_zones
from schedule_service.application.calendars.worker_threads import worker_slots
from schedule_service.domain.calendars.schedule_rule import ScheduleRule, changed, found, require_etag
from schedule_service.wire import schedule_rules as wire
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Answer, Call, RequestLedger
from servicekit.pg.outbox import Outbox


class UpdateScheduleRule:
    def __init__(self, *, ledger: RequestLedger, outbox: Outbox) -> None:
        self._ledger = ledger
        self._outbox = outbox
        self._worker_slots = worker_slots()

    async def __call__(
        self, call: Call[ScheduleRule, Answer], *, rule_id: str, changes: Mapping[str, Any], etag: str
    ) -> Answer:
        """Applies the changes. Announces nothing if they change nothing. An empty `etag` is no precondition."""
        async with self._worker_slots:
            return await self._ledger.once(
                call, lambda tx, now: self._update(tx, now, call.organization_id, rule_id, changes, etag)
            )

    async def _update(
        self,
        tx: Transaction,
        now: datetime,
        organization_id: str,
        rule_id: str,
        changes: Mapping[str, Any],
        etag: str,
    ) -> ScheduleRule:
        before = found(await lock_rule(tx.connection, organization_id, rule_id), rule_id)
        require_etag(before, etag)
        # In a thread, because an rrule with COUNT may take a tenth of a second, which would delay timers.
        rule = await asyncio.to_thread(changed, before, changes, now=now)
        if rule is not before:
            await save_rule(tx.connection, rule)
            await record_zones(tx.connection, [rule.terms.time_zone])
            await self._outbox.append(tx, [wire.schedule_rule_changed(rule)], now=now)
        return rule
