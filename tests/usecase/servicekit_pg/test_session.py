"""Statements straight on the driver: in the transaction that they seem to be in, with errors sorted as any other's."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from servicekit.pg.database import Database, RolledBack, Transaction, WriteInRead
from servicekit.pg.errors import is_data_error, is_late, is_rerunnable, is_transient, sqlstate
from servicekit.pg.session import Session, Statement
from testkit.plans import listen

_SET = Statement("update counter set value = :value where name = :name")
_ADD = Statement("update counter set value = value + 1 where name = :name returning value")
_VALUE = Statement("select value from counter where name = :name")
_COLD_VALUE = text("select value from counter where name = :name")
_LENGTH = Statement("select cardinality(cast(:array as text[]))")
_A = {"name": "a"}


@pytest.fixture
async def counters(database: Database) -> Database:
    async with database.session() as session:
        await session.execute(Statement("create table counter (name text primary key, value int check (value < 100))"))
        assert await session.execute(Statement("insert into counter values ('a', 0), ('b', 0)")) == 2
    return database


async def _value(database: Database, name: str = "a") -> int:
    async with database.read_session() as session:
        value: int = await session.fetch_value(_VALUE, {"name": name})
        return value


async def test_a_rolled_back_transaction_undoes_its_first_statement(counters: Database) -> None:
    async def fail() -> None:
        async with counters.transaction() as tx:
            assert await tx.fetch_value(_ADD, _A) == 1
            raise LookupError

    with pytest.raises(LookupError):
        await fail()
    assert await _value(counters) == 0


async def test_both_kinds_of_statement_are_in_one_transaction(counters: Database) -> None:
    async def fail() -> None:
        async with counters.transaction() as tx:
            await tx.connection.execute(text("update counter set value = 5 where name = 'a'"))
            assert await tx.fetch_value(_ADD, _A) == 6
            assert (await tx.connection.execute(_COLD_VALUE, _A)).scalar() == 6
            assert await _value(counters) == 0, "others see nothing of it yet"
            raise LookupError

    with pytest.raises(LookupError):
        await fail()
    assert await _value(counters) == 0


async def test_a_savepoint_holds_both_kinds_of_statement(counters: Database) -> None:
    async with counters.transaction() as tx:
        async with tx.connection.begin_nested() as savepoint:
            await tx.fetch_value(_ADD, _A)
            await savepoint.rollback()
        await tx.fetch_value(_ADD, {"name": "b"})
    assert (await _value(counters, "a"), await _value(counters, "b")) == (0, 1)


async def test_a_session_commits_each_statement(counters: Database) -> None:
    async with counters.session() as session:
        assert await session.execute(_SET, {"name": "a", "value": 7}) == 1
        assert await _value(counters) == 7
        await session.connection.execute(text("update counter set value = 8"))
        assert await _value(counters) == 8


async def test_a_transaction_left_open_in_a_session_does_not_outlive_it(counters: Database, database_url: str) -> None:
    single = Database(database_url, application="test", pool_size=1)
    async with single.session() as session:
        await session.execute(Statement("begin"))
        await session.fetch(_ADD, _A)
    async with single.session() as session:
        assert not session.is_in_transaction
    await single.dispose()
    assert await _value(counters) == 0


async def test_rows_are_tuples_with_names(counters: Database) -> None:
    async with counters.session() as session:
        rows = await session.fetch(Statement("select name, value from counter order by name"))
        assert [tuple(row) for row in rows] == [("a", 0), ("b", 0)]
        assert rows[1].name == "b"
        with pytest.raises(AttributeError):
            _ = rows[1].nothing
        assert await session.fetch_row(_VALUE, {"name": "nobody"}) is None
        assert await session.fetch_value(_VALUE, {"name": "nobody"}) is None


async def test_a_listener_hears_both_kinds_of_statement(counters: Database) -> None:
    heard: list[tuple[str, list[object]]] = []
    listen(counters, lambda statement, values: heard.append((statement.strip(), list(values))))
    async with counters.transaction() as tx:
        await tx.fetch(_ADD, _A)
        await tx.execute(_SET, {"name": "b", "value": 3})
        await tx.connection.execute(text("select 1"))
    assert heard == [(_ADD.sql, ["a"]), (_SET.sql, [3, "b"]), ("select 1", [])]


async def test_a_swallowed_error_does_not_pass_for_a_commit(counters: Database) -> None:
    heard: list[str] = []

    async def go_on() -> None:
        async with counters.transaction() as tx:
            tx.after_commit(lambda: heard.append("committed"))
            with pytest.raises(asyncpg.CheckViolationError):
                await tx.execute(_SET, {"name": "a", "value": 1000})

    with pytest.raises(RolledBack):
        await go_on()
    assert not heard


async def test_the_loser_of_a_deadlock_is_run_again(counters: Database) -> None:
    meeting = asyncio.Barrier(2)
    runs: list[str] = []

    def work(first: str, second: str) -> "Deadlock":
        return Deadlock(first, second, meeting, runs)

    async with asyncio.TaskGroup() as group:
        group.create_task(counters.run(work("a", "b")))
        group.create_task(counters.run(work("b", "a")))
    assert len(runs) > 2, "two transactions, and one of them again"
    assert (await _value(counters, "a"), await _value(counters, "b")) == (2, 2)


class Deadlock:
    """Locks one row, waits until the other transaction has locked its own, then locks that."""

    def __init__(self, first: str, second: str, meeting: asyncio.Barrier, runs: list[str]) -> None:
        self._first, self._second, self._meeting, self._runs = first, second, meeting, runs
        self._met = False

    async def __call__(self, tx: Transaction) -> None:
        self._runs.append(self._first)
        await tx.fetch(_ADD, {"name": self._first})
        if not self._met:
            self._met = True
            await self._meeting.wait()
        await tx.fetch(_ADD, {"name": self._second})


async def test_a_statement_prepared_before_a_migration_works_after_it(counters: Database, database_url: str) -> None:
    everything = Statement("select * from counter where name = :name")

    async def columns(session: Session) -> int:
        row = await session.fetch_row(everything, _A)
        return len(row or ())

    assert await counters.run(columns) == 2
    migrating = Database(database_url, application="migration")
    async with migrating.session() as session:
        await session.execute(Statement("alter table counter add column note text"))
    assert await counters.run(columns) == 3
    async with migrating.session() as session:
        await session.execute(Statement("alter table counter add column remark text"))
    async with counters.session() as session:
        assert await columns(session) == 4
    await migrating.dispose()


async def test_a_read_session_cannot_write(counters: Database) -> None:
    async with counters.read_session() as session:
        with pytest.raises(WriteInRead) as caught:
            await session.fetch(_ADD, _A)
    assert not is_transient(caught.value)
    assert await _value(counters) == 0


async def test_the_queries_of_a_snapshot_see_the_database_at_one_moment(counters: Database) -> None:
    async with counters.snapshot() as session:
        before = await session.fetch_value(_VALUE, _A)
        async with counters.session() as other:
            await other.fetch(_ADD, _A)
        assert await session.fetch_value(_VALUE, _A) == before
    assert await _value(counters) == before + 1


async def test_a_snapshot_cannot_write_and_returns_its_connection(counters: Database) -> None:
    for _ in range(counters.reader_count + 1):
        with pytest.raises(WriteInRead):
            async with counters.snapshot() as session:
                await session.fetch(_ADD, _A)
    assert await _value(counters) == 0


async def test_a_refused_row_does_not_show_in_the_error(counters: Database) -> None:
    async with counters.session() as session:
        await session.execute(Statement("create table secret (body text check (body <> 'the launch code'))"))
        with pytest.raises(asyncpg.CheckViolationError) as caught:
            await session.execute(Statement("insert into secret values (:body)"), {"body": "the launch code"})

    error: BaseException | None = caught.value
    assert "secret_body_check" in str(error), "the constraint does"
    while error:
        assert "launch code" not in f"{error} {error!r} {vars(error)}"
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize(
    ("statement", "value", "is_data"),
    [
        ("select cast(:value as int)", "not a number", False),
        ("select cast(:value as int)", 2**40, True),
        ("select cast(:value as text)", "a\0b", True),
        ("select 1 / cast(:value as int)", 0, True),
        ("select * from nowhere where x = :value", 1, False),
    ],
)
async def test_errors_are_sorted_as_those_of_sqlalchemy(
    database: Database, statement: str, value: object, is_data: bool
) -> None:
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError)) as caught:
        async with database.session() as session:
            await session.fetch(Statement(statement), {"value": value})
    with pytest.raises(DBAPIError) as cold:
        async with database.statement() as connection:
            await connection.execute(text(statement), {"value": value})
    for error in (caught.value, cold.value):
        assert not is_transient(error)
        assert not is_rerunnable(error)
        assert is_data_error(error) == is_data
    assert sqlstate(caught.value) == sqlstate(cold.value)


async def test_a_lock_timeout_is_late(counters: Database, database_url: str) -> None:
    hurried = Database(database_url, application="test", lock_timeout=timedelta(milliseconds=50))
    async with counters.transaction() as holder:
        await holder.fetch(_ADD, _A)
        with pytest.raises(asyncpg.LockNotAvailableError) as caught:
            async with hurried.transaction() as tx:
                await tx.fetch(_ADD, _A)
    await hurried.dispose()
    assert is_transient(caught.value)
    assert is_late(caught.value)


@pytest.mark.parametrize(("array", "length"), [(["a", None], 2), (("a", "b"), 2), ([], 0)])
async def test_lists_and_tuples_are_arrays(database: Database, array: Sequence[str], length: int) -> None:
    async with database.session() as session:
        assert await session.fetch_value(_LENGTH, {"array": array}) == length


async def test_nothing_else_is_an_array(database: Database) -> None:
    """Fails if a release of asyncpg no longer asks the classes that `session` gives it."""
    async with database.session() as session:
        with pytest.raises(asyncpg.DataError, match="a sized iterable container expected"):
            await session.fetch_value(_LENGTH, {"array": {"a": 1}.keys()})
