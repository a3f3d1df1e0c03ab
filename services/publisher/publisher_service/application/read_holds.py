"""ListHolds: the holds that are in force."""

from collections.abc import Sequence
from datetime import datetime

from publisher_service.adapters.postgres.holds import list_holds
from publisher_service.domain.hold import Hold, HoldFilter
from servicekit.pg.database import Database


class ReadHolds:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def __call__(self, wanted: HoldFilter, *, after: tuple[datetime, str] | None, limit: int) -> Sequence[Hold]:
        """Lists the holds behind the (create_time, id) that ended the page before."""
        async with self._database.read() as connection:
            return await list_holds(connection, wanted, after=after, limit=limit)
