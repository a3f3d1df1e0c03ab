"""DeleteTimer: the timer is gone; what it announced stays announced."""

from schedule_service.adapters.postgres import timers as store
from schedule_service.domain.timers.timer import found, require_etag
from schedule_service.wire import timers as wire
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger_by_hand import RequestKey, RequestLedger


class DeleteTimer:
    def __init__(self, *, database: Database, clock: DatabaseClock, ledger: RequestLedger) -> None:
        self._database = database
        self._clock = clock
        self._ledger = ledger

    async def __call__(self, key: RequestKey, *, timer_id: str, etag: str) -> wire.DeleteTimerResponse:
        """An empty `etag` is no precondition."""
        return await self._database.run(lambda tx: self._delete(tx, key, timer_id, etag))

    async def _delete(self, tx: Transaction, key: RequestKey, timer_id: str, etag: str) -> wire.DeleteTimerResponse:
        now = await self._clock.now(tx.connection)
        past = await self._ledger.recall(tx, key, now=now)
        if past and past.response is not None:
            return wire.DeleteTimerResponse.FromString(past.response)
        timer = found(await store.lock(tx.connection, key.organization_id, timer_id), timer_id)
        require_etag(timer, etag)
        await store.delete(tx.connection, timer)
        response = wire.DeleteTimerResponse()
        await self._ledger.answer(tx, key, response.SerializeToString())
        return response
