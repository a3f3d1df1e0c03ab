"""Reads the databases, and shows waiting posts to Queue."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime

import asyncpg

from devstack.stack import Stack


class Databases:
    """Connections of the benchmark's own, one to each service's database; their backends are no part of a figure."""

    def __init__(self, connections: Mapping[str, "asyncpg.Connection"]) -> None:
        self._connections = connections

    @property
    def backends(self) -> list[int]:
        return [connection.get_server_pid() for connection in self._connections.values()]

    async def wal(self) -> int:
        """Returns the bytes of WAL that the whole server has ever written."""
        connection = next(iter(self._connections.values()))
        return int(await connection.fetchval("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn"))

    async def release(self, due: datetime) -> str:
        """Shows the slots of `Seeder.scheduled` to Queue. Returns where the WAL of what follows begins."""
        queue = self._connections["queue"]
        async with queue.transaction():
            await queue.execute("update account_queue set next_due_time = $1 where next_due_time is null", due)
            position: str = await queue.fetchval("select pg_current_wal_insert_lsn()::text")
        return position

    async def analyze(self, service: str) -> None:
        """Takes statistics, as autovacuum does within minutes: without them, plans are made for empty tables."""
        await self._connections[service].execute("analyze")

    async def value(self, service: str, query: str, *values: object) -> int:
        return int(await self._connections[service].fetchval(query, *values))

    async def time(self, service: str, query: str) -> datetime:
        time: datetime = await self._connections[service].fetchval(query)
        return time


@asynccontextmanager
async def opened(stack: Stack) -> AsyncIterator[Databases]:
    async with AsyncExitStack() as connections:
        opened = {}
        for service, url in stack.database_urls.items():
            opened[service] = connection = await asyncpg.connect(url)
            connections.push_async_callback(connection.close)
        yield Databases(opened)
