"""Servers that an earlier run left behind, in a folder whose lock we now hold.

Their death signal may not have arrived yet, or had no effect.
"""

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

POLL_SECONDS = 0.02


async def end_leftovers(folder: Path, steps: Sequence[tuple[signal.Signals, float]]) -> bool:
    """Signals every process that works in `folder` until none is left; returns whether there were any."""
    found = bool(working_in(folder))
    for number, seconds in (*steps, (signal.SIGKILL, 10.0)):
        for pid in working_in(folder):
            _signal(pid, number)
        if await _emptied(folder, seconds):
            return found
    raise TimeoutError(f"processes {working_in(folder)} in {folder} cannot be ended")


def working_in(folder: Path) -> list[int]:
    """Returns the processes whose working folder is this one or lies below it."""
    target = folder.resolve()
    processes = (entry for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return [int(process.name) for process in processes if _works_in(process, target)]


def _works_in(process: Path, folder: Path) -> bool:
    try:
        return (process / "cwd").readlink().is_relative_to(folder)
    except OSError:
        return False


async def _emptied(folder: Path, seconds: float) -> bool:
    deadline = asyncio.get_running_loop().time() + seconds
    while working_in(folder):
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(POLL_SECONDS)
    return True


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
