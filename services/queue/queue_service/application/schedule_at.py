"""Giving a draft a time of the caller's choice on each account, all accounts or none."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from queue_service.adapters.postgres import account_store, slot_store
from queue_service.application.slot_book import SlotBook, Wanted, in_the_way
from queue_service.application.slot_mover import SlotMover
from queue_service.domain.booking import book, check_exact_time
from queue_service.domain.policy import Policy
from queue_service.domain.slot import SlotOrigin
from servicekit.faults import Fault, Refused
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger_by_hand import RequestKey
from servicekit.pg.outbox import current_traceparent


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactOrder:
    organization_id: str
    draft_id: str
    schedule_time: datetime
    social_account_ids: tuple[str, ...] = ()


class ScheduleAt:
    def __init__(
        self, *, database: Database, clock: DatabaseClock, slots: SlotBook, mover: SlotMover, policy: Policy
    ) -> None:
        self._database = database
        self._clock = clock
        self._slots = slots
        self._mover = mover
        self._policy = policy

    async def __call__(self, order: ExactOrder, key: RequestKey) -> bytes:
        wanted = await self._slots.find_draft(order.organization_id, order.draft_id, order.social_account_ids)
        return await self._database.run(lambda tx: self._book(tx, order, key, wanted))

    async def _book(self, tx: Transaction, order: ExactOrder, key: RequestKey, wanted: Wanted | Fault) -> bytes:
        now = await self._clock.now(tx.connection)
        if answer := await self._slots.recall(tx, key, now):
            return answer
        check_exact_time(order.schedule_time, now)
        if isinstance(wanted, Fault):
            raise wanted
        accounts = wanted.accounts
        locked = await account_store.lock_accounts(tx.connection, order.organization_id, accounts)
        queues = await self._mover.move_those_of(tx, order.organization_id, locked, now)
        draft = await self._slots.lock_draft(tx, wanted.draft, accounts)
        await self._refuse_taken(tx, order, accounts)
        slots = [
            book(
                draft,
                queues[account],
                order.schedule_time,
                slot_id=self._slots.new_id(),
                origin=SlotOrigin.EXACT,
                late_limit=self._policy.late_limit,
                traceparent=current_traceparent(),
                now=now,
                tzdata_version=self._mover.release,
            )
            for account in accounts
        ]
        return await self._slots.record(tx, key, slots, now)

    async def _refuse_taken(self, tx: Transaction, order: ExactOrder, accounts: Sequence[str]) -> None:
        wanted = [(account, order.schedule_time) for account in accounts]
        near = await slot_store.find_near(tx.connection, order.organization_id, wanted)
        for found in near.values():
            raise Refused(
                "SLOT_TAKEN",
                f"account {found.social_account_id} has a slot less than a minute away",
                metadata=in_the_way(found),
            )
