"""Drops preparations of posts that have ended: what a provider has prepared for them is of no use any more."""

from datetime import timedelta

from publisher_service.adapters.postgres.preparations import drop_preparations
from servicekit.failpoints import declare, failpoint
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database

_COMMITTED = declare("publisher.drop_preparations.committed")
# For people to read.
_KEPT = timedelta(days=1)
_MOST = 1000


class DropPreparations:
    def __init__(self, database: Database, clock: DatabaseClock) -> None:
        self._database = database
        self._clock = clock

    async def __call__(self) -> bool:
        """Returns whether there may be more."""
        async with self._database.transaction() as tx:
            now = await self._clock.now(tx.connection)
            dropped = await drop_preparations(tx.connection, before=now - _KEPT, limit=_MOST)
        if dropped:
            await failpoint(_COMMITTED)
        return dropped == _MOST
