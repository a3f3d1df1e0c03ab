"""ClearQueue: cancels every live slot of an account, except those for which it is too late.

The first transaction cancels what is SCHEDULED, and records that the DISPATCHED slots are to be canceled. That is the
clearing as far as the etag goes. Then Publisher is asked, page by page. A call that dies in between is completed by
`CompleteTakeBacks`; its repeat answers, and leaves slots alone that were added since.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from queue_service.adapters.postgres.accounts import lock_queues
from queue_service.adapters.postgres.arrangement import AT_ONCE, count_cleared, save_arrangement
from queue_service.adapters.postgres.slots import find_slots
from queue_service.application.account_presence import AccountPresence
from queue_service.application.arranger import Arranged, Arranger
from queue_service.application.take_back import TakeBack
from queue_service.domain.account import AccountKey, require_etag
from queue_service.domain.arrangement import Snapshot
from queue_service.domain.rearranged import LISTED, Cleared
from queue_service.domain.removing import clear, is_too_late
from queue_service.domain.slot import LIVE, CancelReason, QueueSlot, SlotState
from queue_service.domain.take_back import CancelAnswer, SlotPost
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger import Answer, Call, RequestLedger


@dataclass(frozen=True, slots=True, kw_only=True)
class Clearing:
    account: AccountKey
    etag: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Begun:
    """A clearing: how many slots were canceled, and the dispatched slots, with the posts to take back."""

    canceled: int
    slot_ids: tuple[str, ...]
    posts: tuple[SlotPost, ...]
    # Those of them that PublishNow sends: Publisher is not asked for them.
    sent: frozenset[str]


class ClearQueue:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        ledger: RequestLedger,
        accounts: AccountPresence,
        arranger: Arranger,
        take_back: TakeBack,
    ) -> None:
        self._database = database
        self._clock = clock
        self._ledger = ledger
        self._accounts = accounts
        self._arranger = arranger
        self._take_back = take_back

    async def __call__(self, call: Call[Cleared, Answer], clearing: Clearing) -> Answer:
        await self._accounts.require(clearing.account)
        answer, begun = await self._database.run(partial(self._begin, call, clearing))
        if begun is None:
            assert answer is not None
            return answer
        for first in range(0, len(begun.posts), AT_ONCE):
            answers = await self._take_back.ask(begun.posts[first : first + AT_ONCE])
            await self._database.run(partial(self._apply, answers))
        return await self._database.run(partial(self._finish, call, clearing.account, begun))

    async def _begin(
        self, call: Call[Cleared, Answer], clearing: Clearing, tx: Transaction
    ) -> tuple[Answer | None, _Begun | None]:
        """Returns the answer, or else what is left to do."""
        now = await self._clock.now(tx.connection)
        past = await self._ledger.begin(tx, call, now=now)
        if past.answer is not None:
            return past.answer, None
        snapshot = await self._arranger.lock(tx, clearing.account, now=now)
        if past.since is None:
            require_etag(snapshot.queue, clearing.etag)
            arranged, slot_ids = await self._clear(tx, snapshot, now)
            queue, canceled = arranged.queue, len(arranged.canceled)
        else:
            queue, slot_ids = snapshot.queue, await _dispatched(tx, snapshot, past.since)
            canceled = await count_cleared(tx, clearing.account, since=past.since)
        if not slot_ids:
            return await self._ledger.answer(tx, call, Cleared(etag=queue.etag, canceled=canceled)), None
        posts = await self._take_back.intend_cancel(
            tx, clearing.account, slot_ids, reason=CancelReason.CLEARED, now=now
        )
        sent = frozenset(slot.slot_id for slot in snapshot.slots if slot.sent_job_id)
        return None, _Begun(canceled=canceled, slot_ids=slot_ids, posts=tuple(posts), sent=sent)

    async def _clear(self, tx: Transaction, snapshot: Snapshot, now: datetime) -> tuple[Arranged, tuple[str, ...]]:
        """Cancels the SCHEDULED slots, and returns the DISPATCHED ones; the etag changes once."""
        arranged = await self._arranger.apply(tx, snapshot, clear(snapshot), now)
        slot_ids = tuple(slot.slot_id for slot in snapshot.slots if not slot.is_scheduled)
        if slot_ids and not arranged.canceled:
            await save_arrangement(tx, snapshot.account, oldest_release=None, changes=1)
        return arranged, slot_ids

    async def _apply(self, answers: Sequence[CancelAnswer], tx: Transaction) -> None:
        await self._take_back.apply(tx, answers, await self._clock.now(tx.connection))

    async def _finish(self, call: Call[Cleared, Answer], account: AccountKey, begun: _Begun, tx: Transaction) -> Answer:
        now = await self._clock.now(tx.connection)
        past = await self._ledger.recall(tx, call, now=now)
        if past is not None:
            return past
        queue = (await lock_queues(tx, {account}))[account]
        asked = await _read(tx, account, begun.slot_ids)
        late = [slot for slot in asked if is_too_late(slot) or (slot.id in begun.sent and slot.state in LIVE)]
        late.sort(key=lambda slot: slot.schedule_time)
        canceled = begun.canceled + sum(slot.state is SlotState.CANCELED for slot in asked)
        cleared = Cleared(etag=queue.etag, canceled=canceled, too_late=tuple(late[:LISTED]))
        return await self._ledger.answer(tx, call, cleared)


async def _dispatched(tx: Transaction, snapshot: Snapshot, since: datetime) -> tuple[str, ...]:
    """Returns the dispatched slots that were there when an earlier attempt cleared the queue."""
    found = await _read(tx, snapshot.account, [slot.slot_id for slot in snapshot.slots if not slot.is_scheduled])
    return tuple(slot.id for slot in found if slot.create_time <= since)


async def _read(tx: Transaction, account: AccountKey, slot_ids: Sequence[str]) -> list[QueueSlot]:
    found: list[QueueSlot] = []
    for first in range(0, len(slot_ids), AT_ONCE):
        keys = [(account[0], slot_id) for slot_id in slot_ids[first : first + AT_ONCE]]
        found += await find_slots(tx.connection, keys)
        await asyncio.sleep(0)  # a page takes milliseconds, in which other posts may become due
    return found
