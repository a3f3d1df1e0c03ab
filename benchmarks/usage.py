"""Reads CPU time (in ticks of 10 ms) and memory of processes from /proc."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """Returns the CPU time of the process and all its descendants, including those that have ended."""
    stats = _stats()
    if pid not in stats:
        raise FileNotFoundError(f"/proc/{pid}")
    return _ticks(pid, stats) / _TICK


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


def _stats() -> dict[int, tuple[int, int]]:
    """Returns the parent and the ticks of each process.

    The list in /proc/PID/task/PID/children may leave processes out while others end, as autovacuum's workers do.
    """
    found: dict[int, tuple[int, int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                found[int(folder.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    return found


def _ticks(pid: int, stats: Mapping[int, tuple[int, int]]) -> int:
    return stats[pid][1] + sum(_ticks(child, stats) for child, (parent, _) in stats.items() if parent == pid)


def _children(pid: int) -> list[int]:
    return [child for child, (parent, _) in _stats().items() if parent == pid]


def _memory_or_nothing(pid: int) -> float:
    try:
        return memory_mb(pid)
    except FileNotFoundError:
        return 0.0
