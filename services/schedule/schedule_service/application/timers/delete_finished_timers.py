"""Deletes timers a week after they have fired for the last time."""

from schedule_service.adapters.postgres.timers import delete_finished_timers
from schedule_service.domain.timers.timer import KEPT
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database


class DeleteFinishedTimers:
    def __init__(self, *, database: Database, clock: DatabaseClock) -> None:
        self._database = database
        self._clock = clock

    async def __call__(self) -> bool:
        """Deletes a batch. Returns True if there may be more."""
        async with self._database.statement() as connection:
            now = await self._clock.now(connection)
            return await delete_finished_timers(connection, before=now - KEPT)
