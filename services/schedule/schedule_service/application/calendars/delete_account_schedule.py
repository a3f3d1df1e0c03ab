"""DeleteAccountSchedule: no more slots of the account are allocated. Allocated slots keep their times."""

from datetime import datetime

from schedule_service.adapters.postgres.account_schedules import lock_schedule, save_schedule
from schedule_service.adapters.postgres.upcoming_slots import find_slots_ahead
from schedule_service.domain.calendars.account_schedule import deleted, found, live, require_etag
from schedule_service.domain.calendars.upcoming_slot import require_none_ahead
from schedule_service.wire import account_schedules as wire
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Answer, Call, RequestLedger
from servicekit.pg.outbox import Outbox


class DeleteAccountSchedule:
    def __init__(self, *, ledger: RequestLedger, outbox: Outbox) -> None:
        self._ledger = ledger
        self._outbox = outbox

    async def __call__(self, call: Call[None, Answer], *, social_account_id: str, etag: str, force: bool) -> Answer:
        """Deletes the schedule; with upcoming slots only by `force`. An empty `etag` is no precondition."""
        return await self._ledger.once(
            call, lambda tx, now: self._delete(tx, now, call.organization_id, social_account_id, etag, force)
        )

    async def _delete(
        self, tx: Transaction, now: datetime, organization_id: str, social_account_id: str, etag: str, force: bool
    ) -> None:
        last = await lock_schedule(tx.connection, organization_id, social_account_id)
        schedule = found(live(last), social_account_id)
        require_etag(schedule, etag, social_account_id)
        if not force:
            ahead = await find_slots_ahead(tx.connection, organization_id, social_account_id, now=now)
            require_none_ahead(ahead, social_account_id)
        gone = deleted(schedule, now=now)
        await save_schedule(tx.connection, gone)
        await self._outbox.append(tx, [wire.account_schedule_changed(gone)], now=now)
