"""Moving slots to the instants that the newest announced time zone data gives them, a few accounts at a time."""

from queue_service.adapters.postgres.relocation import is_one_behind, lock_behind
from queue_service.application.slot_mover import SlotMover
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction

# An account may have some hundred slots, and each is announced.
_ACCOUNTS = 10


class CatchUp:
    def __init__(self, *, database: Database, clock: DatabaseClock, mover: SlotMover) -> None:
        self._database = database
        self._clock = clock
        self._mover = mover

    async def __call__(self) -> bool:
        """Returns whether there may be more to do."""
        # A single statement: the loop asks every second, and zones change a few times a year.
        async with self._database.session() as session:
            if not await is_one_behind(session, release=self._mover.release):
                return False
        return await self._database.run(self._step)

    async def _step(self, tx: Transaction) -> bool:
        accounts = await lock_behind(tx.connection, release=self._mover.release, limit=_ACCOUNTS)
        if accounts:
            await self._mover.move_outdated(tx, accounts, await self._clock.now(tx.connection))
        return bool(accounts)
