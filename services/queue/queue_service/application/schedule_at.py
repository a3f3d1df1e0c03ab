"""Giving a draft a time of the caller's choice on each account: on all accounts or on none."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from queue_service.adapters.postgres.accounts import lock_or_add_queues
from queue_service.adapters.postgres.drafts import lock_draft
from queue_service.adapters.postgres.slots import find_near
from queue_service.application.draft_finder import DraftFinder, FoundDraft
from queue_service.application.slot_mover import SlotMover
from queue_service.application.slot_recorder import SlotRecorder
from queue_service.domain.booking import Place, check_exact_time
from queue_service.domain.slot import SlotOrigin
from queue_service.wire import slots as wire
from servicekit.faults import Fault, Refused
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger_by_hand import RequestKey, RequestLedger


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactOrder:
    organization_id: str
    draft_id: str
    schedule_time: datetime
    social_account_ids: tuple[str, ...] = ()


class ScheduleAt:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        ledger: RequestLedger,
        find_draft: DraftFinder,
        mover: SlotMover,
        record: SlotRecorder,
    ) -> None:
        self._database = database
        self._clock = clock
        self._ledger = ledger
        self._find_draft = find_draft
        self._mover = mover
        self._record = record

    async def __call__(self, order: ExactOrder, key: RequestKey) -> bytes:
        found = await self._find_draft(order.organization_id, order.draft_id, order.social_account_ids)
        return await self._database.run(lambda tx: self._schedule(tx, order, key, found))

    async def _schedule(self, tx: Transaction, order: ExactOrder, key: RequestKey, found: FoundDraft | Fault) -> bytes:
        now = await self._clock.now(tx.connection)
        past = await self._ledger.recall(tx, key, now=now)
        if past and past.response is not None:
            return past.response
        check_exact_time(order.schedule_time, now)
        if isinstance(found, Fault):
            raise found
        locked = await lock_or_add_queues(tx.connection, order.organization_id, found.accounts)
        queues = await self._mover.bring_up_to_date(tx, order.organization_id, locked, now)
        draft = (await lock_draft(tx.connection, found.draft, found.accounts)).unpublished(found.accounts)
        await _refuse_taken(tx, order, found.accounts)
        places = [
            Place(
                queue=queues[account],
                schedule_time=order.schedule_time,
                origin=SlotOrigin.EXACT,
                tzdata_version=self._mover.release,
            )
            for account in found.accounts
        ]
        slots = await self._record(tx, draft, places, now)
        answer = wire.schedule_at_response(slots).SerializeToString()
        await self._ledger.answer(tx, key, answer)
        return answer


async def _refuse_taken(tx: Transaction, order: ExactOrder, accounts: Sequence[str]) -> None:
    near = await find_near(
        tx.connection, order.organization_id, [(account, order.schedule_time) for account in accounts]
    )
    for blocking in near.values():
        raise Refused(
            "SLOT_TAKEN",
            f"account {blocking.social_account_id} has a slot less than a minute away",
            metadata=blocking.metadata,
        )
