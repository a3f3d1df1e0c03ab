"""PauseTimer and ResumeTimer: stop a timer, and restart it at the occurrence where it stopped."""

from collections.abc import Callable
from datetime import datetime, timedelta

from schedule_service.adapters.postgres.timers import lock_timer, save_timer
from schedule_service.domain.timers.timer import Timer, found, paused, require_etag, resumed
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Answer, Call, RequestLedger


class PauseTimer:
    def __init__(self, *, ledger: RequestLedger) -> None:
        self._ledger = ledger

    async def __call__(self, call: Call[Timer, Answer], *, timer_id: str, etag: str) -> Answer:
        """Pauses the timer. An empty `etag` is no precondition."""
        return await self._ledger.once(call, lambda tx, now: self._pause(tx, now, call.organization_id, timer_id, etag))

    async def _pause(self, tx: Transaction, now: datetime, organization_id: str, timer_id: str, etag: str) -> Timer:
        return await _changed(tx, organization_id, timer_id, etag, lambda before: paused(before, now=now))


class ResumeTimer:
    def __init__(self, *, ledger: RequestLedger, wake: Callable[[timedelta], None]) -> None:
        """`wake` is called with the time until the timer is due."""
        self._ledger = ledger
        self._wake = wake

    async def __call__(self, call: Call[Timer, Answer], *, timer_id: str, etag: str) -> Answer:
        """Resumes the timer. An empty `etag` is no precondition."""
        return await self._ledger.once(
            call, lambda tx, now: self._resume(tx, now, call.organization_id, timer_id, etag)
        )

    async def _resume(self, tx: Transaction, now: datetime, organization_id: str, timer_id: str, etag: str) -> Timer:
        timer = await _changed(tx, organization_id, timer_id, etag, lambda before: resumed(before, now=now))
        assert timer.due_time is not None
        ahead = timer.due_time - now
        tx.after_commit(lambda: self._wake(ahead))
        return timer


async def _changed(
    tx: Transaction, organization_id: str, timer_id: str, etag: str, change: Callable[[Timer], Timer]
) -> Timer:
    before = found(await lock_timer(tx.connection, organization_id, timer_id), timer_id)
    require_etag(before, etag)
    timer = change(before)
    if timer is not before:
        await save_timer(tx.connection, timer, before=before)
    return timer
