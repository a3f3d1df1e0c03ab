"""Drops reservations of days that are over everywhere: daily caps count one local day."""

from datetime import timedelta

from publisher_service.adapters.postgres.limits import drop_reservations
from servicekit.failpoints import declare, failpoint
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database

_COMMITTED = declare("publisher.drop_reservations.committed")
# A local day is 26 hours long at most, and no later than 14 hours behind another one. The rest is for people to read.
_KEPT = timedelta(days=4)
_MOST = 1000


class DropReservations:
    def __init__(self, database: Database, clock: DatabaseClock) -> None:
        self._database = database
        self._clock = clock

    async def __call__(self) -> bool:
        """Returns whether there may be more."""
        async with self._database.transaction() as tx:
            now = await self._clock.now(tx.connection)
            dropped = await drop_reservations(tx.connection, before=now - _KEPT, limit=_MOST)
        if dropped:
            await failpoint(_COMMITTED)
        return dropped == _MOST
