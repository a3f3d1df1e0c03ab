import asyncio
from datetime import timedelta

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, IntegrityError

from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction, WriteInRead, async_url
from servicekit.pg.errors import is_rerunnable, is_transient, sqlstate
from servicekit.pg.session import ConnectionLost


@pytest.fixture
async def counters(database: Database) -> Database:
    async with database.statement() as connection:
        await connection.execute(text("create table counter (name text primary key, value int check (value < 100))"))
        await connection.execute(text("insert into counter values ('a', 0), ('b', 0)"))
    return database


async def _value(database: Database, name: str = "a") -> int:
    async with database.read() as connection:
        value: int = (
            await connection.execute(text("select value from counter where name = :n"), {"n": name})
        ).scalar_one()
        return value


async def _add(tx: Transaction, name: str, amount: int = 1) -> None:
    await tx.connection.execute(
        text("update counter set value = value + :amount where name = :name"), {"name": name, "amount": amount}
    )


async def test_a_transaction_commits_and_then_calls_back(counters: Database) -> None:
    heard: list[str] = []
    async with counters.transaction() as tx:
        await _add(tx, "a")
        tx.after_commit(lambda: heard.append("committed"))
        assert not heard
    assert heard == ["committed"]
    assert await _value(counters) == 1


async def test_a_failed_transaction_leaves_nothing_and_calls_nothing_back(counters: Database) -> None:
    heard: list[str] = []

    async def fail() -> None:
        async with counters.transaction() as tx:
            await _add(tx, "a")
            tx.after_commit(lambda: heard.append("committed"))
            raise LookupError

    with pytest.raises(LookupError):
        await fail()
    assert not heard
    assert await _value(counters) == 0


async def test_a_refused_commit_calls_nothing_back(counters: Database) -> None:
    async with counters.statement() as connection:
        await connection.execute(
            text("create table once (name text unique deferrable initially deferred)"),
        )
    heard: list[str] = []

    async def insert_twice() -> None:
        async with counters.transaction() as tx:
            await tx.connection.execute(text("insert into once values ('x'), ('x')"))
            tx.after_commit(lambda: heard.append("committed"))

    with pytest.raises(asyncpg.UniqueViolationError):
        await insert_twice()
    assert not heard


async def test_a_commit_without_an_answer_calls_nothing_back(counters: Database) -> None:
    heard: list[str] = []

    async def lose_the_connection() -> None:
        async with counters.transaction() as tx:
            tx.after_commit(lambda: heard.append("committed"))
            await _add(tx, "a")
            pid = (await tx.connection.execute(text("select pg_backend_pid()"))).scalar()
            async with counters.read() as other:
                await other.execute(text("select pg_terminate_backend(:pid, 5000)"), {"pid": pid})

    with pytest.raises(ConnectionLost) as caught:
        await lose_the_connection()
    assert is_transient(caught.value)
    assert not heard
    assert await _value(counters) == 0


async def test_the_loser_of_a_deadlock_is_run_again(counters: Database) -> None:
    meeting = asyncio.Barrier(2)
    runs: list[str] = []

    def both(first: str, second: str) -> "Work":
        return Work(first, second, meeting, runs)

    async with asyncio.TaskGroup() as group:
        group.create_task(counters.run(both("a", "b")))
        group.create_task(counters.run(both("b", "a")))

    assert len(runs) == 3, "two transactions, and one of them again"
    assert await _value(counters, "a") == 2
    assert await _value(counters, "b") == 2


class Work:
    """Locks one row, waits until the other transaction has locked its own, then locks that."""

    def __init__(self, first: str, second: str, meeting: asyncio.Barrier, runs: list[str]) -> None:
        self._first, self._second, self._meeting, self._runs = first, second, meeting, runs
        self._met = False

    async def __call__(self, tx: Transaction) -> None:
        self._runs.append(self._first)
        await _add(tx, self._first)
        if not self._met:
            self._met = True
            await self._meeting.wait()
        await _add(tx, self._second)


async def test_other_errors_are_not_run_again(counters: Database) -> None:
    runs = 0

    async def work(tx: Transaction) -> None:
        nonlocal runs
        runs += 1
        await _add(tx, "a", 1000)

    with pytest.raises(IntegrityError):
        await counters.run(work)
    assert runs == 1


async def test_a_statement_prepared_before_a_migration_is_run_again(counters: Database, database_url: str) -> None:
    async def everything(tx: Transaction) -> int:
        return len((await tx.connection.execute(text("select * from counter"))).keys())

    assert await counters.run(everything) == 2
    migrating = Database(database_url, application="migration")
    async with migrating.statement() as connection:
        await connection.execute(text("alter table counter add column note text"))
    await migrating.dispose()

    assert await counters.run(everything) == 3


async def test_a_read_cannot_write(counters: Database) -> None:
    async with counters.read() as connection:
        with pytest.raises(WriteInRead) as caught:
            await connection.execute(text("update counter set value = 7"))
    assert not is_transient(caught.value), "it would be retried forever, where a demoted primary is waited for"
    assert await _value(counters) == 0


async def test_a_statement_commits_by_itself(counters: Database) -> None:
    async with counters.statement() as connection:
        await connection.execute(text("update counter set value = 7 where name = 'a'"))
        async with counters.read() as other:
            assert (await other.execute(text("select value from counter where name = 'a'"))).scalar() == 7


async def test_after_a_statement_the_same_connection_gives_transactions(counters: Database, database_url: str) -> None:
    single = Database(database_url, application="test", pool_size=1)
    async with single.statement() as connection:
        await connection.execute(text("select 1"))

    async def fail() -> None:
        async with single.transaction() as tx:
            await _add(tx, "a")
            raise LookupError

    with pytest.raises(LookupError):
        await fail()
    await single.dispose()
    assert await _value(counters) == 0


async def test_sessions_have_their_settings(database: Database) -> None:
    wanted = {
        "application_name": "test",
        "enable_seqscan": "off",
        "idle_in_transaction_session_timeout": "1min",
        "jit": "off",
        "lock_timeout": "10s",
        "plan_cache_mode": "force_generic_plan",
        "statement_timeout": "30s",
        "TimeZone": "UTC",
    }
    async with database.read() as connection:
        found = {name: (await connection.execute(text(f"show {name}"))).scalar() for name in wanted}
    assert found == wanted


async def test_a_refused_row_does_not_show_in_the_error(counters: Database) -> None:
    async with counters.statement() as connection:
        await connection.execute(text("create table secret (body text check (body <> 'the launch code'))"))
    with pytest.raises(IntegrityError) as caught:
        async with counters.transaction() as tx:
            await tx.connection.execute(text("insert into secret values (:body)"), {"body": "the launch code"})

    error: BaseException | None = caught.value
    assert "secret_body_check" in str(error), "the constraint does"
    while error:
        assert "launch code" not in f"{error} {error!r}"
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize(
    ("statement", "value"),
    [
        ("select cast(:value as int)", "not a number"),
        ("select cast(:value as int)", 2**40),
        ("select cast(:value as text)", "a\0b"),
        ("select cast(:value as text)", "\ud800"),
        ("select 1 / cast(:value as int)", 0),
        ("select * from nowhere where x = :value", 1),
    ],
)
async def test_a_mistake_in_our_code_is_not_transient(database: Database, statement: str, value: object) -> None:
    with pytest.raises(DBAPIError) as caught:
        async with database.statement() as connection:
            await connection.execute(text(statement), {"value": value})
    assert not is_transient(caught.value)
    assert not is_rerunnable(caught.value)


async def test_a_lock_timeout_is_transient(counters: Database, database_url: str) -> None:
    hurried = Database(database_url, application="test", lock_timeout=timedelta(milliseconds=50))
    async with counters.transaction() as holder:
        await _add(holder, "a")
        with pytest.raises(DBAPIError) as caught:
            async with hurried.transaction() as tx:
                await _add(tx, "a")
    await hurried.dispose()
    assert sqlstate(caught.value) == "55P03"
    assert is_transient(caught.value)


async def test_the_database_clock_is_read(database: Database) -> None:
    clock = DatabaseClock()
    async with database.transaction() as tx:
        first = await clock.now(tx.connection)
        assert await clock.now(tx.connection) > first, "it goes on within a transaction"
    assert first.utcoffset() is not None


def test_a_libpq_url_is_accepted() -> None:
    url = async_url("postgresql://user:word@host:5432/name?sslmode=require")
    assert url.drivername == "postgresql+asyncpg"
    assert url.query == {"ssl": "require"}
    assert url.password == "word"
