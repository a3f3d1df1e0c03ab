"""Ends holds whose time has come, as if they were released then."""

from collections.abc import Callable

from publisher_service.adapters.postgres.holds import is_one_over, lock_over
from publisher_service.application.ending import end_hold
from publisher_service.domain.hold import released
from servicekit.failpoints import declare, failpoint
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction

_ENDED = declare("publisher.end_holds.committed")


class EndHolds:
    def __init__(self, *, database: Database, clock: DatabaseClock, on_ended: Callable[[], None]) -> None:
        """`on_ended` is called when a line may have its turn."""
        self._database = database
        self._clock = clock
        self._on_ended = on_ended

    async def __call__(self) -> bool:
        """Ends a hold. Returns whether there may be another one."""
        async with self._database.session() as session:
            if not await is_one_over(session, now=await self._clock.now(session)):
                return False
        ended = await self._database.run(self._end)
        await failpoint(_ENDED)
        return ended

    async def _end(self, tx: Transaction) -> bool:
        now = await self._clock.now(tx.connection)
        hold = await lock_over(tx.connection, now=now)
        if hold is None:
            return False
        await end_hold(tx, released(hold, hold.organization_id, hold.id, 0, now=now), self._on_ended, now=now)
        return True
