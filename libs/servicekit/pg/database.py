"""One service's database: transactions that tell when they have committed, and cheap single reads."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TypeVar

import asyncpg
from sqlalchemy import URL, event
from sqlalchemy.engine import ExceptionContext, make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from servicekit.pg.errors import is_rerunnable

T = TypeVar("T")

_RERUNS = 6

# A plan cached while a table was small would go on scanning it as it grows, and planning every batch anew costs more
# than running it: so plans are generic, and index scans are preferred.
_SESSION = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "jit": "off",
    "timezone": "UTC",
    "idle_in_transaction_session_timeout": "60000",
}


class Transaction:
    """An open transaction. Callbacks given to `after_commit` run once its COMMIT has been confirmed, and never else."""

    def __init__(self, connection: AsyncConnection) -> None:
        self.connection = connection
        self._after_commit: list[Callable[[], None]] = []

    def after_commit(self, callback: Callable[[], None]) -> None:
        self._after_commit.append(callback)

    def committed(self) -> None:
        for callback in self._after_commit:
            callback()


class Database:
    def __init__(
        self,
        url: str,
        *,
        application: str,
        pool_size: int = 8,
        statement_timeout: timedelta = timedelta(seconds=30),
        lock_timeout: timedelta = timedelta(seconds=10),
    ) -> None:
        settings = _SESSION | {
            "application_name": application,
            "statement_timeout": _milliseconds(statement_timeout),
            "lock_timeout": _milliseconds(lock_timeout),
        }
        self.engine: AsyncEngine = create_async_engine(
            async_url(url),
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=10,
            pool_use_lifo=True,
            hide_parameters=True,
            connect_args={
                "server_settings": settings,
                "timeout": 5,
                # For a server that stands still: its own limit should have answered long before.
                "command_timeout": statement_timeout.total_seconds() + 5,
            },
        )
        event.listen(self.engine.sync_engine, "handle_error", _forget_rows)
        self._reader = self.engine.execution_options(isolation_level="AUTOCOMMIT")

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        async with self.engine.connect() as connection:
            async with connection.begin():
                transaction = Transaction(connection)
                yield transaction
            transaction.committed()

    async def run(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Runs `work` in a transaction, again when PostgreSQL resolved a deadlock against it."""
        for rerun in range(_RERUNS):
            try:
                async with self.transaction() as transaction:
                    return await work(transaction)
            except DBAPIError as error:
                if not is_rerunnable(error) or rerun == _RERUNS - 1:
                    raise
            await asyncio.sleep(random.uniform(0, 0.005 * 2**rerun))
        raise AssertionError("unreachable")

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """A connection for single statements: no BEGIN, no COMMIT."""
        async with self._reader.connect() as connection:
            yield connection

    async def dispose(self) -> None:
        await self.engine.dispose()


def async_url(url: str) -> URL:
    """For asyncpg, which knows libpq's `sslmode` under another name."""
    parsed = make_url(url).set(drivername="postgresql+asyncpg")
    query = {"ssl" if name == "sslmode" else name: value for name, value in parsed.query.items()}
    return parsed.set(query=query)


def _milliseconds(duration: timedelta) -> str:
    return str(int(duration.total_seconds() * 1000))


def _forget_rows(context: ExceptionContext) -> None:
    """PostgreSQL quotes the refused row in the error's detail; what stands in rows has no business in a log."""
    original = context.original_exception
    cause = original.__cause__
    if isinstance(cause, asyncpg.PostgresError):
        cause.detail = None
