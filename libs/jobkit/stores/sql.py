"""A store on any table in PostgreSQL. Each call of a scheduler is one statement, which finds its rows by an index."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from datetime import datetime
from os import getpid
from socket import gethostname
from typing import Any, TypeAlias, assert_never

from sqlalchemy import Row, TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from jobkit.changes import Enqueued, JobEdit, NewJob, OnConflict
from jobkit.editing import apply_edit, edit_to_match, first_run_time
from jobkit.job import Job, JobId, JobUpdate, Lock
from jobkit.store import EditConflict, JobExists, NoSuchJob
from jobkit.stores.columns import SqlColumns
from jobkit.stores.row_statements import RowStatements
from jobkit.stores.statements import Statements

Transactions: TypeAlias = Callable[[], AbstractAsyncContextManager[AsyncConnection]]
"""Returns a context that gives a connection, and commits at its end."""
Clock: TypeAlias = Callable[[AsyncConnection], Awaitable[datetime]]

_READ_AS_IS = ("interval", "time_zone", "dst", "repeat_until", "misfire", "misfire_after", "pace", "auto_remove")

_EDIT_ATTEMPTS = 20

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
    """Holds jobs in a table that belongs to the program.

    `condition` is SQL over the table's columns that selects the rows which count, with bind parameters from
    `parameters`. `clock` decides what is due; the default is the database's clock. `owner` is written to `locked_by`;
    the default is host and process.
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
        owner: str | None = None,
    ) -> None:
        self._connect = _single_statements(database) if isinstance(database, AsyncEngine) else database
        self._columns = columns or SqlColumns()
        self._statements = Statements(table, schema, self._columns, condition, parameters or {})
        self._clock = clock
        self._owner = {"owner": owner or f"{gethostname()}:{getpid()}"} if self._columns.locked_by else {}
        self._types: Mapping[str, str] = {}

    async def now(self) -> datetime:
        async with self._connect() as connection:
            return await self._clock(connection)

    async def lock_next(self, now: datetime, lock_until: datetime, limit: int) -> list[Job]:
        async with self._connect() as connection:
            await self._learn_types(connection)
            statement = self._statements.lock_next(limit, self._data_is_json)
            values = {"now": now, "lock_until": lock_until} | self._owner
            rows = await connection.execute(statement, values)
            return [self._job(row) for row in rows]

    async def update(self, changes: Sequence[tuple[Lock, JobUpdate]]) -> frozenset[Lock]:
        written = self._statements.written
        values = {part: [getattr(update, part) for _, update in changes] for part, _, _ in written}
        locks = [lock for lock, _ in changes]
        return await self._change(self._statements.update, locks, definitions=_definitions(locks), **values)

    async def remove(self, locks: Sequence[Lock]) -> frozenset[Lock]:
        return await self._change(self._statements.remove, locks, definitions=_definitions(locks))

    async def extend(self, locks: Sequence[Lock], lock_until: datetime) -> frozenset[Lock]:
        return await self._change(self._statements.extend, locks, lock_until=lock_until)

    async def next_due(self) -> datetime | None:
        async with self._connect() as connection:
            moment: datetime | None = (await connection.execute(self._statements.next_due)).scalar_one_or_none()
            return moment

    async def hold(self, connection: AsyncConnection, locks: Sequence[Lock]) -> frozenset[Lock]:
        """Locks the rows in the caller's transaction, and returns the locks that hold and will hold until it ends.

        A handler that writes only for these jobs, in the same transaction, writes nothing for a job that another worker
        has taken over.
        """
        return await self._change_in(connection, self._statements.hold, locks)

    async def held(self, locks: Sequence[Lock]) -> list[Job]:
        async with self._connect() as connection:
            await self._learn_types(connection)
            statement = self._statements.held(self._types[self._columns.id], self._data_is_json)
            rows = await connection.execute(statement, _keys(locks))
            return [self._job(row) for row in rows]

    async def enqueue(
        self, new: NewJob, *, on_conflict: OnConflict = OnConflict.REFUSE, connection: AsyncConnection | None = None
    ) -> Enqueued:
        """Inserts a job; with a connection, in the caller's transaction on it."""
        async with self._given_or_own(connection) as own:
            await self._learn_types(own)
            due = first_run_time(new, await self._clock(own))
            for _ in range(_EDIT_ATTEMPTS):
                inserted = (await own.execute(*self._rows.insert(new, due))).scalar_one_or_none()
                if inserted is not None:
                    return Enqueued(inserted, is_new=True)
                if new.id is None:
                    continue  # the number that the table generated is taken; the next insert gets another
                if await self._exists(new.id, on_conflict, edit_to_match(new), own):
                    return Enqueued(new.id, is_new=False)
            raise EditConflict(
                f"job {new.id} appeared and disappeared {_EDIT_ATTEMPTS} times"
                if new.id is not None
                else f"{_EDIT_ATTEMPTS} ids that the table generated were taken"
            )

    async def edit_job(self, job_id: JobId, edit: JobEdit, *, connection: AsyncConnection | None = None) -> Job:
        """Edits a job; with a connection, in the caller's transaction, which a current run waits for to be settled."""
        async with self._given_or_own(connection) as own:
            await self._learn_types(own)
            for _ in range(_EDIT_ATTEMPTS):
                before, now = await self._read(job_id, own), await self._clock(own)
                after = apply_edit(before, edit, now)
                if (await own.execute(*self._rows.change(before, edit, after, now))).first() is not None:
                    return after.job
            raise EditConflict(f"job {job_id} changed {_EDIT_ATTEMPTS} times while it was being edited")

    async def _exists(self, job_id: JobId, on_conflict: OnConflict, edit: JobEdit, connection: AsyncConnection) -> bool:
        match on_conflict:
            case OnConflict.REFUSE:
                raise JobExists(f"there is a job {job_id} already")
            case OnConflict.KEEP:
                return True
            case OnConflict.EDIT:
                try:
                    await self.edit_job(job_id, edit, connection=connection)
                except NoSuchJob:  # removed in between
                    return False
                return True
            case other:
                assert_never(other)

    async def _read(self, job_id: JobId, connection: AsyncConnection) -> Job:
        statement = self._rows.read(self._data_is_json)
        row = (await connection.execute(statement, {"job_id": job_id})).one_or_none()
        if row is None:
            raise NoSuchJob(f"there is no job {job_id}")
        return self._job(row)

    def _given_or_own(self, connection: AsyncConnection | None) -> AbstractAsyncContextManager[AsyncConnection]:
        return self._connect() if connection is None else nullcontext(connection)

    @property
    def _rows(self) -> RowStatements:
        return RowStatements(self._columns, self._statements, self._types)

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
        rows = await connection.execute(statement(self._types[self._columns.id]), _keys(locks) | values)
        return frozenset(locks[ordinal - 1] for (ordinal,) in rows)

    @property
    def _data_is_json(self) -> bool:
        return isinstance(self._columns.data, str) and self._types[self._columns.data] in {"json", "jsonb"}

    async def _learn_types(self, connection: AsyncConnection) -> None:
        """Reads the types of the columns, once: arrays of ids are cast to the type of their column."""
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
                raise LookupError(f"{name} of {self._statements.relation} is a {types[name]}; it must be a timestamptz")
        self._types = types

    def _job(self, row: Row[Any]) -> Job:
        found = row._mapping  # noqa: SLF001 - the documented access to columns by name
        given = {part: found[part] for part in _READ_AS_IS if found.get(part) is not None}
        try:
            given["data"] = self._data(row)
        except (ValueError, RecursionError) as error:
            given["flaw"] = f"the data cannot be read: {error}"
        return Job(
            id=found["id"],
            due_time=found["due_time"],
            sleep_until=found["slept_until"],
            fence=found["fence"] or 0,
            attempts=found["attempts"],
            last_error=found["last_error"],
            definition=found["definition"],
            **given,
        )

    def _data(self, row: Row[Any]) -> Mapping[str, Any]:
        """Returns the data, which stands in the last columns of the row."""
        names = self._columns.data_names
        values = dict(zip(names, tuple(row)[-len(names) :], strict=True)) if names else {}
        if isinstance(self._columns.data, str):
            (value,) = values.values()
            if self._data_is_json and value is not None:
                value = json.loads(value)
            return value if isinstance(value, dict) else {} if value is None else {self._columns.data: value}
        return values


def _keys(locks: Sequence[Lock]) -> dict[str, object]:
    return {"ids": [lock.id for lock in locks], "fences": [lock.fence for lock in locks]}


def _definitions(locks: Sequence[Lock]) -> list[object]:
    return [lock.definition for lock in locks]


def _single_statements(engine: AsyncEngine) -> Transactions:
    """Leaves out BEGIN and COMMIT: a single statement is atomic by itself."""
    return engine.execution_options(isolation_level="AUTOCOMMIT").connect
