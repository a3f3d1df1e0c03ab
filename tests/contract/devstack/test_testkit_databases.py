from collections.abc import Awaitable, Callable

import asyncpg

from devstack.servers.postgres import EmbeddedPostgres
from testkit.databases import Databases


async def _run(url: str, statement: str) -> list[asyncpg.Record]:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetch(statement)
    finally:
        await connection.close()


class Migrations:
    """Counts its calls and makes one table."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    async def __call__(self, url: str, service: str) -> None:
        self.calls.append(service)
        await _run(url, "create table made (id int)")


async def test_each_clone_has_the_tables_and_none_of_the_others_rows(postgres: EmbeddedPostgres) -> None:
    databases = Databases(postgres, Migrations())
    first, second = await databases.migrated("cloned"), await databases.migrated("cloned")
    await _run(first, "insert into made values (1)")
    assert await _run(second, "select * from made") == []
    for url in (first, second):
        await databases.drop(url)


async def test_migrations_run_once_per_service_and_session(postgres: EmbeddedPostgres) -> None:
    migrations = Migrations()
    databases = Databases(postgres, migrations)
    for service in ("once", "twice", "once"):
        await databases.drop(await databases.migrated(service))
    assert migrations.calls == ["once", "twice"]


async def test_a_clone_belongs_to_the_services_own_role(postgres: EmbeddedPostgres) -> None:
    databases = Databases(postgres, Migrations())
    url = await databases.migrated("owner")
    (record,) = await _run(
        url, "select current_user::text as role, rolsuper from pg_roles where rolname = current_user"
    )
    assert (record["role"], record["rolsuper"]) == ("postflow_owner", False)
    assert await _run(url, "create table another (id int)") == []
    await databases.drop(url)


async def test_an_empty_database_has_no_tables(empty_database: str) -> None:
    assert await _run(empty_database, "select * from pg_tables where schemaname = 'public'") == []


async def test_the_fixture_gives_a_service_its_own_migrated_tables(
    service_database: Callable[[str], Awaitable[str]],
) -> None:
    url = await service_database("schedule")
    tables = {record["tablename"] for record in await _run(url, "select tablename from pg_tables")}
    assert {"alembic_version", "outbox"} <= tables
