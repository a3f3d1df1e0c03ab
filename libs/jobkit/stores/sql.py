"""Jobs in any table of PostgreSQL. Each call is one statement, also for a batch, and finds its rows by an index."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, TypeAlias

from sqlalchemy import Row, TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from jobkit.job import Job, JobUpdate, Lock
from jobkit.stores.columns import SqlColumns
from jobkit.stores.statements import Statements

Transactions: TypeAlias = Callable[[], AbstractAsyncContextManager[AsyncConnection]]
"""Gives a connection, and commits what was done on it when it is left."""
Clock: TypeAlias = Callable[[AsyncConnection], Awaitable[datetime]]

_READ_AS_IS = ("interval", "time_zone", "dst", "repeat_until", "misfire", "misfire_after", "pace", "auto_remove")

_CLOCK = text("select clock_timestamp()")
_COLUMN_TYPES = text(
    "select attname, format_type(atttypid, -1) from pg_attribute"
    " where attrelid = to_regclass(:table) and attnum > 0 and not attisdropped"
)


async def database_time(connection: AsyncConnection) -> datetime:
    moment = (await connection.execute(_CLOCK)).scalar_one()
    assert isinstance(moment, datetime)
    return moment


class SqlStore:
    """`condition` is SQL over the table's columns, with bind parameters from `parameters`: which rows are meant.

    What is due is decided by `clock`, the database's own unless told otherwise.
    """

    def __init__(
        self,
        database: AsyncEngine | Transactions,
        table: str,
        *,
        schema: str | None = None,
        columns: SqlColumns | None = None,
        condition: str = "true",
        parameters: Mapping[str, object] | None = None,
        clock: Clock = database_time,
    ) -> None:
        self._connect = _single_statements(database) if isinstance(database, AsyncEngine) else database
        self._columns = columns or SqlColumns()
        self._statements = Statements(table, schema, self._columns, condition, parameters or {})
        self._clock = clock
        self._types: Mapping[str, str] = {}

    async def now(self) -> datetime:
        async with self._connect() as connection:
            return await self._clock(connection)

    async def lock_next(self, now: datetime, lock_until: datetime, limit: int) -> list[Job]:
        async with self._connect() as connection:
            await self._learn_types(connection)
            statement = self._statements.lock_next(limit, self._data_is_json)
            rows = await connection.execute(statement, {"now": now, "lock_until": lock_until})
            return [self._job(row) for row in rows]

    async def update(self, changes: Sequence[tuple[Lock, JobUpdate]]) -> frozenset[Lock]:
        written = self._statements.written
        values = {part: [getattr(update, part) for _, update in changes] for part, _, _ in written}
        return await self._change(self._statements.update, [lock for lock, _ in changes], **values)

    async def remove(self, locks: Sequence[Lock]) -> frozenset[Lock]:
        return await self._change(self._statements.remove, locks)

    async def extend(self, locks: Sequence[Lock], lock_until: datetime) -> frozenset[Lock]:
        return await self._change(self._statements.extend, locks, lock_until=lock_until)

    async def next_due(self) -> datetime | None:
        async with self._connect() as connection:
            moment: datetime | None = (await connection.execute(self._statements.next_due)).scalar_one_or_none()
            return moment

    async def hold(self, connection: AsyncConnection, locks: Sequence[Lock]) -> frozenset[Lock]:
        """In the caller's transaction: those that still hold, and go on holding until it ends.

        A handler that writes for these alone, in this transaction, writes nothing for a job that another worker has.
        """
        return await self._change_in(connection, self._statements.hold, locks)

    async def _change(
        self, statement: Callable[[str], TextClause], locks: Sequence[Lock], **values: object
    ) -> frozenset[Lock]:
        async with self._connect() as connection:
            return await self._change_in(connection, statement, locks, **values)

    async def _change_in(
        self,
        connection: AsyncConnection,
        statement: Callable[[str], TextClause],
        locks: Sequence[Lock],
        **values: object,
    ) -> frozenset[Lock]:
        await self._learn_types(connection)
        keys = {"ids": [lock.id for lock in locks], "fences": [lock.fence for lock in locks]}
        rows = await connection.execute(statement(self._types[self._columns.id]), keys | values)
        return frozenset(locks[ordinal - 1] for (ordinal,) in rows)

    @property
    def _data_is_json(self) -> bool:
        return isinstance(self._columns.data, str) and self._types[self._columns.data] in {"json", "jsonb"}

    async def _learn_types(self, connection: AsyncConnection) -> None:
        """Once. Arrays of ids are cast to the type of the column, whatever that is."""
        if self._types:
            return
        rows = await connection.execute(_COLUMN_TYPES, {"table": self._statements.relation})
        types = {str(name): str(kind) for name, kind in rows}
        if not types:
            raise LookupError(f"there is no table {self._statements.relation}")
        missing = sorted(set(self._columns.names) - set(types))
        if missing:
            raise LookupError(f"the table {self._statements.relation} has no column {', '.join(missing)}")
        for name in self._columns.times:
            if types[name] in {"timestamp without time zone", "date"}:
                raise LookupError(f"{name} of {self._statements.relation} is a {types[name]}; wanted is a timestamptz")
        self._types = types

    def _job(self, row: Row[Any]) -> Job:
        found = row._mapping  # noqa: SLF001 - the documented way to the columns by name
        given = {part: found[part] for part in _READ_AS_IS if found.get(part) is not None}
        try:
            given["data"] = self._data(row)
        except (ValueError, RecursionError) as error:
            given["flaw"] = f"its data cannot be read: {error}"
        return Job(
            id=found["id"],
            due_time=found["due_time"],
            sleep_until=found["slept_until"],
            fence=found["fence"],
            attempts=found["attempts"],
            last_error=found["last_error"],
            **given,
        )

    def _data(self, row: Row[Any]) -> Mapping[str, Any]:
        """The last columns of the row."""
        names = self._columns.data_names
        values = dict(zip(names, tuple(row)[-len(names) :], strict=True)) if names else {}
        if isinstance(self._columns.data, str):
            (value,) = values.values()
            if self._data_is_json and value is not None:
                value = json.loads(value)
            return value if isinstance(value, dict) else {} if value is None else {self._columns.data: value}
        return values


def _single_statements(engine: AsyncEngine) -> Transactions:
    """Without BEGIN and COMMIT around them: a statement is atomic by itself."""
    return engine.execution_options(isolation_level="AUTOCOMMIT").connect
