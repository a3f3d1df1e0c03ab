"""Statements that every post or call pays for run straight on the driver, in the session's transaction.

A transaction of three statements costs the process 113 us that way, and 340 us through SQLAlchemy; an array of 250
elements 0.15 us less per element. SQLAlchemy stays for everything else, on the same connection and in the same
transaction (`Session.connection`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, cast

import asyncpg
from asyncpg.protocol import protocol
from sqlalchemy.engine import Connection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from sqlalchemy.pool import PoolProxiedConnection

_NONE: Mapping[str, object] = {}

# asyncpg asks an abstract class whether an element of an array is an array, too: 0.12 of the 0.19 us of each text. Our
# arrays are lists and tuples of scalars, so these two classes answer as well.
protocol.IterableABC = (list, tuple)  # type: ignore[attr-defined]

# As in SQLAlchemy's text(): not the casts (`::text`), not the bounds of a slice (`[1:n]`).
_PARAMETER = re.compile(r"(?<![:\w]):([a-z_][a-z_0-9]*)(?!:)")


class Row(asyncpg.Record):
    """A row: a tuple whose columns are attributes, too, but for those named like a method (get, items, keys).

    An attribute costs 0.3 us, a column of an unpacked row a quarter of that: loops over many rows unpack them.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Statement:
    """One SQL statement with parameters like `:name`. PostgreSQL infers their types, so an unclear one needs a cast.

    Each connection prepares it once.
    """

    __slots__ = ("_arguments", "names", "sql", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        names: dict[str, str] = {}
        self.sql = _PARAMETER.sub(lambda found: names.setdefault(found[1], f"${len(names) + 1}"), text)
        self.names = tuple(names)
        self._arguments = _getter(self.names)

    def arguments(self, parameters: Mapping[str, object]) -> tuple[object, ...]:
        """Returns the values in the order of the SQL; other parameters are ignored, a missing one is a KeyError."""
        return self._arguments(parameters)


Listener = Callable[[str, Sequence[object]], None]
"""Hears each statement with its values, for tests."""


class ConnectionLost(ConnectionError):
    """The connection was lost during a statement, of which nobody knows whether it has taken effect."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"the connection to PostgreSQL was lost: {error}")
        self.sqlstate = getattr(error, "sqlstate", None)


class Session:
    """A connection of the pool, for the time that somebody holds it.

    Outside of a Transaction each statement commits by itself.
    """

    def __init__(
        self,
        pooled: PoolProxiedConnection,
        engine: AsyncEngine,
        lost: Callable[[], None],
        listeners: Sequence[Listener],
    ) -> None:
        self._pooled = pooled
        self._engine = engine
        self._lost = lost
        self._listeners = listeners
        self._driver = cast("asyncpg.Connection[asyncpg.Record]", pooled.driver_connection)
        self._connection: AsyncConnection | None = None

    @property
    def connection(self) -> AsyncConnection:
        """SQLAlchemy's view of this connection, in whose transaction its statements run."""
        if self._connection is None:
            connection = Connection(self._engine.sync_engine, self._pooled)
            # The engine's isolation level is AUTOCOMMIT, so this sends nothing. Without it, SQLAlchemy would replace a
            # lost connection by another one, outside of our transaction.
            connection.begin()
            self._connection = AsyncConnection(self._engine, connection)
        return self._connection

    async def fetch(self, statement: Statement, parameters: Mapping[str, object] = _NONE) -> list[Row]:
        """Runs the statement and returns its rows."""
        arguments = self._tell(statement, parameters)
        try:
            return await self._driver.fetch(statement.sql, *arguments, record_class=Row)
        except BaseException as error:
            await self._failed(error)
            raise

    async def fetch_row(self, statement: Statement, parameters: Mapping[str, object] = _NONE) -> Row | None:
        """Runs the statement and returns its only row, if there is one."""
        rows = await self.fetch(statement, parameters)
        assert len(rows) < 2
        return rows[0] if rows else None

    async def fetch_value(self, statement: Statement, parameters: Mapping[str, object] = _NONE) -> Any:
        """Runs the statement and returns the first column of its only row; None without a row."""
        row = await self.fetch_row(statement, parameters)
        return row[0] if row else None

    async def execute(self, statement: Statement, parameters: Mapping[str, object] = _NONE) -> int:
        """Runs the statement and returns how many rows it has written."""
        arguments = self._tell(statement, parameters)
        try:
            status = await self._driver.execute(statement.sql, *arguments)
        except BaseException as error:
            await self._failed(error)
            raise
        last = status.rpartition(" ")[2]
        return int(last) if last.isdigit() else 0

    async def release(self) -> None:
        """Gives the connection back to the pool, or closes it if somebody has left a transaction open."""
        if self.is_in_transaction:
            await self._drop(None)
        self._pooled.close()

    @property
    def is_in_transaction(self) -> bool:
        return not self._driver.is_closed() and self._driver.is_in_transaction()

    def _tell(self, statement: Statement, parameters: Mapping[str, object]) -> tuple[object, ...]:
        arguments = statement.arguments(parameters)
        for heard in self._listeners:
            heard(statement.sql, arguments)
        return arguments

    async def _command(self, command: str) -> str:
        """Sends BEGIN, COMMIT or ROLLBACK, and returns what the server has done."""
        try:
            return await self._driver.execute(command)
        except BaseException as error:
            await self._failed(error)
            raise

    async def _failed(self, error: BaseException) -> None:
        """Raises ConnectionLost if that is the error; closes the connection if it is lost, or may be busy still."""
        if isinstance(error, asyncpg.PostgresError):
            # PostgreSQL quotes the refused row there: row contents must not be logged.
            error.detail = None
        if self._driver.is_closed():
            if self._pooled.is_valid:
                self._lost()
            await self._drop(error)
            if isinstance(error, Exception):  # not a cancellation, which must end the task
                raise ConnectionLost(error) from error
        elif isinstance(error, TimeoutError) or not isinstance(error, Exception):
            await self._drop(error)

    async def _drop(self, error: BaseException | None) -> None:
        """Closes the connection: the pool makes another one."""
        if self._pooled.is_valid:
            await self.connection.invalidate(error)


def _getter(names: tuple[str, ...]) -> Callable[[Mapping[str, object]], tuple[object, ...]]:
    match names:
        case ():
            return lambda _parameters: ()
        case (name,):
            return lambda parameters: (parameters[name],)
        case _:
            return itemgetter(*names)
