"""A lost or busy connection costs statements on the driver what it costs all others."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from devstack.servers.postgres import EmbeddedPostgres, Mode
from servicekit.pg.database import Database
from servicekit.pg.errors import is_transient, sqlstate
from servicekit.pg.session import ConnectionLost, Session, Statement
from testkit.eventually import eventually

_SLEEP = Statement("select 'sleeper', pg_sleep(20)")
_ASLEEP = Statement("select count(*) from pg_stat_activity where query like '%sleeper%' and wait_event = 'PgSleep'")
_ONE = Statement("select 1")
_PID = Statement("select pg_backend_pid()")
_TERMINATE = Statement("select pg_terminate_backend(cast(:pid as int), 5000)")


@pytest.fixture(scope="module")
async def own_postgres(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EmbeddedPostgres]:
    folder: Path = tmp_path_factory.mktemp("own_postgres")
    async with EmbeddedPostgres(folder, mode=Mode.FAST) as server:
        yield server


@pytest.fixture
async def own_database(own_postgres: EmbeddedPostgres) -> AsyncIterator[Database]:
    if not own_postgres.running:
        await own_postgres.start()
    database = Database(own_postgres.url(), application="test", pool_size=2)
    await _one(database)
    yield database
    await database.dispose()


@pytest.fixture
async def watcher(own_postgres: EmbeddedPostgres) -> AsyncIterator[Database]:
    database = Database(own_postgres.url(), application="watcher", pool_size=1)
    yield database
    await database.dispose()


async def _one(database: Database) -> int:
    async with database.session() as session:
        one: int = await session.fetch_value(_ONE)
        return one


async def _sleep(database: Database) -> None:
    async with database.transaction() as tx:
        await tx.fetch(_SLEEP)


async def _sleepers(watcher: Database) -> int:
    async with watcher.session() as session:
        count: int = await session.fetch_value(_ASLEEP)
        return count


async def _asleep(watcher: Database) -> None:
    async def sleeping() -> bool:
        return await _sleepers(watcher) == 1

    await eventually(sleeping)


async def _outcome(work: Awaitable[object]) -> Exception | None:
    try:
        await work
    except Exception as error:  # noqa: BLE001 - the error is the subject of the test
        return error
    return None


@pytest.mark.parametrize("deed", ["kill", "stop"])
async def test_a_server_lost_during_a_statement_is_transient(
    own_postgres: EmbeddedPostgres, own_database: Database, watcher: Database, deed: str
) -> None:
    async with asyncio.TaskGroup() as group:
        sleep = group.create_task(_outcome(_sleep(own_database)))
        await _asleep(watcher)
        await getattr(own_postgres, deed)()
    error = sleep.result()
    assert isinstance(error, ConnectionLost)
    assert is_transient(error)


async def test_a_missing_server_is_transient(own_postgres: EmbeddedPostgres, own_database: Database) -> None:
    await own_postgres.kill()
    for _ in range(3):
        error = await _outcome(_one(own_database))
        assert error is not None
        assert is_transient(error)


async def test_one_lost_connection_renews_all_of_its_age(
    own_postgres: EmbeddedPostgres, own_database: Database
) -> None:
    async with own_database.transaction(), own_database.session(), own_database.read_session():  # all of both pools
        pass
    await own_postgres.restart()

    assert isinstance(await _outcome(_one(own_database)), ConnectionLost)
    async with own_database.transaction() as tx, own_database.statement() as connection:
        assert await tx.fetch_value(_ONE) == 1
        assert (await connection.execute(text("select 1"))).scalar() == 1
    async with own_database.read_session() as session:
        assert await session.fetch_value(_ONE) == 1


async def test_a_lost_transaction_does_not_go_on_elsewhere(own_database: Database, watcher: Database) -> None:
    """SQLAlchemy replaces a lost connection if it may: what comes then would be outside of the transaction."""

    outcomes: list[Exception | None] = []

    async def lose() -> None:
        async with own_database.transaction() as tx:
            async with watcher.session() as other:
                await other.execute(_TERMINATE, {"pid": await tx.fetch_value(_PID)})
            outcomes.append(await _outcome(tx.fetch(_ONE)))
            outcomes.append(await _outcome(tx.connection.execute(text("select 1"))))
            outcomes.append(await _outcome(tx.fetch(_ONE)))

    with pytest.raises(ConnectionLost):  # of COMMIT
        await lose()
    hot, cold, again = outcomes
    assert isinstance(hot, ConnectionLost)
    assert isinstance(cold, SQLAlchemyError)
    assert isinstance(again, ConnectionLost)


async def test_a_cancelled_statement_costs_its_connection_alone(own_database: Database, watcher: Database) -> None:
    async with asyncio.TaskGroup() as group:
        sleep = group.create_task(_sleep(own_database))
        await _asleep(watcher)
        async with own_database.session() as writer, own_database.read_session() as reader:
            before = {await writer.fetch_value(_PID), await reader.fetch_value(_PID)}
        sleep.cancel()

    assert await _sleepers(watcher) == 0, "the server has stopped, too"
    async with own_database.session() as one, own_database.session() as other, own_database.read_session() as reader:
        after = [await session.fetch_value(_PID) for session in (one, other, reader)]
    assert before < set(after)


async def test_a_cancellation_is_not_taken_for_the_loss_that_comes_with_it(
    own_database: Database, watcher: Database
) -> None:
    """A loop that is cancelled would take the loss for an outage, and go on."""
    held: list[Session] = []

    async def sleep() -> None:
        async with own_database.session() as session:
            held.append(session)
            await session.fetch(_SLEEP)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(sleep())
        await _asleep(watcher)
        task.cancel()
        held[0]._driver.terminate()
    assert task.cancelled()
    assert await _one(own_database) == 1


async def test_work_cancelled_between_statements_is_rolled_back(own_database: Database, watcher: Database) -> None:
    async with own_database.session() as session:
        await session.execute(Statement("drop table if exists kept"))
        await session.execute(Statement("create table kept (name text)"))
    written = asyncio.Event()

    async def work() -> None:
        async with own_database.transaction() as tx:
            await tx.execute(Statement("insert into kept values ('a')"))
            written.set()
            await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(work())
        await written.wait()
        task.cancel()
    async with own_database.session() as session:
        assert not session.is_in_transaction
        assert await session.fetch_value(Statement("select count(*) from kept")) == 0


async def test_a_server_that_hangs_costs_the_connection(own_database: Database) -> None:
    async with own_database.session() as session:
        session._driver._config = session._driver._config._replace(command_timeout=0.05)  # type: ignore[attr-defined]
        pid = await session.fetch_value(_PID)
        assert isinstance(await _outcome(session.fetch(_SLEEP)), TimeoutError)
    async with own_database.session() as one, own_database.session() as other:
        assert pid not in {await one.fetch_value(_PID), await other.fetch_value(_PID)}


async def test_an_idle_transaction_timeout_is_transient(own_database: Database) -> None:
    async def dawdle() -> None:
        async with own_database.transaction() as tx:
            await tx.fetch(Statement("set local idle_in_transaction_session_timeout = 20"))
            await asyncio.sleep(0.2)
            await tx.fetch(_ONE)

    error = await _outcome(dawdle())
    assert error is not None
    assert is_transient(error)


async def test_a_demoted_server_is_transient(own_database: Database) -> None:
    async def write() -> None:
        async with own_database.transaction() as tx:
            await tx.fetch(Statement("set transaction read only"))
            await tx.fetch(Statement("create table written ()"))

    error = await _outcome(write())
    assert error is not None
    assert is_transient(error)
    assert sqlstate(error) == "25006"


async def test_errors_of_connecting_are_sorted(own_postgres: EmbeddedPostgres, own_database: Database) -> None:
    hurried = Database(own_postgres.url(), application="test", pool_size=1)
    hurried.engine.pool._timeout = 0.05  # type: ignore[attr-defined]
    async with hurried.session():
        exhausted = await _outcome(_one(hurried))
    await hurried.dispose()
    nowhere = Database("postgresql://user:word@nowhere.invalid:5432/name", application="test")
    unknown = await _outcome(_one(nowhere))
    await nowhere.dispose()
    missing = Database(own_postgres.url().rpartition("/")[0] + "/missing", application="test")
    absent = await _outcome(_one(missing))
    await missing.dispose()
    assert exhausted is not None
    assert is_transient(exhausted)
    assert unknown is not None
    assert is_transient(unknown)
    assert absent is not None
    assert (sqlstate(absent), is_transient(absent)) == ("3D000", False)


async def test_dropped_connections_are_lost_at_once_and_replaced(own_database: Database) -> None:
    async def lose() -> None:
        async with own_database.transaction():
            own_database.drop_connections()

    with pytest.raises(ConnectionLost):  # of COMMIT
        await lose()
    assert await _one(own_database) == 1
