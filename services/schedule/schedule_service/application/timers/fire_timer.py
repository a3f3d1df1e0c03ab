"""FireTimer: fires a timer in addition to its schedule, which stays as it is."""

from schedule_service.adapters.postgres import timers as store
from schedule_service.domain.timers.occurrence import Fired, manual_key
from schedule_service.domain.timers.timer import found
from schedule_service.wire import timers as wire
from servicekit.ids import IdSource
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger_by_hand import RequestKey, RequestLedger
from servicekit.pg.outbox import Outbox


class FireTimer:
    def __init__(
        self, *, database: Database, clock: DatabaseClock, ids: IdSource, ledger: RequestLedger, outbox: Outbox
    ) -> None:
        self._database = database
        self._clock = clock
        self._ids = ids
        self._ledger = ledger
        self._outbox = outbox

    async def __call__(self, key: RequestKey, *, timer_id: str) -> wire.FireTimerResponse:
        return await self._database.run(lambda tx: self._fire(tx, key, timer_id))

    async def _fire(self, tx: Transaction, key: RequestKey, timer_id: str) -> wire.FireTimerResponse:
        now = await self._clock.now(tx.connection)
        past = await self._ledger.recall(tx, key, now=now)
        if past and past.response is not None:
            return wire.FireTimerResponse.FromString(past.response)
        occurrence_key = manual_key(key.request_id or self._ids.new())
        stored = await store.record_manual_firing(tx.connection, key.organization_id, timer_id, now=now)
        timer = found(stored, timer_id)
        fired = Fired(
            organization_id=timer.organization_id,
            timer_id=timer.id,
            topic=timer.topic,
            payload=timer.payload,
            occurrence_key=occurrence_key,
            due_time=now,
            fire_time=now,
            manual=True,
        )
        await self._outbox.append(tx, [wire.timer_fired(fired)], now=now)
        response = wire.FireTimerResponse(timer=wire.shown(timer), occurrence_key=occurrence_key)
        await self._ledger.answer(tx, key, response.SerializeToString())
        return response
