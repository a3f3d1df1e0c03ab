import asyncio
import os
import sys

import pytest

from benchmarks.usage import cpu_seconds, memory_mb

NOBODY = 2**22 + 1  # more than the largest process id of Linux
WORK = "sum(n * n for n in range(2_000_000)); print('done', flush=True); input()"


def ticks(pid: int) -> int:
    """Returns what the kernel counts: the differences of seconds are not exact."""
    return round(cpu_seconds(pid) * os.sysconf("SC_CLK_TCK"))


async def test_the_time_of_a_child_counts_also_after_its_end() -> None:
    before = ticks(os.getpid())
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", WORK), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert child.stdout is not None
    await child.stdout.readline()
    used = ticks(child.pid)
    assert ticks(os.getpid()) - before >= used > 0
    await child.communicate(b"\n")
    assert ticks(os.getpid()) - before >= used


def test_a_process_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        cpu_seconds(NOBODY)


def test_memory_is_in_megabytes() -> None:
    assert 1 < memory_mb(os.getpid()) < 100_000
