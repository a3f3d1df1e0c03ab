"""PutAccountSchedule: creates or replaces the one schedule of an account."""

from datetime import datetime

from schedule_service.adapters.postgres.account_schedules import lock_schedule, save_schedule
from schedule_service.adapters.postgres.zone_data import record_zones
from schedule_service.domain.calendars.account_schedule import (
    AccountSchedule,
    Timetable,
    created,
    live,
    replaced,
    require_etag,
)
from schedule_service.wire import account_schedules as wire
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Answer, Call, RequestLedger
from servicekit.pg.outbox import Outbox


class PutAccountSchedule:
    def __init__(self, *, ledger: RequestLedger, outbox: Outbox) -> None:
        self._ledger = ledger
        self._outbox = outbox

    async def __call__(
        self, call: Call[AccountSchedule, Answer], *, social_account_id: str, timetable: Timetable, etag: str
    ) -> Answer:
        """Stores the timetable. Announces nothing if it changes nothing. An empty `etag` is no precondition."""
        return await self._ledger.once(
            call, lambda tx, now: self._put(tx, now, call.organization_id, social_account_id, timetable, etag)
        )

    async def _put(
        self,
        tx: Transaction,
        now: datetime,
        organization_id: str,
        social_account_id: str,
        timetable: Timetable,
        etag: str,
    ) -> AccountSchedule:
        last = await lock_schedule(tx.connection, organization_id, social_account_id)
        before = live(last)
        require_etag(before, etag, social_account_id)
        if before is None:
            schedule = created(organization_id, social_account_id, timetable, now=now, last=last)
        else:
            schedule = replaced(before, timetable, now=now)
        if schedule is not before:
            await save_schedule(tx.connection, schedule)
            await record_zones(tx.connection, [timetable.zone])
            await self._outbox.append(tx, [wire.account_schedule_changed(schedule)], now=now)
        return schedule
