"""DeleteAccountSchedule: no slot of the account is given out any more. Those given out keep their times."""

from schedule_service.adapters.postgres import account_schedules as store
from schedule_service.adapters.postgres import upcoming_slots
from schedule_service.domain.calendars.account_schedule import deleted, found, live, require_etag
from schedule_service.domain.calendars.upcoming_slot import require_none_ahead
from schedule_service.wire import account_schedules as wire
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger_by_hand import RequestKey, RequestLedger
from servicekit.pg.outbox import Outbox


class DeleteAccountSchedule:
    def __init__(self, *, database: Database, clock: DatabaseClock, ledger: RequestLedger, outbox: Outbox) -> None:
        self._database = database
        self._clock = clock
        self._ledger = ledger
        self._outbox = outbox

    async def __call__(
        self, key: RequestKey, *, social_account_id: str, etag: str, force: bool
    ) -> wire.DeleteAccountScheduleResponse:
        """An empty `etag` is no precondition; `force` deletes also while slots lie ahead."""
        return await self._database.run(lambda tx: self._delete(tx, key, social_account_id, etag, force))

    async def _delete(
        self, tx: Transaction, key: RequestKey, social_account_id: str, etag: str, force: bool
    ) -> wire.DeleteAccountScheduleResponse:
        now = await self._clock.now(tx.connection)
        past = await self._ledger.recall(tx, key, now=now)
        if past and past.response is not None:
            return wire.DeleteAccountScheduleResponse.FromString(past.response)
        last = await store.lock(tx.connection, key.organization_id, social_account_id)
        schedule = found(live(last), social_account_id)
        require_etag(schedule, etag, social_account_id)
        if not force:
            ahead = await upcoming_slots.ahead(tx.connection, key.organization_id, social_account_id, now=now)
            require_none_ahead(ahead, social_account_id)
        gone = deleted(schedule, now=now)
        await store.save(tx.connection, gone)
        await self._outbox.append(tx, [wire.account_schedule_changed(gone)], now=now)
        response = wire.DeleteAccountScheduleResponse()
        await self._ledger.answer(tx, key, response.SerializeToString())
        return response
