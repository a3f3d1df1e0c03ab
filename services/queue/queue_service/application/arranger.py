"""The door through which the queue of an account is rearranged, in the caller's transaction.

A change locks the account and takes a snapshot of its queue, a pure function decides, and what it decided is written
and announced here.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeVar

from queue_service.adapters.postgres.accounts import lock_queues, save_frontiers, save_schedules
from queue_service.adapters.postgres.arrangement import (
    AT_ONCE,
    cancel_slots,
    find_counted,
    lift_moving,
    lock_seated,
    place_slots,
    save_arrangement,
)
from queue_service.adapters.postgres.plans import pin_plans
from queue_service.adapters.postgres.slots import find_slots
from queue_service.application.slot_mover import SlotMover
from queue_service.domain.account import AccountKey, AccountQueue, require_etag
from queue_service.domain.arrangement import (
    Arrangement,
    CanceledSlot,
    Snapshot,
    freed_stretches,
)
from queue_service.domain.policy import Policy
from queue_service.domain.rearranged import LISTED, Rearranged
from queue_service.domain.relocation import MovedSlot
from queue_service.domain.schedule_check import ReadTimes, newer_schedules
from queue_service.wire.announcements import slot_canceled, slot_moved
from servicekit.pg.database import Transaction
from servicekit.pg.outbox import Announcement, Outbox

# The dispatcher looks by itself every second, so it finds a slot in time that is due later. The rest is for a busy
# machine.
_LOOP_PERIOD = timedelta(seconds=5)
# No local day began longer ago.
COUNTED_FOR = timedelta(days=2)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arranged:
    """The outcome of a rearrangement."""

    queue: AccountQueue
    moved: tuple[MovedSlot, ...] = ()
    canceled: tuple[CanceledSlot, ...] = ()


class Arranger:
    def __init__(self, *, outbox: Outbox, mover: SlotMover, policy: Policy, on_slots: Callable[[], None]) -> None:
        """`on_slots` is called when a change has been committed after which a slot is due soon."""
        self._outbox = outbox
        self._mover = mover
        self._policy = policy
        self._on_slots = on_slots

    async def lock(
        self,
        tx: Transaction,
        account: AccountKey,
        *,
        now: datetime,
        etag: str = "",
        read: ReadTimes | None = None,
    ) -> Snapshot:
        """Locks the account, brings its slots up to date, and returns its queue.

        Refuses an `etag` that is not the queue's. A newer schedule that was `read` with slot times is saved.
        """
        unknown = AccountQueue(social_account_id=account[1])
        queues = await lock_queues(tx, {account})
        require_etag(queues.get(account, unknown), etag)
        if newer := newer_schedules({account: queues.get(account, unknown)}, [{account: read}] if read else []):
            await save_schedules(tx.connection, newer)
            queues = await lock_queues(tx, {account})
        queues = dict(await self._mover.bring_up_to_date(tx, queues, now))
        return await self.snapshot(tx, account, queues.get(account, unknown), now=now)

    async def snapshot(self, tx: Transaction, account: AccountKey, queue: AccountQueue, *, now: datetime) -> Snapshot:
        """Returns the queue of an account that the caller has locked; locks its SCHEDULED slots."""
        await pin_plans(tx)
        slots = await lock_seated(tx, account)
        counted = await find_counted(tx, account, since=now - COUNTED_FOR) if queue.max_posts_per_day else ()
        return Snapshot(account=account, queue=queue, slots=slots, counted=counted)

    async def apply(self, tx: Transaction, snapshot: Snapshot, arrangement: Arrangement, now: datetime) -> Arranged:
        """Writes and announces what was decided about the locked queue; without a change it keeps its etag.

        Additions are left to the caller: their seats are free after this.
        """
        if not arrangement.changes_anything:
            return Arranged(queue=snapshot.queue)
        account, queue = snapshot.account, snapshot.queue
        canceled: list[CanceledSlot] = []
        for cancellations in _pages(arrangement.cancellations):
            page = await cancel_slots(tx, account, cancellations, now=now)
            await self._announce(tx, [slot_canceled(slot) for slot in page], now)
            canceled += page
        moved: list[MovedSlot] = []
        await lift_moving(tx, account, arrangement.moves)
        for moves in _pages(arrangement.moves):
            placed = await place_slots(tx, queue, account, moves, late_limit=self._policy.late_limit, now=now)
            await self._announce(tx, [slot_moved(slot) for slot in placed], now)
            moved += placed
        return Arranged(
            queue=await self._save(tx, snapshot, arrangement, now),
            moved=tuple(sorted(moved, key=lambda slot: slot.schedule_time)),
            canceled=tuple(canceled),
        )

    async def rearrange(
        self, tx: Transaction, snapshot: Snapshot, arrangement: Arrangement, now: datetime, *, slot_id: str = ""
    ) -> Rearranged:
        """Does what `apply` does, and reads the slots that callers are shown: those moved, and the one they named."""
        arranged = await self.apply(tx, snapshot, arrangement, now)
        organization_id, _ = snapshot.account
        moved = [slot.id for slot in arranged.moved[:LISTED]]
        names = dict.fromkeys([*moved, slot_id] if slot_id else moved)
        found = {slot.id: slot for slot in await find_slots(tx.connection, [(organization_id, name) for name in names])}
        return Rearranged(etag=arranged.queue.etag, moved=tuple(found[name] for name in moved), slot=found.get(slot_id))

    async def _save(self, tx: Transaction, snapshot: Snapshot, arrangement: Arrangement, now: datetime) -> AccountQueue:
        # A new slot counts as a change of its own when it is stored.
        changes = 0 if arrangement.additions else 1
        queue = replace(snapshot.queue, arrangement=snapshot.queue.arrangement + changes)
        freed = freed_stretches(queue, arrangement.freed_times, earliest=now + self._policy.notice)
        for start, end in freed:
            queue = queue.reopened(start, end)
        releases = [move.seat.tzdata_version for move in arrangement.moves if move.seat.time_zone]
        await save_arrangement(tx, snapshot.account, oldest_release=min(releases, default=None), changes=changes)
        await save_frontiers(tx, {snapshot.account: queue} if freed else {})
        soon = now + self._policy.lead + _LOOP_PERIOD
        if any(move.seat.time < soon for move in arrangement.moves):
            tx.after_commit(self._on_slots)
        return queue

    async def _announce(self, tx: Transaction, events: Sequence[Announcement], now: datetime) -> None:
        await self._outbox.append(tx, events, now=now)
        await asyncio.sleep(0)  # a page takes milliseconds, in which other posts may become due


def _pages(items: Sequence[T]) -> Iterator[Sequence[T]]:
    return (items[first : first + AT_ONCE] for first in range(0, len(items), AT_ONCE))
