"""Drops working rows that nothing needs any more: reservations of days that are over, preparations of ended posts."""

from datetime import timedelta

from publisher_service.adapters.postgres.limits import drop_reservations
from publisher_service.adapters.postgres.preparations import drop_preparations
from servicekit.failpoints import declare, failpoint
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database

_COMMITTED = declare("publisher.drop_old_rows.committed")
# A local day is 26 hours long at most, and no later than 14 hours behind another one. The rest is for people to read.
_RESERVATIONS_KEPT = timedelta(days=4)
# After the last instant at which it could be published. For people to read, too.
_PREPARATIONS_KEPT = timedelta(days=1)
_MOST = 1000


class DropOldRows:
    def __init__(self, database: Database, clock: DatabaseClock) -> None:
        self._database = database
        self._clock = clock

    async def __call__(self) -> bool:
        """Returns whether there may be more."""
        async with self._database.transaction() as tx:
            now = await self._clock.now(tx.connection)
            reservations = await drop_reservations(tx.connection, before=now - _RESERVATIONS_KEPT, limit=_MOST)
            preparations = await drop_preparations(tx.connection, before=now - _PREPARATIONS_KEPT, limit=_MOST)
        if reservations or preparations:
            await failpoint(_COMMITTED)
        return _MOST in (reservations, preparations)
