"""Giving a draft a time of the caller's choice on each account: on all accounts or on none.

Calls that arrive together share their statements. They are decided one after another, so the results are those of
calls that came one by one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from queue_service.adapters.postgres.accounts import lock_or_add_queues
from queue_service.adapters.postgres.drafts import lock_drafts
from queue_service.adapters.postgres.slots import find_near
from queue_service.application.draft_finder import DraftFinder, FoundDraft
from queue_service.application.slot_mover import SlotMover
from queue_service.application.slot_recorder import SlotRecorder
from queue_service.domain.account import AccountKey, AccountQueue
from queue_service.domain.booking import Place, check_exact_time
from queue_service.domain.draft import DraftKey, LockedDraft
from queue_service.domain.slot import QueueSlot, SlotOrigin
from queue_service.domain.taken_times import TakenTimes
from servicekit.faults import Fault, Refused
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Answer, Call, RequestLedger
from servicekit.pg.outbox import current_traceparent
from servicekit.pg.together import Together


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactOrder:
    organization_id: str
    draft_id: str
    schedule_time: datetime
    social_account_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOrder:
    """An order with what was read for it, in the trace of its call."""

    order: ExactOrder
    found: FoundDraft | Fault
    traceparent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """An order that may be carried out if its times are free."""

    schedule_time: datetime
    found: FoundDraft
    traceparent: str

    @property
    def accounts(self) -> list[AccountKey]:
        return [(self.found.draft.organization_id, account) for account in self.found.accounts]


@dataclass(slots=True, kw_only=True)
class _Locked:
    """Holds what the orders of a transaction have locked. Each order sees the slots of those before it."""

    queues: dict[AccountKey, AccountQueue]
    drafts: dict[DraftKey, LockedDraft]
    taken: TakenTimes

    def add(self, slots: Sequence[QueueSlot], draft: DraftKey) -> None:
        self.taken.add(slots)
        self.drafts[draft] = self.drafts[draft].with_slots(slot.as_blocking() for slot in slots)
        for slot in slots:
            self.queues[slot.account] = replace(self.queues[slot.account], last_sequence=slot.sequence)


class ScheduleAt:
    def __init__(
        self, *, ledger: RequestLedger, find_draft: DraftFinder, mover: SlotMover, record: SlotRecorder
    ) -> None:
        self._find_draft = find_draft
        self._mover = mover
        self._record = record
        self._together = Together(ledger, self.schedule)

    async def __call__(self, call: Call[Sequence[QueueSlot], Answer], order: ExactOrder) -> Answer:
        return await self._together(call, await self.read(order))

    async def read(self, order: ExactOrder) -> ReadOrder:
        found = await self._find_draft(order.organization_id, order.draft_id, order.social_account_ids)
        return ReadOrder(order=order, found=found, traceparent=current_traceparent())

    async def schedule(
        self, tx: Transaction, orders: Sequence[ReadOrder], now: datetime
    ) -> list[Sequence[QueueSlot] | Fault]:
        """Returns the slots or the refusal of each order."""
        checked = [_checked(each, now) for each in orders]
        wanted = [each for each in checked if isinstance(each, _Wanted)]
        booked = iter(await self._book_all(tx, wanted, now) if wanted else [])
        return [next(booked) if isinstance(each, _Wanted) else each for each in checked]

    async def _book_all(
        self, tx: Transaction, wanted: Sequence[_Wanted], now: datetime
    ) -> list[Sequence[QueueSlot] | Fault]:
        locked = await self._lock(tx, wanted, now)
        answers = [self._book(each, locked, now) for each in wanted]
        await self._record.store(tx, [slot for slots in answers if not isinstance(slots, Fault) for slot in slots], now)
        return answers

    async def _lock(self, tx: Transaction, wanted: Sequence[_Wanted], now: datetime) -> _Locked:
        """Locks accounts before drafts, each in the order of their keys, as everywhere."""
        accounts = {account for each in wanted for account in each.accounts}
        queues = await self._mover.bring_up_to_date(tx, await lock_or_add_queues(tx, accounts), now)
        drafts = await lock_drafts(tx, [each.found.draft for each in wanted])
        times = [(account, each.schedule_time) for each in wanted for account in each.accounts]
        taken = TakenTimes(await find_near(tx, times))
        return _Locked(queues=dict(queues), drafts=drafts, taken=taken)

    def _book(self, wanted: _Wanted, locked: _Locked, now: datetime) -> Sequence[QueueSlot] | Fault:
        found = wanted.found
        try:
            draft = locked.drafts[found.draft.key].unpublished(found.draft, found.accounts)
            _refuse_taken(wanted, locked.taken)
        except Refused as refused:
            return refused
        places = [
            Place(
                queue=locked.queues[account],
                schedule_time=wanted.schedule_time,
                origin=SlotOrigin.EXACT,
                tzdata_version=self._mover.release,
            )
            for account in wanted.accounts
        ]
        slots = self._record.book(draft, places, traceparent=wanted.traceparent, now=now)
        locked.add(slots, draft.key)
        return slots


def _checked(read: ReadOrder, now: datetime) -> _Wanted | Fault:
    try:
        check_exact_time(read.order.schedule_time, now)
    except Fault as fault:
        return fault
    if isinstance(read.found, Fault):
        return read.found
    return _Wanted(schedule_time=read.order.schedule_time, found=read.found, traceparent=read.traceparent)


def _refuse_taken(wanted: _Wanted, taken: TakenTimes) -> None:
    for account in wanted.accounts:
        if blocking := taken.blocking(account, wanted.schedule_time):
            raise Refused(
                "SLOT_TAKEN",
                f"account {blocking.social_account_id} has a slot less than a minute away",
                metadata=blocking.metadata,
            )
