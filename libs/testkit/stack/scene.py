"""The scene of a broken publisher: two processes on one database, of which one is the victim."""

import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncpg
import grpc

from devstack.stack import Stack
from testkit.stack.orders import Caller, Orders

VICTIM, OTHER = "publisher-2", "publisher"
UNANSWERED = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL, grpc.StatusCode.DEADLINE_EXCEEDED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Two processes on one database: what is asked of the victim may end it, and then the other one answers."""

    orders: Orders
    victim: Caller
    other: Caller
    stack: Stack

    async def change(self, statement: str) -> str:
        """Changes rows of the organization as a person may, and returns what PostgreSQL says."""
        connection = await asyncpg.connect(self.stack.database_urls["publisher"])
        try:
            done: str = await connection.execute(statement, self.orders.organization_id)
        finally:
            await connection.close()
        return done

    async def ask(self, call: Callable[[Caller], Awaitable[object]]) -> None:
        """Asks the victim, which may die of it."""
        try:
            await call(self.victim)
        except grpc.aio.AioRpcError as error:
            if error.code() not in UNANSWERED:
                raise

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Stops the other process, so that only the victim works."""
        os.kill(self.stack.pid(OTHER), signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self.stack.pid(OTHER), signal.SIGCONT)
