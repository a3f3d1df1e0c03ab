"""`make run` and `make demo` as a person uses them, and the commands that visit what runs."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from devstack.layout import SERVICES, inherited
from devstack.processes.child import Child
from devstack.processes.leftovers import working_in
from devstack.running import find
from devstack.servers.postgres import EmbeddedPostgres
from testkit.eventually import eventually
from testkit.ports import ANY_PORTS

START_SECONDS = 120
STOP_SECONDS = 60


@asynccontextmanager
async def _up(state: Path, *options: str, environment: Mapping[str, str] = ANY_PORTS) -> AsyncIterator[Child]:
    child = await _devstack("up", "--state-dir", str(state), *options, environment=environment)
    try:
        assert await child.says("Ctrl-C stops it", START_SECONDS), list(child.lines)
        assert await child.says("DraftsService/GetDraft", 10)
        yield child
    finally:
        await child.stop((signal.SIGINT, STOP_SECONDS))


async def _devstack(*arguments: str, environment: Mapping[str, str] = ANY_PORTS) -> Child:
    command = [sys.executable, "-m", "devstack", *arguments]
    return await Child.start(command, name="devstack", environment=inherited() | dict(environment))


def _shell(script: str) -> str:
    return subprocess.run(["/bin/sh", "-ec", script], capture_output=True, text=True, check=True, timeout=60).stdout


def _first_post(child: Child) -> str:
    lines = list(child.lines)
    first = next(index for index, line in enumerate(lines) if line.startswith("draft="))
    last = next(index for index, line in enumerate(lines) if line.endswith("DraftsService/GetDraft"))
    return "\n".join(lines[first : last + 1])


async def test_the_pasted_first_post_works_and_survives_a_restart(tmp_path: Path) -> None:
    async with _up(tmp_path / "state") as first:
        answers = _shell(_first_post(first))
        draft_id = json.loads(answers[answers.rindex("\n{\n") :])["draft"]["id"]
        call = _first_post(first).splitlines()[-1].replace("$draft", draft_id)
        # On a busy machine the eleven seconds of the paste are a moment too few.
        draft = await eventually(lambda: _published(call))
        assert await first.says(f"post published: {draft_id} on acme-page/facebook, ", 10), list(first.lines)
        assert await first.stop((signal.SIGINT, STOP_SECONDS)) == 0
    assert working_in(tmp_path / "state") == []
    async with _up(tmp_path / "state") as second:
        call = _first_post(second).splitlines()[-1].replace("$draft", draft_id)
        assert json.loads(_shell(call))["draft"] == draft
        listed = _shell(re.sub(r"-d .*", "", call) + f" {call.split()[-2]} list")
        assert "postflow.drafts.v1.DraftsService" in listed.split()


def _published(call: str) -> dict[str, object]:
    draft: dict[str, object] = json.loads(_shell(call))["draft"]
    assert draft["state"] == "DRAFT_STATE_PUBLISHED", draft
    return draft


async def test_a_second_start_on_the_same_folder_names_the_first(tmp_path: Path) -> None:
    async with _up(tmp_path / "state") as first:
        second = await _devstack("up", "--state-dir", str(tmp_path / "state"))
        assert await second.wait(START_SECONDS) == 1
        said, *served, advice = second.lines
        assert said == f"devstack: the stack of {tmp_path / 'state'} runs already, as process {first.pid}:"
        assert [line.split()[0] for line in served] == list(SERVICES)
        assert all(any(line.split()[1] in shown for shown in first.lines) for line in served)
        assert f"`kill {first.pid}`" in advice


async def test_a_service_that_is_left_out_can_be_run_by_hand(tmp_path: Path) -> None:
    state = tmp_path / "state"
    async with _up(state, "--without", "queue") as stack:
        assert await stack.says("devstack env", 10), list(stack.lines)
        assert [line.split()[0] for line in stack.lines if line.endswith(", left to you")] == ["queue"]
        (command,) = [line.strip() for line in stack.lines if "devstack env" in line]
        # Without its parentheses the shell becomes the service, which then hears the signal at the end.
        by_hand = command.replace("-m pdb ", "").removeprefix("(").removesuffix(")")
        queue = await Child.start(["/bin/sh", "-c", by_hand], name="queue", environment=inherited())
        try:
            assert await queue.says('"serving"', START_SECONDS), list(queue.lines)
            _shell(_first_post(stack))
            await _visits(state)
            await _asks_the_service(state)
        finally:
            await queue.stop((signal.SIGTERM, STOP_SECONDS))


async def _visits(state: Path) -> None:
    rows = await _visit("psql", "--state-dir", str(state), "queue", "--", "-Atc", "select draft_id from slot")
    assert rows[0].startswith("hello-")
    shown = await _visit("streams", "--state-dir", str(state), "--peek", "50")
    assert any(re.search(rf"SlotScheduled organization_id=acme .*draft_id={rows[0]}", line) for line in shown)
    consumers = {line.split()[0] for line in shown if line.startswith("  ") and line.split()[0].endswith("-events")}
    assert consumers == {f"{service}-events" for service in SERVICES}
    assert "Hello from PostFlow" not in "\n".join(shown), "the text of a post is not shown"


async def _asks_the_service(state: Path) -> None:
    postflow = Path(sys.executable).with_name("postflow")
    child = await Child.start([str(postflow), "stats", find(state).targets["queue"]], name="postflow")
    assert await child.wait(START_SECONDS) == 0, list(child.lines)
    assert child.lines[0].startswith("queue 0.")
    assert any(line.startswith("consumer queue-events: RUNNING, 0 open dead letters") for line in child.lines)


async def _visit(*arguments: str) -> list[str]:
    child = await _devstack(*arguments, environment={})
    assert await child.wait(START_SECONDS) == 0, list(child.lines)
    return list(child.lines)


async def _refused(state: Path, **environment: str) -> str:
    """Returns the line by which it ends, which no traceback precedes."""
    child = await _devstack("up", "--state-dir", str(state), environment=ANY_PORTS | environment)
    try:
        async with asyncio.timeout(START_SECONDS):
            assert await child.wait() == 2
    finally:
        await child.stop((signal.SIGINT, STOP_SECONDS))
    said = "\n".join(child.lines)
    assert "Traceback" not in said
    assert "geheim" not in said
    (line,) = [line for line in child.lines if line.startswith("devstack: ")]
    return line


async def test_a_database_that_refuses_us_is_named_in_a_line(tmp_path: Path, postgres: EmbeddedPostgres) -> None:
    url = f"postgresql://postgres:geheim@127.0.0.1:{postgres.port}/queue"
    line = await _refused(tmp_path / "state", POSTFLOW_QUEUE_DATABASE_URL=url)
    shown = f"postgresql://postgres@127.0.0.1:{postgres.port}/queue"
    assert line == f"devstack: POSTFLOW_QUEUE_DATABASE_URL: {shown}: the server refuses this user and password"


async def test_an_unreachable_database_server_is_named_in_a_line(tmp_path: Path, free_port: Callable[[], int]) -> None:
    address = f"127.0.0.1:{free_port()}/queue"
    line = await _refused(tmp_path / "state", POSTFLOW_QUEUE_DATABASE_URL=f"postgresql://u:geheim@{address}")
    assert line.startswith(f"devstack: POSTFLOW_QUEUE_DATABASE_URL: postgresql://u@{address}: ")


async def test_the_second_signal_ends_everything_at_once(tmp_path: Path) -> None:
    async with _up(tmp_path / "state") as child:
        (publisher,) = _children(child.pid, "postflow-publisher")
        os.kill(publisher, signal.SIGSTOP)
        child.send(signal.SIGINT)
        assert await child.says("once more", 10)
        child.send(signal.SIGINT)
        assert await child.wait(STOP_SECONDS) == 130
    assert working_in(tmp_path / "state") == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_while_it_starts_stops_it_in_order(tmp_path: Path, number: signal.Signals) -> None:
    child = await _devstack("up", "--state-dir", str(tmp_path / "state"))
    assert await child.says("PostFlow starts", START_SECONDS)
    child.send(number)
    assert await child.wait(STOP_SECONDS) == 0, list(child.lines)
    assert working_in(tmp_path / "state") == []


async def test_the_demo_follows_its_post_to_the_end() -> None:
    child = await _devstack("demo", "--ahead", "2", environment={})
    assert await child.wait(START_SECONDS) == 0, list(child.lines)
    assert child.lines[-1].startswith("PUBLISHED: ")
    assert any(re.fullmatch(r" +\+[\d,.]+ ms  draft +PUBLISHED", line) for line in child.lines)


async def test_a_demo_whose_post_does_not_end_in_time_fails() -> None:
    child = await _devstack("demo", "--ahead", "60", "--timeout", "-59", environment={})
    assert await child.wait(START_SECONDS) == 1
    assert any(line.startswith("FAILED: the draft is not PUBLISHED in time") for line in child.lines)


def _children(parent: int, name: str) -> list[int]:
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with suppress(OSError):
                is_child = (process / "stat").read_text().rpartition(")")[2].split()[1] == str(parent)
                if is_child and name in (process / "cmdline").read_text():
                    found.append(int(process.name))
    return found
