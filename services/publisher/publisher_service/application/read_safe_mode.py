"""Reads the safe mode, and what came of the post jobs so far."""

from publisher_service.adapters.postgres.reconciling import summary_of
from publisher_service.adapters.postgres.safe_modes import newest_safe_mode
from publisher_service.domain.safe_mode import SafeMode, Summary
from servicekit.pg.database import Database


class ReadSafeMode:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def __call__(self) -> tuple[SafeMode, Summary] | None:
        """Returns the safe mode as it is, or as it was left last; None if there never was one."""
        async with self._database.read_session() as session:
            mode = await newest_safe_mode(session)
            return None if mode is None else (mode, await summary_of(session.connection, mode))
