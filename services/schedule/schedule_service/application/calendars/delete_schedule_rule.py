"""DeleteScheduleRule: ends a rule's targets. Its id is not used again."""

from datetime import datetime

from schedule_service.adapters.postgres.schedule_rules import lock_rule, save_rule
from schedule_service.domain.calendars.schedule_rule import deleted, found, require_etag
from schedule_service.wire import schedule_rules as wire
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Answer, Call, RequestLedger
from servicekit.pg.outbox import Outbox


class DeleteScheduleRule:
    def __init__(self, *, ledger: RequestLedger, outbox: Outbox) -> None:
        self._ledger = ledger
        self._outbox = outbox

    async def __call__(self, call: Call[None, Answer], *, rule_id: str, etag: str) -> Answer:
        """Deletes the rule. An empty `etag` is no precondition."""
        return await self._ledger.once(call, lambda tx, now: self._delete(tx, now, call.organization_id, rule_id, etag))

    async def _delete(self, tx: Transaction, now: datetime, organization_id: str, rule_id: str, etag: str) -> None:
        before = found(await lock_rule(tx.connection, organization_id, rule_id), rule_id)
        require_etag(before, etag)
        rule = deleted(before, now=now)
        await save_rule(tx.connection, rule)
        await self._outbox.append(tx, [wire.schedule_rule_changed(rule)], now=now)
