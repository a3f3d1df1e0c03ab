"""DeleteScheduleRule: a rule has no targets any more, and its id is not used again."""

from schedule_service.adapters.postgres import rules as store
from schedule_service.domain.calendars.schedule_rule import deleted, found, require_etag
from schedule_service.wire import rules as wire
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger_by_hand import RequestKey, RequestLedger
from servicekit.pg.outbox import Outbox


class DeleteScheduleRule:
    def __init__(self, *, database: Database, clock: DatabaseClock, ledger: RequestLedger, outbox: Outbox) -> None:
        self._database = database
        self._clock = clock
        self._ledger = ledger
        self._outbox = outbox

    async def __call__(self, key: RequestKey, *, rule_id: str, etag: str) -> wire.DeleteScheduleRuleResponse:
        """An empty `etag` is no precondition."""
        return await self._database.run(lambda tx: self._delete(tx, key, rule_id, etag))

    async def _delete(
        self, tx: Transaction, key: RequestKey, rule_id: str, etag: str
    ) -> wire.DeleteScheduleRuleResponse:
        now = await self._clock.now(tx.connection)
        past = await self._ledger.recall(tx, key, now=now)
        if past and past.response is not None:
            return wire.DeleteScheduleRuleResponse.FromString(past.response)
        before = found(await store.lock(tx.connection, key.organization_id, rule_id), rule_id)
        require_etag(before, etag)
        rule = deleted(before, now=now)
        await store.save(tx.connection, rule)
        await self._outbox.append(tx, [wire.schedule_rule_changed(rule)], now=now)
        response = wire.DeleteScheduleRuleResponse()
        await self._ledger.answer(tx, key, response.SerializeToString())
        return response
