"""ListDestinations: destinations and their health as they are now."""

from collections.abc import Sequence

from publisher_service.adapters.postgres.destinations import list_destinations
from publisher_service.domain.destination import Destination, DestinationFilter
from servicekit.pg.database import Database


class ReadDestinations:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def __call__(
        self, wanted: DestinationFilter, *, after: Sequence[str] | None, limit: int
    ) -> Sequence[Destination]:
        """Lists the destinations behind this account, channel and destination."""
        async with self._database.read() as connection:
            return await list_destinations(connection, wanted, after=after, limit=limit)
