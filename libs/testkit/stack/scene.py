"""The scene of a broken publisher: two processes on one database, of which one is the victim."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg
import grpc

from devstack.stack import Stack
from servicekit.run.loops import wait
from testkit.stack.orders import Caller, Orders

VICTIM, OTHER = "publisher-2", "publisher"
ALONE = 2.5
"""Seconds that the other process is stopped at most: shorter than its lease."""
UNANSWERED = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL, grpc.StatusCode.DEADLINE_EXCEEDED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Two processes on one database: what is asked of the victim may end it, and then the other one answers."""

    orders: Orders
    victim: Callable[[], Caller]
    other: Caller
    stack: Stack
    hit: asyncio.Event
    """Set once the victim has passed the failpoint."""
    is_in_call: bool
    """Whether the failpoint stands in a call: the victim may stand still there."""
    calls: asyncio.TaskGroup

    async def change(self, statement: str) -> str:
        """Changes rows of the organization as a person may, and returns what PostgreSQL says."""
        connection = await asyncpg.connect(self.stack.database_urls["publisher"])
        try:
            done: str = await connection.execute(statement, self.orders.organization_id)
        finally:
            await connection.close()
        return done

    async def rows(self, query: str) -> list[Mapping[str, Any]]:
        """Reads rows of the organization."""
        connection = await asyncpg.connect(self.stack.database_urls["publisher"])
        try:
            return [dict(row) for row in await connection.fetch(query, self.orders.organization_id)]
        finally:
            await connection.close()

    async def ask(self, call: Callable[[Caller], Awaitable[object]]) -> None:
        """Asks the victim, which may die of it. Waits for no answer of one that stands still at the failpoint."""
        if not self.is_in_call:
            await self._ask(call)
            return
        asked = self.calls.create_task(self._ask(call))
        hit = self.calls.create_task(self.hit.wait())
        await asyncio.wait((asked, hit), return_when=asyncio.FIRST_COMPLETED)
        hit.cancel()

    async def _ask(self, call: Callable[[Caller], Awaitable[object]]) -> None:
        try:
            await call(self.victim())
        except grpc.aio.AioRpcError as error:
            if error.code() not in UNANSWERED:
                raise

    async def until_hit(self, *, within: float) -> bool:
        await wait(self.hit, within)
        return self.hit.is_set()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Stops the other process, so that only the victim works."""
        os.kill(self.stack.pid(OTHER), signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.stack.pid(OTHER), signal.SIGCONT)
