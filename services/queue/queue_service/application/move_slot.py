"""MoveSlot: moves one slot, which Publisher may have already.

A DISPATCHED slot is taken back in between two transactions. The first one decides as if the slot had come back, so that
what would be refused takes nothing back; the second one applies Publisher's answer and decides again, with the same
etag. If it refuses, the slot is where it was, and is dispatched again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from queue_service.adapters.postgres.arrangement import find_account
from queue_service.application.arranger import Arranger
from queue_service.application.named_slot import NamedSlot, lock_named
from queue_service.application.take_back import TakeBack, take_back_pending
from queue_service.application.times_on_demand import TimesOnDemand
from queue_service.domain.account import AccountKey, require_etag
from queue_service.domain.arrangement import Arrangement
from queue_service.domain.free_times import FreeTimes
from queue_service.domain.moving import Destination, move
from queue_service.domain.policy import Policy
from queue_service.domain.rearranged import Rearranged
from queue_service.domain.schedule_check import ReadTimes
from queue_service.domain.slot import SlotState
from queue_service.domain.take_back import (
    CancelAnswer,
    SlotPost,
    came_too_late,
    slot_not_found,
    slot_not_live,
    too_late,
)
from servicekit.faults import Fault
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger import Answer, Call, RequestLedger

_ROUNDS = 3
"""How often a slot is taken back that is dispatched again before the call has moved it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relocation:
    organization_id: str
    slot_id: str
    destination: Destination
    etag: str = ""


class MoveSlot:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        ledger: RequestLedger,
        policy: Policy,
        arranger: Arranger,
        take_back: TakeBack,
        times: TimesOnDemand,
    ) -> None:
        self._database = database
        self._clock = clock
        self._ledger = ledger
        self._policy = policy
        self._arranger = arranger
        self._take_back = take_back
        self._times = times

    async def __call__(self, call: Call[Rearranged, Answer], asked: Relocation) -> Answer:
        account = await self._account(asked)
        return await self._times(account, partial(self._attempt, call, asked))

    async def _account(self, asked: Relocation) -> AccountKey:
        async with self._database.read_session() as session:
            social_account_id = await find_account(session, asked.organization_id, asked.slot_id)
        if social_account_id is None:
            raise slot_not_found(asked.slot_id)
        return asked.organization_id, social_account_id

    async def _attempt(self, call: Call[Rearranged, Answer], asked: Relocation, read: ReadTimes | None) -> Answer:
        for _ in range(_ROUNDS):
            answer, posts = await self._database.run(partial(self._begin, call, asked, read))
            if answer is not None:
                return answer
            answers = await self._take_back.ask(posts)
            outcome = await self._database.run(partial(self._finish, call, asked, read, answers))
            if isinstance(outcome, Fault):
                raise outcome
            if outcome is not None:
                return outcome
        raise take_back_pending()

    async def _begin(
        self, call: Call[Rearranged, Answer], asked: Relocation, read: ReadTimes | None, tx: Transaction
    ) -> tuple[Answer | None, list[SlotPost]]:
        """Returns the answer, or else the posts to take back from Publisher."""
        now = await self._clock.now(tx.connection)
        past = await self._ledger.recall(tx, call, now=now)
        if past is not None:
            return past, []
        named = await lock_named(tx, self._arranger, asked.organization_id, asked.slot_id, now=now, read=read)
        arrangement = self._decide(named, asked, read, now)
        if named.slot.is_scheduled or not arrangement.changes_anything:
            return await self._answer(tx, call, named, arrangement, now), []
        slot_ids = [asked.slot_id]
        return None, await self._take_back.intend_return(tx, named.snapshot.account, slot_ids, now=now)

    async def _finish(
        self,
        call: Call[Rearranged, Answer],
        asked: Relocation,
        read: ReadTimes | None,
        answers: Sequence[CancelAnswer],
        tx: Transaction,
    ) -> Answer | Fault | None:
        """Returns None if the slot has come back and has been dispatched again.

        Returns a refusal instead of raising it: what Publisher has answered is stored in any case.
        """
        now = await self._clock.now(tx.connection)
        past = await self._ledger.recall(tx, call, now=now)
        if past is not None:
            return past
        await self._take_back.apply(tx, answers, now)
        named = await lock_named(tx, self._arranger, asked.organization_id, asked.slot_id, now=now, read=read)
        if named.slot.state is SlotState.DISPATCHED:
            late = too_late(answers).get((asked.organization_id, asked.slot_id))
            return came_too_late(asked.slot_id, late) if late else None
        try:
            arrangement = self._decide(named, asked, read, now)
        except Fault as refused:
            return refused
        return await self._answer(tx, call, named, arrangement, now)

    def _decide(self, named: NamedSlot, asked: Relocation, read: ReadTimes | None, now: datetime) -> Arrangement:
        """Decides where the slot goes, as if Publisher had given it back."""
        if not named.is_live:
            raise slot_not_live(asked.slot_id, named.slot.state)
        require_etag(named.snapshot.queue, asked.etag)
        snapshot = named.snapshot.taken_back({asked.slot_id})
        slot = named.slot._replace(state=SlotState.SCHEDULED)
        free = FreeTimes(snapshot, read)
        return move(snapshot, slot, asked.destination, free, now=now, earliest=now + self._policy.notice)

    async def _answer(
        self, tx: Transaction, call: Call[Rearranged, Answer], named: NamedSlot, arrangement: Arrangement, now: datetime
    ) -> Answer:
        moved = await self._arranger.rearrange(tx, named.snapshot, arrangement, now, slot_id=named.slot.slot_id)
        return await self._ledger.answer(tx, call, moved)
