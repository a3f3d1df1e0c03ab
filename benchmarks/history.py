"""The figures of earlier commits, a line of JSON for each run: benchmarks/history.jsonl.

A run is added only on request (`--history`), because a figure of a busy machine says nothing about a commit.
"""

import json
import os
import platform
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.result import Result

FILE = Path(__file__).with_name("history.jsonl")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    commit: str
    date: str
    machine: Mapping[str, Any]
    figures: Mapping[str, float]
    ratios: Mapping[str, float]
    """Of the figures that have a baseline."""
    targets: Mapping[str, float]
    """The most that a headline may be: its ratio, or else its figure."""

    def headlines(self) -> dict[str, float]:
        """Returns what is compared with a target."""
        return {name: self.ratios.get(name, self.figures[name]) for name in self.targets}


def append(results: Sequence[Result], date: str, file: Path = FILE) -> None:
    run = {
        "commit": _commit(),
        "date": date,
        "machine": machine(),
        "figures": {_name(each): round(each.value, 3) for each in results if each.value or each.target is not None},
        "ratios": {_name(each): round(each.ratio, 3) for each in results if each.ratio is not None},
        "targets": {_name(each): each.target for each in results if each.target is not None},
    }
    with file.open("a") as lines:
        lines.write(json.dumps(run) + "\n")


def read(file: Path = FILE) -> Iterator[Run]:
    for line in file.read_text().splitlines() if file.exists() else ():
        yield Run(**json.loads(line))


def machine() -> dict[str, Any]:
    """Returns what the figures depend on, and nothing that tells whose machine it is."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": len(os.sched_getaffinity(0)),
        "processor": _processor(),
        "memory_gb": round(memory / 1024**3),
        "kernel": platform.release().partition("-")[0],
        "python": platform.python_version(),
    }


def _name(result: Result) -> str:
    return f"{result.of}: {result.name}" if result.of else result.name


def _commit() -> str:
    """Returns the commit, with a plus if the working tree differs from it."""
    commit = _git("rev-parse", "--short=12", "HEAD")
    # The history itself may have grown.
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", f":!benchmarks/{FILE.name}")
    return commit + ("+" if changed else "")


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=FILE.parent.parent, capture_output=True, text=True, check=True).stdout.strip()


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
