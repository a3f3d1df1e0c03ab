"""Locking accounts whose slots a call is about to change, in the caller's transaction."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from queue_service.adapters.postgres.accounts import lock_or_add_queues, save_schedules
from queue_service.application.slot_mover import SlotMover
from queue_service.domain.account import AccountKey, AccountQueue
from queue_service.domain.schedule_check import ReadTimes, newer_schedules
from servicekit.pg.database import Transaction


class AccountLock:
    def __init__(self, mover: SlotMover) -> None:
        self._mover = mover

    async def __call__(
        self,
        tx: Transaction,
        accounts: Collection[AccountKey],
        readings: Iterable[Mapping[AccountKey, ReadTimes]],
        now: datetime,
    ) -> dict[AccountKey, AccountQueue]:
        """Locks the accounts in the order of their keys, as everywhere, and before anything else that is locked.

        Saves schedules that only Schedule's answers have brought so far, and moves outdated slots.
        """
        queues = await lock_or_add_queues(tx, accounts)
        if newer := newer_schedules(queues, readings):
            await save_schedules(tx.connection, newer)
            queues = await lock_or_add_queues(tx, accounts)
        return dict(await self._mover.bring_up_to_date(tx, queues, now))
