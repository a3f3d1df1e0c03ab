"""CreateTimer: stores a timer and starts it."""

from collections.abc import Callable
from datetime import timedelta

from schedule_service.adapters.postgres import timer_room
from schedule_service.adapters.postgres import timers as store
from schedule_service.adapters.postgres.zone_data import record_zones
from schedule_service.domain.timers.timer import MOST_TIMERS, full, taken
from schedule_service.domain.timers.timer_request import TimerRequest, created
from schedule_service.wire import timers as wire
from servicekit.ids import IdSource
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger_by_hand import RequestKey, RequestLedger
from servicekit.pg.outbox import current_traceparent


class CreateTimer:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        ids: IdSource,
        ledger: RequestLedger,
        wake: Callable[[timedelta], None],
        most: int = MOST_TIMERS,
    ) -> None:
        """`wake` gets how far ahead the new timer is due. `most` limits the timers of an organization."""
        self._database = database
        self._clock = clock
        self._ids = ids
        self._ledger = ledger
        self._wake = wake
        self._most = most

    async def __call__(self, key: RequestKey, *, timer_id: str, request: TimerRequest) -> wire.CreateTimerResponse:
        """Creates the timer; it gets an id if none is given."""
        return await self._database.run(lambda tx: self._create(tx, key, timer_id, request))

    async def _create(
        self, tx: Transaction, key: RequestKey, timer_id: str, request: TimerRequest
    ) -> wire.CreateTimerResponse:
        now = await self._clock.now(tx.connection)
        past = await self._ledger.recall(tx, key, now=now)
        if past and past.response is not None:
            return wire.CreateTimerResponse.FromString(past.response)
        timer = created(
            key.organization_id, timer_id or self._ids.new(), request, now=now, traceparent=current_traceparent()
        )
        if not await store.insert(tx.connection, timer):
            raise taken(timer.id)
        if timer.cron:
            await record_zones(tx.connection, [timer.zone])
        assert timer.due_time is not None
        ahead = timer.due_time - now
        tx.after_commit(lambda: self._wake(ahead))
        response = wire.CreateTimerResponse(timer=wire.shown(timer))
        await self._ledger.answer(tx, key, response.SerializeToString())
        # Last, because from here on this organization's concurrent creations wait for this transaction.
        if not await timer_room.take(tx.connection, timer.organization_id, most=self._most):
            raise full(self._most)
        return response
