"""Deletes the kept bytes of runs that are over."""

from publisher_service.adapters.postgres.kept_contents import drop_kept_contents
from servicekit.failpoints import declare, failpoint
from servicekit.pg.database import Database

_COMMITTED = declare("publisher.drop_kept.committed")
_MOST = 500


class DropKeptContent:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def __call__(self) -> bool:
        """Returns whether there may be more."""
        async with self._database.transaction() as tx:
            dropped = await drop_kept_contents(tx.connection, limit=_MOST)
        if dropped:
            await failpoint(_COMMITTED)
        return dropped == _MOST
