"""Giving a draft the next slot time of each account, free or not: the slots there shift. On all accounts or on none."""

from collections.abc import Sequence
from datetime import datetime

from queue_service.adapters.postgres.drafts import lock_drafts
from queue_service.application.account_lock import AccountLock
from queue_service.application.arranger import Arranger
from queue_service.application.slot_booker import Reading, Unread
from queue_service.application.slot_recorder import SlotRecorder
from queue_service.domain.account import AccountQueue
from queue_service.domain.booking import Place
from queue_service.domain.free_times import FreeTimes
from queue_service.domain.front import put_in_front
from queue_service.domain.policy import Policy
from queue_service.domain.seat import Seat
from queue_service.domain.slot import QueueSlot
from servicekit.pg.database import Transaction


class FrontBooker:
    def __init__(self, *, lock: AccountLock, arranger: Arranger, record: SlotRecorder, policy: Policy) -> None:
        self._lock_accounts = lock
        self._arranger = arranger
        self._record = record
        self._policy = policy

    async def __call__(self, reading: Reading | Unread, tx: Transaction, now: datetime) -> Sequence[QueueSlot]:
        """Returns the slots, and stores them and the shifts. Raises why there are none, before it changes anything."""
        if isinstance(reading, Unread):
            raise reading.fault
        # Accounts before slots before drafts, each in the order of their keys, as everywhere.
        queues = await self._lock_accounts(tx, reading.accounts, [reading.times], now)
        snapshots = {
            account: await self._arranger.snapshot(tx, account, queues[account], now=now)
            for account in sorted(reading.accounts)
        }
        locked = (await lock_drafts(tx, [reading.draft]))[reading.draft.key]
        draft = locked.unpublished(reading.draft, [account for _, account in reading.accounts])
        arrangements = {
            account: put_in_front(
                snapshots[account],
                FreeTimes(snapshots[account], reading.times[account]),
                draft.category_id,
                earliest=now + self._policy.notice,
            )
            for account in reading.accounts
        }
        for account, snapshot in snapshots.items():
            await self._arranger.apply(tx, snapshot, arrangements[account], now)
        places = [_place(queues[account], seat) for account, each in arrangements.items() for seat in each.additions]
        slots = self._record.book(draft, places, traceparent=reading.traceparent, now=now)
        await self._record.store(tx, slots, now)
        return slots


def _place(queue: AccountQueue, seat: Seat) -> Place:
    return Place(
        queue=queue,
        schedule_time=seat.time,
        origin=seat.origin,
        nominal=seat.nominal,
        tzdata_version=seat.tzdata_version,
    )
