"""One service's database: transactions that report their commit, single statements, and reads that cannot write."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from typing import TypeVar
from weakref import WeakSet

import asyncpg
from sqlalchemy import URL, event
from sqlalchemy.engine import ExceptionContext, make_url
from sqlalchemy.exc import DBAPIError, DisconnectionError, EmulatedDBAPIException, ResourceClosedError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection

from servicekit.failpoints import droppable
from servicekit.pg.errors import is_refused_write, is_rerunnable
from servicekit.pg.session import ConnectionLost, Listener, Session

T = TypeVar("T")
C = TypeVar("C")
S = TypeVar("S", bound=Session)

_RERUNS = 6

# A plan cached while a table was small would keep scanning it as it grows, and planning every batch costs more than
# running it: so plans are generic, and index scans are preferred.
_SESSION = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "jit": "off",
    "timezone": "UTC",
    "idle_in_transaction_session_timeout": "60000",
}


class RolledBack(Exception):
    """PostgreSQL answered COMMIT with a rollback: a statement had failed, and the work went on regardless."""


class Transaction(Session):
    """An open transaction. Callbacks of `after_commit` run only once its COMMIT has been confirmed."""

    def __init__(
        self,
        pooled: PoolProxiedConnection,
        engine: AsyncEngine,
        lost: Callable[[], None],
        listeners: Sequence[Listener],
    ) -> None:
        super().__init__(pooled, engine, lost, listeners)
        self._before_commit: list[Callable[[], Awaitable[None]]] = []
        self._after_commit: list[Callable[[], None]] = []

    def before_commit(self, work: Callable[[], Awaitable[None]]) -> None:
        """Has `work` done last in the transaction: for locks that many wait for."""
        self._before_commit.append(work)

    def after_commit(self, callback: Callable[[], None]) -> None:
        self._after_commit.append(callback)

    async def begin(self) -> None:
        # At once: SQLAlchemy would begin with the first statement of its own, and those before it would not be inside.
        await self._command("BEGIN")

    async def commit(self) -> None:
        for work in self._before_commit:
            await work()
        if await self._command("COMMIT") != "COMMIT":
            raise RolledBack
        for callback in self._after_commit:
            callback()

    async def rollback(self) -> None:
        """Ends the transaction if it is still open. A connection that is lost or hangs has ended it, too."""
        if self.is_in_transaction:
            with suppress(ConnectionError, TimeoutError):
                await self._command("ROLLBACK")


class Database:
    """One database, with `pool_size` connections for writing and half as many for reading."""

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
        # For a server that hangs: its own timeout should have ended the statement before.
        patience = statement_timeout.total_seconds() + 5
        self.engine = _engine(async_url(url), pool_size, settings, patience)
        self._autocommit = self.engine.execution_options(isolation_level="AUTOCOMMIT")
        # Separate connections: making one read-only for a moment would cost a round trip each time.
        self.reader_count = max(1, pool_size // 2)
        read_only = settings | {"default_transaction_read_only": "on"}
        readers = _engine(async_url(url), self.reader_count, read_only, patience)
        event.listen(readers.sync_engine, "handle_error", _refuse_write)
        self._readers = readers.execution_options(isolation_level="AUTOCOMMIT")
        self.listeners: list[Listener] = []
        self._losses = _Losses()
        for engine in (self.engine, readers):
            self._losses.watch(engine)
            event.listen(engine.sync_engine, "connect", self._connected)
        self._open: WeakSet[asyncpg.Connection[asyncpg.Record]] = WeakSet()
        droppable(self)

    def drop_connections(self) -> None:
        """Breaks every open connection, as a network does: neither side is warned."""
        for connection in tuple(self._open):
            connection.terminate()

    def _connected(self, _dbapi: object, entry: ConnectionPoolEntry) -> None:
        if entry.driver_connection is not None:
            self._open.add(entry.driver_connection)

    @property
    def losses(self) -> int:
        """The number of times that the server was lost. What answers after a loss may be another server."""
        return self._losses.count

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        async with self._held(Transaction, self._autocommit) as transaction:
            await transaction.begin()
            try:
                yield transaction
                await transaction.commit()
            except BaseException:
                await transaction.rollback()
                raise

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        """Yields a session in which each statement commits by itself, without BEGIN and COMMIT."""
        async with self._held(Session, self._autocommit) as session:
            yield session

    @asynccontextmanager
    async def read_session(self) -> AsyncIterator[Session]:
        """Yields a session for single queries, as `read()` does."""
        async with self._held(_ReadSession, self._readers) as session:
            yield session

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Session]:
        """Yields a session for queries that belong together: all see the database as it was at the first of them."""
        async with self._held(_Snapshot, self._readers) as session:
            await session.begin()
            try:
                yield session
            finally:
                await session.end()

    @asynccontextmanager
    async def _held(self, kind: type[S], engine: AsyncEngine) -> AsyncIterator[S]:
        pooled = await _opened(engine.raw_connection())
        session = kind(pooled, engine, self._losses.of(pooled), self.listeners)
        try:
            yield session
        finally:
            await session.release()

    async def run(self, work: Callable[[Transaction], Awaitable[T]]) -> T:
        """Runs `work` in a transaction, and repeats it if PostgreSQL resolved a deadlock against it."""
        for rerun in range(_RERUNS):
            try:
                async with self.transaction() as transaction:
                    return await work(transaction)
            except (DBAPIError, asyncpg.PostgresError) as error:
                if not is_rerunnable(error) or rerun == _RERUNS - 1:
                    raise
            await asyncio.sleep(random.uniform(0, 0.005 * 2**rerun))
        raise AssertionError("unreachable")

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """Yields a connection for single queries, through which PostgreSQL refuses to write.

        For what callers ask. Slow lists may hold all of these connections, so what posts wait for uses `statement()`.
        """
        async with _connected(self._readers) as connection:
            yield connection

    @asynccontextmanager
    async def statement(self) -> AsyncIterator[AsyncConnection]:
        """Yields SQLAlchemy's connection, on which each statement commits by itself, without BEGIN and COMMIT."""
        async with _connected(self._autocommit) as connection:
            yield connection

    async def dispose(self) -> None:
        await self.engine.dispose()
        await self._readers.dispose()


@asynccontextmanager
async def _connected(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    async with AsyncExitStack() as stack:
        connection = await _opened(engine.connect())
        stack.push_async_exit(connection.__aexit__)
        yield connection


async def _opened(opening: Awaitable[C]) -> C:
    """Waits for a connection of a pool.

    SQLAlchemy questions the first one of an engine. If the server is lost meanwhile, its own code stumbles over that.
    """
    try:
        return await opening
    except EmulatedDBAPIException as error:
        raise error.driver_exception from None
    except (ResourceClosedError, NotImplementedError) as error:
        raise ConnectionLost(error) from error


class _Losses:
    """Counts how often the server was lost, for pools that share it: what one has lost is lost to the others.

    SQLAlchemy renews only the pool in which the error came up; each other pool would fail once of its own.
    """

    def __init__(self) -> None:
        self.count = 0

    def watch(self, engine: AsyncEngine) -> None:
        event.listen(engine.sync_engine, "connect", self._connected)
        event.listen(engine.sync_engine, "checkout", self._check)
        event.listen(engine.sync_engine, "handle_error", self._failed)

    def _connected(self, _dbapi: object, entry: ConnectionPoolEntry) -> None:
        entry.info[_Losses] = self.count

    def _check(self, _dbapi: object, entry: ConnectionPoolEntry, _proxy: object) -> None:
        if entry.info[_Losses] < self.count:
            raise DisconnectionError  # the pool connects again

    def _failed(self, context: ExceptionContext) -> None:
        # A statement that is cancelled is a disconnect, too, but it costs only its own connection.
        if not (context.is_disconnect and context.invalidate_pool_on_disconnect):
            return
        if context.connection:
            self._lost(context.connection.info[_Losses])

    def of(self, pooled: PoolProxiedConnection) -> Callable[[], None]:
        """Returns what to call when this connection turns out to be lost."""
        age = pooled.info[_Losses]
        return lambda: self._lost(age)

    def _lost(self, age: int) -> None:
        # The other connections of the same age fail as well: that is one loss.
        if age == self.count:
            self.count += 1


def _engine(url: URL, pool_size: int, settings: Mapping[str, str], command_timeout: float) -> AsyncEngine:
    engine = create_async_engine(
        url,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=10,
        pool_use_lifo=True,
        hide_parameters=True,
        connect_args={
            "server_settings": settings,
            "timeout": 5,
            "command_timeout": command_timeout,
            # The driver would forget long statements at once, and the others after five minutes.
            "max_cacheable_statement_size": 0,
            "max_cached_statement_lifetime": 0,
        },
    )
    event.listen(engine.sync_engine, "handle_error", _forget_rows)
    return engine


def async_url(url: str) -> URL:
    """Returns the URL for asyncpg, which has another name for libpq's `sslmode`."""
    parsed = make_url(url).set(drivername="postgresql+asyncpg")
    query = {"ssl" if name == "sslmode" else name: value for name, value in parsed.query.items()}
    return parsed.set(query=query)


def _milliseconds(duration: timedelta) -> str:
    return str(int(duration.total_seconds() * 1000))


class WriteInRead(Exception):
    """A read tried to write: a defect, where the same refusal elsewhere means that the primary was demoted."""


def _refuse_write(context: ExceptionContext) -> None:
    if is_refused_write(context.original_exception):
        raise _write_in_read() from None


def _write_in_read() -> WriteInRead:
    return WriteInRead("a read cannot write: use statement(), session() or a transaction")


class _ReadSession(Session):
    async def _failed(self, error: BaseException) -> None:
        await super()._failed(error)
        if is_refused_write(error):
            raise _write_in_read() from None


class _Snapshot(_ReadSession):
    async def begin(self) -> None:
        await self._command("BEGIN ISOLATION LEVEL REPEATABLE READ")

    async def end(self) -> None:
        """Ends the transaction, of which nothing remains, if it is still open. A lost connection has ended it, too."""
        if self.is_in_transaction:
            with suppress(ConnectionError, TimeoutError):
                await self._command("ROLLBACK")


def _forget_rows(context: ExceptionContext) -> None:
    """Removes the error's detail, in which PostgreSQL quotes the refused row: row contents must not be logged."""
    original = context.original_exception
    cause = original.__cause__
    if isinstance(cause, asyncpg.PostgresError):
        cause.detail = None
