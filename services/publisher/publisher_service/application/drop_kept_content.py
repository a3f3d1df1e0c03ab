"""Deletes the kept bytes of runs that have ended for good."""

from publisher_service.adapters.postgres import contents
from servicekit.pg.database import Database

_MOST = 500


class DropKeptContent:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def __call__(self) -> bool:
        """Whether there may be more."""
        async with self._database.transaction() as tx:
            return await contents.drop(tx.connection, limit=_MOST) == _MOST
