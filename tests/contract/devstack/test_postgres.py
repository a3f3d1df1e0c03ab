import asyncio
import os
import signal
import stat
from collections.abc import Callable
from pathlib import Path

import asyncpg
import pytest

from devstack.errors import FolderInUse, PortInUse, StackError
from devstack.processes.leftovers import working_in
from devstack.servers.postgres import EmbeddedPostgres, Mode
from testkit.eventually import eventually

SERVICES = ("schedule", "queue", "drafts", "publisher")


async def _run(url: str, *statements: str) -> list[asyncpg.Record]:
    connection = await asyncpg.connect(url)
    try:
        for statement in statements[:-1]:
            await connection.execute(statement)
        return await connection.fetch(statements[-1])
    finally:
        await connection.close()


async def _setting(url: str, name: str) -> str:
    return str((await _run(url, f"show {name}"))[0][0])


async def test_data_survives_an_orderly_restart_on_the_same_port(own_postgres: EmbeddedPostgres) -> None:
    await _run(own_postgres.url(), "create table kept (word text)", "insert into kept values ('yes') returning word")
    port = own_postgres.port

    await own_postgres.restart()

    assert own_postgres.port == port
    assert [record["word"] for record in await _run(own_postgres.url(), "select word from kept")] == ["yes"]


async def test_committed_data_survives_a_crash(own_postgres: EmbeddedPostgres) -> None:
    await _run(own_postgres.url(), "create table kept (word text)", "insert into kept values ('yes') returning word")

    await own_postgres.kill()
    assert not own_postgres.running
    await own_postgres.start()

    assert [record["word"] for record in await _run(own_postgres.url(), "select word from kept")] == ["yes"]


async def test_a_second_server_object_finds_the_data_and_the_passwords(tmp_path: Path) -> None:
    async with EmbeddedPostgres(tmp_path / "postgres", mode=Mode.FAST) as first:
        urls = await first.provide(SERVICES)
        await _run(urls["queue"], "create table kept (word text)", "select 1")
    async with EmbeddedPostgres(tmp_path / "postgres", port=first.port, mode=Mode.FAST) as second:
        assert await second.provide(SERVICES) == urls
        assert await _run(urls["queue"], "select word from kept") == []


async def test_wiping_forgets_everything(tmp_path: Path) -> None:
    server = EmbeddedPostgres(tmp_path / "postgres", mode=Mode.FAST)
    async with server:
        await server.provide(["queue"])
    await server.wipe()
    async with server:
        names = {record["datname"] for record in await _run(server.url(), "select datname from pg_database")}
    assert names == {"postgres", "template0", "template1"}


@pytest.mark.parametrize("stranger", SERVICES)
async def test_a_role_connects_to_its_own_database_only(postgres: EmbeddedPostgres, stranger: str) -> None:
    urls = await postgres.provide(SERVICES)
    assert (await _run(urls[stranger], "select current_user::text"))[0][0] == f"postflow_{stranger}"
    for database in {*SERVICES, "postgres", "template1"} - {stranger}:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await _run(postgres.url(database, f"postflow_{stranger}"), "select 1")


async def test_a_role_may_create_tables_in_its_database(postgres: EmbeddedPostgres) -> None:
    urls = await postgres.provide(["drafts"])
    assert await _run(urls["drafts"], "create table mine (id int)", "drop table mine", "select 1")


async def test_a_wrong_or_missing_password_is_refused(postgres: EmbeddedPostgres) -> None:
    url = (await postgres.provide(["queue"]))["queue"]
    password = url.split(":")[2].split("@")[0]
    for wrong in (f":{password}x@", ":@"):
        with pytest.raises(asyncpg.InvalidPasswordError):
            await _run(url.replace(f":{password}@", wrong), "select 1")


async def test_every_role_has_a_password_of_its_own_in_a_private_file(
    own_postgres: EmbeddedPostgres, tmp_path: Path
) -> None:
    urls = await own_postgres.provide(SERVICES)
    assert len({url.split(":")[2].split("@")[0] for url in urls.values()}) == len(SERVICES)
    assert stat.S_IMODE((tmp_path / "postgres" / "passwords.json").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "postgres").stat().st_mode) == 0o700


async def test_it_listens_on_loopback_only_and_on_no_socket_file(own_postgres: EmbeddedPostgres) -> None:
    assert await _setting(own_postgres.url(), "listen_addresses") == "127.0.0.1"
    assert await _setting(own_postgres.url(), "unix_socket_directories") == ""


async def test_only_a_durable_server_waits_for_the_disk_and_vacuums(postgres: EmbeddedPostgres, tmp_path: Path) -> None:
    names = ("fsync", "full_page_writes", "data_checksums", "autovacuum")
    async with EmbeddedPostgres(tmp_path / "postgres", mode=Mode.DURABLE) as durable:
        assert [await _setting(durable.url(), name) for name in names] == ["on", "on", "on", "on"]
    assert [await _setting(postgres.url(), name) for name in names] == ["off", "off", "off", "off"]


async def test_a_database_is_cloned_from_a_template_and_dropped_while_in_use(postgres: EmbeddedPostgres) -> None:
    template = await postgres.create_database("cloned_from")
    await _run(template, "create table t (id int)", "insert into t values (7) returning id")
    clone = await postgres.create_database("cloned_to", template="cloned_from")
    user = await asyncpg.connect(clone)

    assert await user.fetchval("select id from t") == 7
    await postgres.drop_database("cloned_to")

    # Which one depends on what the client reads first: the end of the connection, or the reason.
    gone = (asyncpg.PostgresConnectionError, asyncpg.InterfaceError, asyncpg.AdminShutdownError)
    with pytest.raises((*gone, asyncpg.InternalClientError)):
        await user.fetchval("select 1")
    with pytest.raises(asyncpg.InvalidCatalogNameError):
        await _run(clone, "select 1")
    await postgres.drop_database("cloned_from")


async def test_two_servers_never_share_a_folder(own_postgres: EmbeddedPostgres, tmp_path: Path) -> None:
    with pytest.raises(FolderInUse, match=f"in use by process {os.getpid()}"):
        await EmbeddedPostgres(tmp_path / "postgres", mode=Mode.FAST).start()
    assert await _run(own_postgres.url(), "select 1")


async def test_a_port_in_use_is_named_and_nothing_is_left_running(postgres: EmbeddedPostgres, tmp_path: Path) -> None:
    other = EmbeddedPostgres(tmp_path / "postgres", port=postgres.port, mode=Mode.FAST)
    with pytest.raises(PortInUse, match=f"port {postgres.port} \\(PostgreSQL\\)"):
        await other.start()
    assert not other.running
    assert working_in(tmp_path / "postgres" / "cluster" / "data") == []


async def test_a_server_left_running_by_a_killed_run_is_taken_over_without_loss(tmp_path: Path) -> None:
    first = EmbeddedPostgres(tmp_path / "postgres", mode=Mode.FAST)
    await first.start()
    await _run(first.url(), "create table kept (word text)", "insert into kept values ('yes') returning word")
    first._lock.release()  # as the kernel does when the holder is killed

    async with EmbeddedPostgres(tmp_path / "postgres", mode=Mode.FAST) as second:
        await eventually(lambda: not first.running)
        assert [record["word"] for record in await _run(second.url(), "select word from kept")] == ["yes"]
    await first.stop()


async def test_a_stale_lock_file_with_another_programs_process_id_is_ignored(
    own_postgres: EmbeddedPostgres, tmp_path: Path
) -> None:
    file = tmp_path / "postgres" / "cluster" / "data" / "postmaster.pid"
    text = file.read_text()
    await own_postgres.kill()
    file.write_text(text.replace(text.split("\n")[0], str(os.getppid()), 1))
    if os.geteuid() == 0:
        os.chown(file, file.parent.stat().st_uid, -1)

    await own_postgres.start()

    assert await _run(own_postgres.url(), "select 1")


async def test_backends_that_outlive_a_killed_server_end_before_the_next_start(
    own_postgres: EmbeddedPostgres,
) -> None:
    await _run(own_postgres.url(), "create table kept (word text)", "insert into kept values ('yes') returning word")
    os.kill(own_postgres.pid, signal.SIGKILL)
    await own_postgres.wait()

    await own_postgres.start()

    assert [record["word"] for record in await _run(own_postgres.url(), "select word from kept")] == ["yes"]


async def test_an_interrupted_first_start_is_repeated(tmp_path: Path) -> None:
    async with asyncio.TaskGroup() as group:
        start = group.create_task(EmbeddedPostgres(tmp_path / "postgres", mode=Mode.FAST).start())
        await eventually((tmp_path / "postgres" / "cluster" / "new" / "PG_VERSION").exists)
        start.cancel()
    assert start.cancelled()

    async with EmbeddedPostgres(tmp_path / "postgres", mode=Mode.FAST) as server:
        assert await _run(server.url(), "select 1")


async def test_data_of_another_major_version_is_refused_with_a_hint(tmp_path: Path) -> None:
    server = EmbeddedPostgres(tmp_path / "postgres", mode=Mode.FAST)
    async with server:
        pass
    version = tmp_path / "postgres" / "cluster" / "data" / "PG_VERSION"
    version.write_text("17\n")
    with pytest.raises(StackError, match=r"needs PostgreSQL 17, not 18.*--reset"):
        await server.start()


async def test_data_without_its_passwords_is_refused_with_a_hint(tmp_path: Path) -> None:
    async with EmbeddedPostgres(tmp_path / "postgres", mode=Mode.FAST):
        pass
    (tmp_path / "postgres" / "passwords.json").unlink()
    with pytest.raises(StackError, match=r"passwords\.json is missing"):
        await EmbeddedPostgres(tmp_path / "postgres", mode=Mode.FAST).start()


async def test_servers_on_free_ports_do_not_collide(tmp_path: Path, free_port: Callable[[], int]) -> None:
    async with (
        EmbeddedPostgres(tmp_path / "one", mode=Mode.FAST) as one,
        EmbeddedPostgres(tmp_path / "two", port=free_port(), mode=Mode.FAST) as two,
    ):
        assert one.port != two.port
        assert await _run(one.url(), "select 1")
        assert await _run(two.url(), "select 1")
