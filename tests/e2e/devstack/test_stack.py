"""The stack with one real service, which is enough to see what it does with any."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from devstack.errors import FolderInUse, PortInUse, StackError
from devstack.processes.leftovers import working_in
from devstack.servers.nats import EmbeddedNats
from devstack.servers.postgres import EmbeddedPostgres
from devstack.stack import Stack
from testkit.eventually import eventually

ONE = ("schedule",)
STARTS_A_STACK = """
import asyncio, json, sys
from pathlib import Path
from devstack.stack import Stack

async def main():
    async with Stack(Path(sys.argv[1]), services=("schedule",)) as stack:
        print(json.dumps([stack.postgres.pid, stack.nats.pid, stack.pid("schedule"), stack.pid("sandbox")]), flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture(scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    async with Stack(tmp_path_factory.mktemp("stack") / "state", services=ONE) as running:
        yield running


def _gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


async def test_a_killed_service_comes_back_by_itself(stack: Stack) -> None:
    pid, starts = stack.pid("schedule"), stack.starts("schedule")
    await stack.kill("schedule")
    await stack.wait_serving("schedule")
    assert stack.pid("schedule") != pid
    assert stack.starts("schedule") == starts + 1


async def test_a_service_killed_for_good_stays_down_until_it_is_started(stack: Stack) -> None:
    starts = stack.starts("schedule")
    await stack.kill("schedule", respawn=False)
    assert not stack.running("schedule")
    with pytest.raises(StackError, match="schedule ended"):
        await stack.wait_serving("schedule")
    await stack.start("schedule")
    assert stack.starts("schedule") == starts + 1


async def test_a_restarted_service_has_drained_and_gets_new_settings(stack: Stack) -> None:
    before = len(stack.output("schedule"))
    await stack.restart("schedule", {"POSTFLOW_SCHEDULE_LOG_LEVEL": "WARNING"})
    messages = [json.loads(line)["message"] for line in stack.output("schedule")[before:]]
    assert messages[-1] == "stopped"
    await stack.restart("schedule", {"POSTFLOW_SCHEDULE_LOG_LEVEL": "INFO"})


async def test_wrong_settings_are_reported_with_what_the_service_said(stack: Stack) -> None:
    await stack.stop("schedule")
    with pytest.raises(
        StackError, match=r"schedule ended \(exit code 2\)(?s:.*)POSTFLOW_SCHEDULE_DATABASE_CONNECTIONS"
    ):
        await stack.start("schedule", {"POSTFLOW_SCHEDULE_DATABASE_CONNECTIONS": "many"})
    await stack.start("schedule", {"POSTFLOW_SCHEDULE_DATABASE_CONNECTIONS": "4"})


async def test_the_sandbox_is_killed_and_started_like_a_service(stack: Stack) -> None:
    await stack.sandbox.faults({"fault": "slow", "seconds": 1})
    await stack.kill("sandbox", respawn=False)
    assert not stack.running("sandbox")
    await stack.start("sandbox")
    await stack.sandbox.clear_faults()
    assert stack.sandbox.ledger() == []


async def test_a_service_that_does_not_serve_in_time_is_named(stack: Stack) -> None:
    assert stack.postgres is not None
    os.kill(stack.pid("schedule"), signal.SIGSTOP)
    try:
        with pytest.raises(StackError, match=r"not SERVING within 0\.3 s: schedule"):
            await stack.wait_serving("schedule", within=0.3)
    finally:
        os.kill(stack.pid("schedule"), signal.SIGCONT)
    await stack.wait_serving("schedule")


async def test_the_folder_of_a_running_stack_is_refused_to_another(stack: Stack) -> None:
    same_port = {"POSTFLOW_SCHEDULE_LISTEN": stack.targets["schedule"]}
    for environment in ({}, same_port):
        with pytest.raises(FolderInUse, match=f"in use by process {os.getpid()}"):
            await Stack(stack.state.path, services=ONE, environment=environment).__aenter__()
    await stack.wait_serving("schedule")


async def test_the_port_of_a_running_stack_is_refused_to_another(stack: Stack, tmp_path: Path) -> None:
    taken = {"POSTFLOW_SCHEDULE_LISTEN": stack.targets["schedule"]}
    with pytest.raises(PortInUse, match=r"schedule, gRPC.*POSTFLOW_SCHEDULE_LISTEN=HOST:PORT"):
        await Stack(tmp_path / "state", services=ONE, environment=taken).__aenter__()
    assert not (tmp_path / "state").exists()


async def test_the_same_folder_again_is_the_same_data_and_a_reset_forgets_it(tmp_path: Path) -> None:
    async with Stack(tmp_path / "state", services=ONE) as first:
        await _execute(first.database_urls["schedule"], "create table kept (id int)")
        key = (tmp_path / "state" / "credentials.keys").read_text()
    async with Stack(tmp_path / "state", services=ONE) as second:
        await _execute(second.database_urls["schedule"], "select * from kept")
        assert (tmp_path / "state" / "credentials.keys").read_text() == key
    async with Stack(tmp_path / "state", services=ONE, reset=True) as third:
        with pytest.raises(asyncpg.UndefinedTableError):
            await _execute(third.database_urls["schedule"], "select * from kept")
        assert (tmp_path / "state" / "credentials.keys").read_text() != key


async def test_a_folder_without_our_marker_is_not_reset(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(StackError, match="not a PostFlow state folder"):
        await Stack(tmp_path, services=ONE, reset=True).__aenter__()
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.txt"]


async def test_servers_named_by_the_environment_are_used_and_left_running(
    postgres: EmbeddedPostgres, nats_server: EmbeddedNats, tmp_path: Path
) -> None:
    url = (await postgres.provide(["external"]))["external"]
    given = {"POSTFLOW_SCHEDULE_DATABASE_URL": url, "POSTFLOW_NATS_URL": nats_server.url}
    async with Stack(tmp_path / "state", services=ONE, environment=given) as stack:
        assert (stack.postgres, stack.nats) == (None, None)
        assert (stack.database_urls["schedule"], stack.nats_url) == (url, nats_server.url)
        assert not (tmp_path / "state" / "postgres").exists()
    assert postgres.running
    assert nats_server.running
    await _execute(url, "select * from alembic_version")


async def test_servers_that_end_by_themselves_are_started_again_when_asked_for(tmp_path: Path) -> None:
    events: list[tuple[str, str]] = []
    async with Stack(
        tmp_path / "state",
        services=ONE,
        respawn_servers=True,
        on_event=lambda name, text: events.append((name, text)),
    ) as stack:
        assert stack.postgres is not None
        assert stack.nats is not None
        pids = (stack.postgres.pid, stack.nats.pid)
        os.kill(stack.nats.pid, signal.SIGKILL)
        os.kill(stack.postgres.pid, signal.SIGKILL)
        await eventually(lambda: _pids(stack) != pids and all(_running(stack)), within=20)
        await stack.wait_serving("schedule")
    assert {name for name, _ in events} >= {"postgres", "nats"}


@pytest.mark.parametrize("name", ["postgres", "nats"])
async def test_a_stack_that_ends_while_a_server_is_started_again_waits_for_it(tmp_path: Path, name: str) -> None:
    async with asyncio.TaskGroup() as group, Stack(tmp_path / "state", services=ONE, respawn_servers=True) as stack:
        assert stack.postgres is not None
        assert stack.nats is not None
        server: EmbeddedPostgres | EmbeddedNats = stack.postgres if name == "postgres" else stack.nats
        turn_before = stack.nats.pid if name == "postgres" else stack.pid("sandbox")
        await _killed_and_begun_again(server)
        os.kill(server.pid, signal.SIGSTOP)
        group.create_task(_continue(server.pid, once_gone=turn_before))
    assert working_in(tmp_path / "state") == []


async def test_ending_everything_during_a_restart_reports_no_failure(
    tmp_path: Path,
) -> None:
    async with Stack(tmp_path / "state", services=ONE, respawn_servers=True) as stack:
        assert stack.postgres is not None
        await _killed_and_begun_again(stack.postgres)
        stack.kill_everything()
    assert working_in(tmp_path / "state") == []


async def _killed_and_begun_again(server: EmbeddedPostgres | EmbeddedNats) -> None:
    pid = server.pid
    os.kill(pid, signal.SIGKILL)
    await eventually(lambda: server.pid != pid, within=20)


async def _continue(pid: int, *, once_gone: int) -> None:
    await eventually(lambda: _gone(once_gone), within=60)
    os.kill(pid, signal.SIGCONT)


async def test_nothing_runs_after_the_end(tmp_path: Path) -> None:
    async with Stack(tmp_path / "state", services=ONE) as stack:
        assert stack.nats is not None
        pids = [*_pids(stack), stack.pid("schedule"), stack.pid("sandbox")]
    assert all(_gone(pid) for pid in pids)


async def test_a_start_that_fails_leaves_nothing_running(tmp_path: Path) -> None:
    wrong = {"POSTFLOW_SCHEDULE_DATABASE_CONNECTIONS": "many"}
    with pytest.raises(StackError, match="POSTFLOW_SCHEDULE_DATABASE_CONNECTIONS"):
        await Stack(tmp_path / "state", services=ONE, environment=wrong).__aenter__()
    assert working_in(tmp_path / "state") == []
    async with Stack(tmp_path / "state", services=ONE):
        pass


async def test_nothing_outlives_a_killed_stack_and_the_next_one_takes_over(tmp_path: Path) -> None:
    with subprocess.Popen(  # noqa: ASYNC220 - its output is one line
        [sys.executable, "-c", STARTS_A_STACK, str(tmp_path / "state")], stdout=subprocess.PIPE
    ) as supervisor:
        assert supervisor.stdout is not None
        pids = json.loads(supervisor.stdout.readline())
        supervisor.kill()
    async with Stack(tmp_path / "state", services=ONE):
        assert all(_gone(pid) for pid in pids)


def _pids(stack: Stack) -> tuple[int, ...]:
    return tuple(server.pid for server in (stack.postgres, stack.nats) if server is not None)


def _running(stack: Stack) -> tuple[bool, ...]:
    return tuple(server.running for server in (stack.postgres, stack.nats) if server is not None)


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
