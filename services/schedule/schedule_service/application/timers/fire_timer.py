"""FireTimer: fires a timer in addition to its schedule, which stays as it is."""

from datetime import datetime

from schedule_service.adapters.postgres.timers import record_manual_firing
from schedule_service.domain.timers.occurrence import Fired, ManualFiring, manual_key
from schedule_service.domain.timers.timer import found
from schedule_service.wire import timers as wire
from servicekit.ids import IdSource
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Answer, Call, RequestLedger
from servicekit.pg.outbox import Outbox


class FireTimer:
    def __init__(self, *, ids: IdSource, ledger: RequestLedger, outbox: Outbox) -> None:
        self._ids = ids
        self._ledger = ledger
        self._outbox = outbox

    async def __call__(self, call: Call[ManualFiring, Answer], *, timer_id: str) -> Answer:
        """Fires the timer. Without a `request_id` the occurrence key has an id of its own."""
        key = manual_key(call.request_id or self._ids.new())
        return await self._ledger.once(call, lambda tx, now: self._fire(tx, now, call.organization_id, timer_id, key))

    async def _fire(
        self, tx: Transaction, now: datetime, organization_id: str, timer_id: str, occurrence_key: str
    ) -> ManualFiring:
        stored = await record_manual_firing(tx.connection, organization_id, timer_id, now=now)
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
        return ManualFiring(timer, occurrence_key)
