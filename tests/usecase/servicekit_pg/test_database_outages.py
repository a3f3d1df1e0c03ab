"""The errors while PostgreSQL is unreachable are transient, and the service recovers by itself."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from devstack.servers.postgres import EmbeddedPostgres, Mode
from servicekit.pg.database import Database
from servicekit.pg.errors import is_transient
from testkit.eventually import eventually


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


async def _one(database: Database) -> int:
    async with database.statement() as connection:
        one: int = (await connection.execute(text("select 1"))).scalar_one()
        return one


async def _read_one(database: Database) -> int:
    async with database.read() as connection:
        one: int = (await connection.execute(text("select 1"))).scalar_one()
        return one


async def _sleep(database: Database) -> None:
    async with database.transaction() as tx:
        await tx.connection.execute(text("select 'sleeper', pg_sleep(20)"))


async def _asleep(own_postgres: EmbeddedPostgres) -> None:
    watcher = Database(own_postgres.url(), application="watcher", pool_size=1)
    statement = text("select count(*) from pg_stat_activity where query like '%sleeper%' and wait_event = 'PgSleep'")

    async def sleeping() -> bool:
        async with watcher.statement() as connection:
            return bool((await connection.execute(statement)).scalar())

    await eventually(sleeping)
    await watcher.dispose()


async def _while_sleeping(database: Database, server: EmbeddedPostgres, deed: str) -> Exception:
    async with asyncio.TaskGroup() as group:
        sleep = group.create_task(_outcome(_sleep(database)))
        await _asleep(server)
        await getattr(server, deed)()
    error = sleep.result()
    assert error is not None
    return error


async def _outcome(work: Awaitable[object]) -> Exception | None:
    try:
        await work
    except Exception as error:  # noqa: BLE001 - the error is the subject of the test
        return error
    return None


@pytest.mark.parametrize("deed", ["kill", "stop"])
async def test_a_server_lost_during_a_statement_is_transient(
    own_postgres: EmbeddedPostgres, own_database: Database, deed: str
) -> None:
    assert is_transient(await _while_sleeping(own_database, own_postgres, deed))


@pytest.mark.parametrize("deed", ["kill", "stop"])
async def test_a_missing_server_is_transient(own_postgres: EmbeddedPostgres, own_database: Database, deed: str) -> None:
    await getattr(own_postgres, deed)()
    for _ in range(3):
        error = await _outcome(_one(own_database))
        assert error is not None
        assert is_transient(error)


@pytest.mark.parametrize("deed", ["kill", "restart"])
async def test_a_restarted_server_is_used(own_postgres: EmbeddedPostgres, own_database: Database, deed: str) -> None:
    async with own_database.statement(), own_database.statement(), own_database.read():  # all connections of both pools
        pass
    await getattr(own_postgres, deed)()
    if not own_postgres.running:
        await own_postgres.start()

    outcomes = [await _outcome(_one(own_database)) for _ in range(4)]
    failures = [error for error in outcomes if error]
    assert all(map(is_transient, failures))
    assert len(failures) <= 1, "the first error empties the pool of everything that is as old"
    async with own_database.read() as connection:  # and the readers' pool with it
        await connection.execute(text("select 1"))


async def test_a_read_after_a_restart_renews_the_writers_too(
    own_postgres: EmbeddedPostgres, own_database: Database
) -> None:
    async with own_database.transaction(), own_database.statement(), own_database.read():  # all of both pools
        pass
    await own_postgres.restart()

    error = await _outcome(_read_one(own_database))
    assert error is not None
    assert is_transient(error)
    async with own_database.transaction() as tx:
        await tx.connection.execute(text("select 1"))
    assert await _one(own_database) == 1
    assert await _read_one(own_database) == 1


async def test_a_cancelled_statement_costs_no_other_connection(
    own_postgres: EmbeddedPostgres, own_database: Database
) -> None:
    async def backend(connection: AsyncConnection) -> int:
        pid: int = (await connection.execute(text("select pg_backend_pid()"))).scalar_one()
        return pid

    async with asyncio.TaskGroup() as group:
        sleep = group.create_task(_sleep(own_database))
        await _asleep(own_postgres)
        async with own_database.statement() as writer, own_database.read() as reader:
            before = {await backend(writer), await backend(reader)}
        sleep.cancel()
    async with own_database.statement() as one, own_database.statement() as other, own_database.read() as reader:
        assert before < {await backend(one), await backend(other), await backend(reader)}


async def test_a_statement_timeout_is_transient(own_postgres: EmbeddedPostgres) -> None:
    if not own_postgres.running:
        await own_postgres.start()
    slow = Database(own_postgres.url(), application="test", pool_size=1, statement_timeout=timedelta(milliseconds=50))
    error = await _outcome(_sleep(slow))
    await slow.dispose()
    assert error is not None
    assert is_transient(error)


async def test_an_idle_transaction_timeout_is_transient(own_database: Database) -> None:
    async def dawdle() -> None:
        async with own_database.transaction() as tx:
            await tx.connection.execute(text("set local idle_in_transaction_session_timeout = 20"))
            await asyncio.sleep(0.2)
            await tx.connection.execute(text("select 1"))

    error = await _outcome(dawdle())
    assert error is not None
    assert is_transient(error)


async def test_a_demoted_server_is_transient(own_database: Database) -> None:
    async def write() -> None:
        async with own_database.transaction() as tx:
            await tx.connection.execute(text("set transaction read only"))
            await tx.connection.execute(text("create table written ()"))

    error = await _outcome(write())
    assert error is not None
    assert is_transient(error)


async def test_a_terminated_backend_is_transient(own_database: Database, own_postgres: EmbeddedPostgres) -> None:
    async with asyncio.TaskGroup() as group:
        sleep = group.create_task(_outcome(_sleep(own_database)))
        await _asleep(own_postgres)
        async with own_database.read() as connection:
            await connection.execute(
                text("select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'PgSleep'")
            )
    error = sleep.result()
    assert error is not None
    assert is_transient(error)


async def test_an_exhausted_pool_is_transient(own_postgres: EmbeddedPostgres) -> None:
    hurried = Database(own_postgres.url(), application="test", pool_size=1)
    hurried.engine.pool._timeout = 0.05  # type: ignore[attr-defined]
    async with hurried.statement():
        error = await _outcome(_one(hurried))
    await hurried.dispose()
    assert error is not None
    assert is_transient(error)


async def test_too_many_connections_are_transient(own_postgres: EmbeddedPostgres, own_database: Database) -> None:
    async with own_database.statement() as connection:
        await connection.execute(text("drop role if exists narrow"))
        await connection.execute(text("create role narrow login password 'x' connection limit 0"))
    url = own_postgres.url().replace("postgres:", "narrow:", 1)
    narrow = Database(f"{url.partition('narrow:')[0]}narrow:x@{url.rpartition('@')[2]}", application="test")
    error = await _outcome(_one(narrow))
    await narrow.dispose()
    assert error is not None
    assert is_transient(error)


async def test_a_connection_lost_while_it_is_set_up_is_transient(own_postgres: EmbeddedPostgres) -> None:
    """SQLAlchemy sets up codecs on the driver's connection, and passes on the driver's own error when it is closed."""
    if not own_postgres.running:
        await own_postgres.start()
    connection = await asyncpg.connect(own_postgres.url())
    connection.terminate()
    error = await _outcome(connection.set_type_codec("json", encoder=str, decoder=str, schema="pg_catalog"))
    assert type(error) is asyncpg.InterfaceError
    assert is_transient(error)


async def test_a_host_without_an_address_is_transient() -> None:
    nowhere = Database("postgresql://user:word@nowhere.invalid:5432/name", application="test")
    error = await _outcome(_one(nowhere))
    assert error is not None
    assert is_transient(error)
    await nowhere.dispose()


async def test_a_missing_file_is_not_transient() -> None:
    assert not is_transient(FileNotFoundError())
    assert not is_transient(PermissionError())
