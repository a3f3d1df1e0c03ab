"""Holds the connections that a process has for reads, as slow lists would."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from servicekit.pg.database import Database


@asynccontextmanager
async def all_readers_held(database: Database) -> AsyncIterator[None]:
    """Holds every connection for reads: `Database.read()` waits meanwhile, and what posts wait for must not use it."""
    async with AsyncExitStack() as lists:
        held = [await lists.enter_async_context(database.read()) for _ in range(database.reader_count)]
        assert held
        yield
