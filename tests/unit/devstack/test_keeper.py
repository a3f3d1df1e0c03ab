import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from devstack.processes.keeper import FIRST_DELAY, Keeper
from testkit.eventually import eventually

AN_HOUR = 3600.0
LIVES = "import time; print('alive', flush=True); time.sleep(60)"
DRAINS = """
import os, signal, time
signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b'drained\\n'), os._exit(0)))
os.write(1, b'alive\\n'); time.sleep(60)
"""


@dataclass
class Heard:
    lines: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)


@asynccontextmanager
async def _keeping(
    code: str, *, respawn: bool = True, first_delay: float = FIRST_DELAY, environment: dict[str, str] | None = None
) -> AsyncIterator[tuple[Keeper, Heard]]:
    heard = Heard()
    keeper = Keeper(
        "kept",
        [sys.executable, "-S", "-c", code],
        environment or {},
        respawn=respawn,
        first_delay=first_delay,
        on_line=heard.lines.append,
        on_event=heard.events.append,
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(keeper.run())
        try:
            yield keeper, heard
        finally:
            await keeper.close(1)


async def test_nothing_runs_before_it_is_started() -> None:
    async with _keeping(LIVES) as (keeper, _):
        assert (keeper.running, keeper.starts, keeper.given_up) == (False, 0, False)


async def test_a_killed_process_is_started_again_and_that_is_reported() -> None:
    async with _keeping(LIVES) as (keeper, heard):
        keeper.start()
        await eventually(lambda: heard.lines == ["alive"])
        await keeper.kill()
        await eventually(lambda: heard.lines == ["alive", "alive"])
        assert keeper.starts == 2
        assert heard.events == [f"ended with exit code -9; starts again in {FIRST_DELAY} s"]


async def test_a_process_killed_for_good_stays_down_until_it_is_started() -> None:
    async with _keeping(LIVES) as (keeper, heard):
        keeper.start()
        await eventually(lambda: heard.lines == ["alive"])
        await keeper.kill(respawn=False)
        assert (keeper.running, keeper.starts) == (False, 1)
        keeper.start()
        await eventually(lambda: heard.lines == ["alive", "alive"])
        assert heard.events == []


async def test_a_stopped_process_drains_and_stays_down() -> None:
    async with _keeping(DRAINS) as (keeper, heard):
        keeper.start()
        await eventually(lambda: heard.lines == ["alive"])
        await keeper.stop(10)
        assert not keeper.running
        assert heard.lines == ["alive", "drained"]
        assert heard.events == []


async def test_a_process_that_ignores_the_signal_is_killed_when_its_time_is_over() -> None:
    code = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + LIVES
    async with _keeping(code) as (keeper, heard):
        keeper.start()
        await eventually(lambda: heard.lines == ["alive"])
        await keeper.stop(0.1)
        assert not keeper.running


async def test_the_delay_grows_with_every_failure() -> None:
    async with _keeping("raise SystemExit(1)") as (keeper, heard):
        keeper.start()
        await eventually(lambda: len(heard.events) == 3)
        assert heard.events == [f"ended with exit code 1; starts again in {delay} s" for delay in ("0.25", "0.5", "1")]


async def test_a_process_with_wrong_settings_is_not_started_again() -> None:
    async with _keeping("print('X is not set'); raise SystemExit(2)") as (keeper, heard):
        keeper.start()
        await eventually(lambda: keeper.given_up)
        assert heard.events == ["ended with exit code 2"]
        assert "X is not set" in str(keeper.failure())


async def test_without_respawn_a_process_that_ends_stays_down() -> None:
    async with _keeping("raise SystemExit(1)", respawn=False) as (keeper, heard):
        keeper.start()
        await eventually(lambda: keeper.given_up)
        assert (keeper.starts, heard.events) == (1, ["ended with exit code 1"])


async def test_a_kill_may_ask_for_a_restart_although_respawn_is_off() -> None:
    async with _keeping(LIVES, respawn=False) as (keeper, heard):
        keeper.start()
        await eventually(lambda: heard.lines == ["alive"])
        await keeper.kill(respawn=True)
        await eventually(lambda: heard.lines == ["alive", "alive"])
        await keeper.kill()
        await eventually(lambda: keeper.given_up)


async def test_a_changed_environment_applies_from_the_next_start() -> None:
    code = "import os; print(os.environ['WORD'], flush=True)\n" + LIVES
    async with _keeping(code, environment={"WORD": "one"}) as (keeper, heard):
        keeper.start()
        await eventually(lambda: "alive" in heard.lines)
        await keeper.stop(10)
        keeper.start({"WORD": "two"})
        await eventually(lambda: heard.lines == ["one", "alive", "two", "alive"])


async def test_closing_ends_the_wait_for_the_next_start() -> None:
    async with _keeping("raise SystemExit(1)", first_delay=AN_HOUR) as (keeper, heard):
        keeper.start()
        await eventually(lambda: len(heard.events) == 1)
    assert keeper.starts == 1


async def test_a_start_does_not_wait_for_the_delay_to_end() -> None:
    async with _keeping("raise SystemExit(1)", first_delay=AN_HOUR) as (keeper, heard):
        keeper.start()
        await eventually(lambda: len(heard.events) == 1)
        keeper.start()
        await eventually(lambda: len(heard.events) == 2)
        assert set(heard.events) == {f"ended with exit code 1; starts again in {AN_HOUR:g} s"}


async def test_stopping_and_starting_at_once_is_no_failure() -> None:
    async with _keeping(DRAINS) as (keeper, heard):
        keeper.start()
        for _ in range(3):
            await eventually(lambda: heard.lines == ["alive"])
            await keeper.stop(10)
            heard.lines.clear()
            keeper.start()
        assert heard.events == []


async def test_a_start_after_an_unnoticed_end_is_carried_out() -> None:
    # A grandchild keeps the pipe open for a moment: the process is gone, and its last lines are still waited for.
    code = """
import os, subprocess, sys
print(os.environ['WORD'], flush=True)
subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(5)'])
"""
    for respawn in (False, True):
        async with _keeping(code, respawn=respawn, environment={"WORD": "one"}) as (keeper, heard):
            keeper.start()
            await eventually(lambda: keeper.starts == 1 and heard.lines == ["one"] and not keeper.running)
            keeper.start({"WORD": "two"})
            await eventually(lambda: heard.lines == ["one", "two"])
            await eventually(lambda: not keeper.running)


async def test_killing_without_waiting_ends_it() -> None:
    async with _keeping(LIVES) as (keeper, heard):
        keeper.start()
        await eventually(lambda: heard.lines == ["alive"])
        keeper.kill_now()
        await eventually(lambda: not keeper.running)
        assert keeper.failure().args[0].startswith(f"kept ended (exit code {-signal.SIGKILL})")
