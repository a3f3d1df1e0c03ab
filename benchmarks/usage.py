"""Reads CPU time (in ticks of 10 ms) and memory of processes from /proc."""

import os
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """Returns the CPU time of the process and all its descendants, including those that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own = sum(int(field) for field in fields[11:15]) / _TICK
    return own + sum(_cpu_or_nothing(child) for child in _children(pid))


def memory_mb(pid: int) -> float:
    """Returns the proportional set size, which counts shared memory once, including descendants."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024 + sum(_memory_or_nothing(child) for child in _children(pid))
    raise AssertionError("smaps_rollup without Pss")


def resident_mb(pid: int) -> float:
    """Returns the resident set size of the process alone."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024 / 1024


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _cpu_or_nothing(pid: int) -> float:
    try:
        return cpu_seconds(pid)
    except FileNotFoundError:
        return 0.0


def _memory_or_nothing(pid: int) -> float:
    try:
        return memory_mb(pid)
    except FileNotFoundError:
        return 0.0
