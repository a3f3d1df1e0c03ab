"""PutAccountSchedule: the one schedule of an account, new or in place of what it was."""

from schedule_service.adapters.postgres import account_schedules as store
from schedule_service.adapters.postgres.zone_data import record_zones
from schedule_service.domain.calendars.account_schedule import Timetable, created, live, replaced, require_etag
from schedule_service.wire import account_schedules as wire
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger_by_hand import RequestKey, RequestLedger
from servicekit.pg.outbox import Outbox


class PutAccountSchedule:
    def __init__(self, *, database: Database, clock: DatabaseClock, ledger: RequestLedger, outbox: Outbox) -> None:
        self._database = database
        self._clock = clock
        self._ledger = ledger
        self._outbox = outbox

    async def __call__(
        self, key: RequestKey, *, social_account_id: str, timetable: Timetable, etag: str
    ) -> wire.PutAccountScheduleResponse:
        """An empty `etag` is no precondition. What is there already is not announced again."""
        return await self._database.run(lambda tx: self._put(tx, key, social_account_id, timetable, etag))

    async def _put(
        self, tx: Transaction, key: RequestKey, social_account_id: str, timetable: Timetable, etag: str
    ) -> wire.PutAccountScheduleResponse:
        now = await self._clock.now(tx.connection)
        past = await self._ledger.recall(tx, key, now=now)
        if past and past.response is not None:
            return wire.PutAccountScheduleResponse.FromString(past.response)
        last = await store.lock(tx.connection, key.organization_id, social_account_id)
        before = live(last)
        require_etag(before, etag, social_account_id)
        if before is None:
            schedule = created(key.organization_id, social_account_id, timetable, now=now, last=last)
        else:
            schedule = replaced(before, timetable, now=now)
        if schedule is not before:
            await store.save(tx.connection, schedule)
            await record_zones(tx.connection, [timetable.zone])
            await self._outbox.append(tx, [wire.account_schedule_changed(schedule)], now=now)
        response = wire.PutAccountScheduleResponse(account_schedule=wire.shown(schedule))
        await self._ledger.answer(tx, key, response.SerializeToString())
        return response
