"""Stores upcoming slots as Queue announces them, and deletes past ones."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from schedule_service.adapters.postgres.upcoming_slots import delete_past_slots, save_slots
from schedule_service.domain.calendars.upcoming_slot import UpcomingSlot, newest
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction

_KEPT = timedelta(hours=1)  # so that an older event that arrives late still finds the newer revision
_BATCH = 5000


async def follow_slots(tx: Transaction, received: Sequence[UpcomingSlot], _now: datetime) -> None:
    await save_slots(tx, newest(received))


class DeletePastSlots:
    def __init__(self, *, database: Database, clock: DatabaseClock) -> None:
        self._database = database
        self._clock = clock

    async def __call__(self) -> bool:
        """Deletes a batch. Returns True if there are more."""
        async with self._database.statement() as connection:
            cutoff = await self._clock.now(connection) - _KEPT
            return await delete_past_slots(connection, cutoff=cutoff, limit=_BATCH) == _BATCH
