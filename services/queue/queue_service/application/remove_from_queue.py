"""RemoveFromQueue: cancels a slot. After OK nothing is sent for it.

A SCHEDULED slot is canceled in one transaction. For a DISPATCHED one the first transaction records that it is to be
canceled, which is the removal as far as the etag goes: the call is accepted there, and nothing but Publisher can refuse
it afterwards. A call that dies in between is completed by repeating it, or by `CompleteTakeBacks`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from queue_service.adapters.postgres.arrangement import save_arrangement
from queue_service.application.arranger import Arranger
from queue_service.application.named_slot import NamedSlot, lock_named
from queue_service.application.take_back import TakeBack, take_back_pending
from queue_service.domain.account import require_etag
from queue_service.domain.arrangement import NO_CHANGE, Arrangement
from queue_service.domain.policy import Policy
from queue_service.domain.rearranged import Rearranged
from queue_service.domain.removing import close_left_gap, remove
from queue_service.domain.slot import CancelReason, SlotState
from queue_service.domain.take_back import CancelAnswer, SlotPost, came_too_late, slot_not_live, too_late
from servicekit.faults import Fault
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger import Answer, Call, RequestLedger


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    organization_id: str
    slot_id: str
    close_gap: bool = False
    etag: str = ""


class RemoveFromQueue:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        ledger: RequestLedger,
        policy: Policy,
        arranger: Arranger,
        take_back: TakeBack,
    ) -> None:
        self._database = database
        self._clock = clock
        self._ledger = ledger
        self._policy = policy
        self._arranger = arranger
        self._take_back = take_back

    async def __call__(self, call: Call[Rearranged, Answer], removal: Removal) -> Answer:
        answer, posts = await self._database.run(partial(self._begin, call, removal))
        if answer is not None:
            return answer
        answers = await self._take_back.ask(posts)
        outcome = await self._database.run(partial(self._finish, call, removal, answers))
        if isinstance(outcome, Fault):
            raise outcome
        return outcome

    async def _begin(
        self, call: Call[Rearranged, Answer], removal: Removal, tx: Transaction
    ) -> tuple[Answer | None, list[SlotPost]]:
        """Returns the answer, or else the posts to take back from Publisher."""
        now = await self._clock.now(tx.connection)
        begun = await self._ledger.begin(tx, call, now=now)
        if begun.answer is not None:
            return begun.answer, []
        named = await lock_named(tx, self._arranger, removal.organization_id, removal.slot_id, now=now)
        if not named.is_leaving and begun.since is None:
            require_etag(named.snapshot.queue, removal.etag)
        if named.slot.state is SlotState.DISPATCHED:
            return None, await self._intend(tx, named, now)
        if named.slot.state is SlotState.CANCELED and begun.since is None:
            return await self._answer(tx, call, named, NO_CHANGE, now), []
        return await self._answer(tx, call, named, self._decide(named, removal, now), now), []

    async def _intend(self, tx: Transaction, named: NamedSlot, now: datetime) -> list[SlotPost]:
        """Records that the slot is to be canceled, which changes the etag once."""
        if not named.is_leaving:
            await save_arrangement(tx, named.snapshot.account, oldest_release=None, changes=1)
        slot_ids = [named.slot.slot_id]
        return await self._take_back.intend_cancel(
            tx, named.snapshot.account, slot_ids, reason=CancelReason.REMOVED, now=now
        )

    async def _finish(
        self, call: Call[Rearranged, Answer], removal: Removal, answers: Sequence[CancelAnswer], tx: Transaction
    ) -> Answer | Fault:
        """Returns a refusal instead of raising it: what Publisher has answered is stored in any case."""
        now = await self._clock.now(tx.connection)
        past = await self._ledger.recall(tx, call, now=now)
        if past is not None:
            return past
        await self._take_back.apply(tx, answers, now)
        named = await lock_named(tx, self._arranger, removal.organization_id, removal.slot_id, now=now)
        if named.slot.state is SlotState.DISPATCHED:
            late = too_late(answers).get((removal.organization_id, removal.slot_id))
            return came_too_late(removal.slot_id, late) if late else take_back_pending()
        try:
            arrangement = self._decide(named, removal, now)
        except Fault as refused:
            return refused
        return await self._answer(tx, call, named, arrangement, now)

    def _decide(self, named: NamedSlot, removal: Removal, now: datetime) -> Arrangement:
        """Decides about a slot that Publisher does not have, or no longer."""
        earliest = now + self._policy.notice
        if named.is_live:
            return remove(named.snapshot, named.slot, closing=removal.close_gap, earliest=earliest)
        if named.slot.state is not SlotState.CANCELED:
            raise slot_not_live(removal.slot_id, named.slot.state)
        return close_left_gap(named.snapshot, named.slot, earliest=earliest) if removal.close_gap else NO_CHANGE

    async def _answer(
        self, tx: Transaction, call: Call[Rearranged, Answer], named: NamedSlot, arrangement: Arrangement, now: datetime
    ) -> Answer:
        removed = await self._arranger.rearrange(tx, named.snapshot, arrangement, now, slot_id=named.slot.slot_id)
        return await self._ledger.answer(tx, call, removed)
