"""PauseTimer and ResumeTimer: a timer comes to rest, and goes on where it was."""

from collections.abc import Callable
from datetime import timedelta

from schedule_service.adapters.postgres import timers as store
from schedule_service.domain.timers.timer import Timer, found, paused, require_etag, resumed
from schedule_service.wire import timers as wire
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger_by_hand import RequestKey, RequestLedger


class PauseTimer:
    def __init__(self, *, database: Database, clock: DatabaseClock, ledger: RequestLedger) -> None:
        self._database = database
        self._clock = clock
        self._ledger = ledger

    async def __call__(self, key: RequestKey, *, timer_id: str, etag: str) -> wire.PauseTimerResponse:
        """An empty `etag` is no precondition."""
        return await self._database.run(lambda tx: self._pause(tx, key, timer_id, etag))

    async def _pause(self, tx: Transaction, key: RequestKey, timer_id: str, etag: str) -> wire.PauseTimerResponse:
        now = await self._clock.now(tx.connection)
        past = await self._ledger.recall(tx, key, now=now)
        if past and past.response is not None:
            return wire.PauseTimerResponse.FromString(past.response)
        timer = await _changed(tx, key, timer_id, etag, lambda before: paused(before, now=now))
        response = wire.PauseTimerResponse(timer=wire.shown(timer))
        await self._ledger.answer(tx, key, response.SerializeToString())
        return response


class ResumeTimer:
    def __init__(
        self, *, database: Database, clock: DatabaseClock, ledger: RequestLedger, wake: Callable[[timedelta], None]
    ) -> None:
        """`wake` tells the engine how far ahead the timer is due."""
        self._database = database
        self._clock = clock
        self._ledger = ledger
        self._wake = wake

    async def __call__(self, key: RequestKey, *, timer_id: str, etag: str) -> wire.ResumeTimerResponse:
        """An empty `etag` is no precondition."""
        return await self._database.run(lambda tx: self._resume(tx, key, timer_id, etag))

    async def _resume(self, tx: Transaction, key: RequestKey, timer_id: str, etag: str) -> wire.ResumeTimerResponse:
        now = await self._clock.now(tx.connection)
        past = await self._ledger.recall(tx, key, now=now)
        if past and past.response is not None:
            return wire.ResumeTimerResponse.FromString(past.response)
        timer = await _changed(tx, key, timer_id, etag, lambda before: resumed(before, now=now))
        assert timer.due_time is not None
        ahead = timer.due_time - now
        tx.after_commit(lambda: self._wake(ahead))
        response = wire.ResumeTimerResponse(timer=wire.shown(timer))
        await self._ledger.answer(tx, key, response.SerializeToString())
        return response


async def _changed(
    tx: Transaction, key: RequestKey, timer_id: str, etag: str, change: Callable[[Timer], Timer]
) -> Timer:
    before = found(await store.lock(tx.connection, key.organization_id, timer_id), timer_id)
    require_etag(before, etag)
    timer = change(before)
    if timer is not before:
        await store.save(tx.connection, timer, before=before)
    return timer
