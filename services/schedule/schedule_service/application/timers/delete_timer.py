"""DeleteTimer: deletes a timer. What it has announced stays announced."""

from schedule_service.adapters.postgres.timers import delete_timer, lock_timer
from schedule_service.domain.timers.timer import found, require_etag
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Answer, Call, RequestLedger


class DeleteTimer:
    def __init__(self, *, ledger: RequestLedger) -> None:
        self._ledger = ledger

    async def __call__(self, call: Call[None, Answer], *, timer_id: str, etag: str) -> Answer:
        """Deletes the timer. An empty `etag` is no precondition."""
        return await self._ledger.once(call, lambda tx, _now: self._delete(tx, call.organization_id, timer_id, etag))

    async def _delete(self, tx: Transaction, organization_id: str, timer_id: str, etag: str) -> None:
        timer = found(await lock_timer(tx.connection, organization_id, timer_id), timer_id)
        require_etag(timer, etag)
        await delete_timer(tx.connection, timer)
