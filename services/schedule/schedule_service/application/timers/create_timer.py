"""CreateTimer: stores a timer and starts it."""

from collections.abc import Callable
from datetime import datetime, timedelta

from schedule_service.adapters.postgres.timer_room import take_room
from schedule_service.adapters.postgres.timers import insert_timer
from schedule_service.adapters.postgres.zone_data import record_zones
from schedule_service.domain.timers.timer import MOST_TIMERS, Timer, full, taken
from schedule_service.domain.timers.timer_request import TimerRequest, created
from servicekit.ids import IdSource
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Answer, Call, RequestLedger
from servicekit.pg.outbox import current_traceparent


class CreateTimer:
    def __init__(
        self, *, ids: IdSource, ledger: RequestLedger, wake: Callable[[timedelta], None], most: int = MOST_TIMERS
    ) -> None:
        """`wake` is called with the time until the new timer is due. `most` limits the timers of an organization."""
        self._ids = ids
        self._ledger = ledger
        self._wake = wake
        self._most = most

    async def __call__(self, call: Call[Timer, Answer], *, timer_id: str, request: TimerRequest) -> Answer:
        """Creates the timer; it gets an id if none is given."""
        return await self._ledger.once(
            call, lambda tx, now: self._create(tx, now, call.organization_id, timer_id, request)
        )

    async def _create(
        self, tx: Transaction, now: datetime, organization_id: str, timer_id: str, request: TimerRequest
    ) -> Timer:
        timer = created(
            organization_id, timer_id or self._ids.new(), request, now=now, traceparent=current_traceparent()
        )
        if not await insert_timer(tx.connection, timer):
            raise taken(timer.id)
        if timer.cron:
            await record_zones(tx.connection, [timer.zone])
        assert timer.due_time is not None
        ahead = timer.due_time - now
        tx.after_commit(lambda: self._wake(ahead))
        # Last, because this blocks concurrent creations of the organization until the transaction ends.
        tx.before_commit(lambda: self._take_room(tx, organization_id))
        return timer

    async def _take_room(self, tx: Transaction, organization_id: str) -> None:
        if not await take_room(tx.connection, organization_id, most=self._most):
            raise full(self._most)
