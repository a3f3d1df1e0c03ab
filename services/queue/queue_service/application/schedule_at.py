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
from queue_service.domain.slot import QueueSlot, SlotOrigin
from servicekit.faults import Fault, Refused
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Answer, Call, RequestLedger


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactOrder:
    organization_id: str
    draft_id: str
    schedule_time: datetime
    social_account_ids: tuple[str, ...] = ()


class ScheduleAt:
    def __init__(
        self, *, ledger: RequestLedger, find_draft: DraftFinder, mover: SlotMover, record: SlotRecorder
    ) -> None:
        self._ledger = ledger
        self._find_draft = find_draft
        self._mover = mover
        self._record = record

    async def __call__(self, call: Call[Sequence[QueueSlot], Answer], order: ExactOrder) -> Answer:
        found = await self._find_draft(order.organization_id, order.draft_id, order.social_account_ids)
        return await self._ledger.once(call, lambda tx, now: self._schedule(tx, now, order, found))

    async def _schedule(
        self, tx: Transaction, now: datetime, order: ExactOrder, found: FoundDraft | Fault
    ) -> Sequence[QueueSlot]:
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
        return await self._record(tx, draft, places, now)


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
