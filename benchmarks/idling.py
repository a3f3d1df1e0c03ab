"""Measures what the stack costs while nothing is due, and how long `make run` takes to serve again."""

import asyncio
import signal
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import sites
from benchmarks.result import Result, percentile
from devstack.layout import SERVICES, inherited
from devstack.processes.child import Child

_PAUSE = 15.0
"""Seconds that a stack has to come to rest."""
_STARTS = 3
_START_LIMIT = 60.0


async def measure(seconds: int) -> list[Result]:
    return [*await _idle(seconds), *await _warm_start()]


async def _idle(seconds: int) -> list[Result]:
    async with sites.running() as site:
        processes = site.processes()
        await asyncio.sleep(_PAUSE)
        before, began = processes.cpu(), time.perf_counter()
        await asyncio.sleep(seconds)
        elapsed = time.perf_counter() - began
        used = {name: spent / elapsed * 100 for name, spent in processes.since(before).items()}
        shared, resident = processes.memory()
    return [
        Result(name="idle CPU, whole stack", value=sum(used.values()), unit="% of a core", target=2),
        Result(name="idle memory, whole stack", value=resident, unit="MB", target=450),
        Result(name="idle memory, shared pages once", value=shared, unit="MB"),
        *(Result(of="idle", name=f"CPU: {name}", value=share, unit="% of a core") for name, share in used.items()),
    ]


async def _warm_start() -> list[Result]:
    """Measures from the command to the line that says that all four services are SERVING."""
    with tempfile.TemporaryDirectory(prefix="postflow-bench-") as folder:
        cold, *warm = [await _started(Path(folder) / "state") for _ in range(1 + _STARTS)]
    return [
        Result(name="make run, warm: SERVING after", value=percentile(warm, 0.5), unit="s", target=2.5),
        Result(name="make run, the first time", value=cold, unit="s"),
    ]


async def _started(state: Path) -> float:
    # Any free port: another stack may run on the well-known ones.
    anywhere = {
        f"POSTFLOW_{name.upper()}_{setting}": "127.0.0.1:0"
        for name in SERVICES
        for setting in ("LISTEN", "METRICS_LISTEN")
    }
    environment = inherited() | anywhere | {"POSTFLOW_SANDBOX_LISTEN": "127.0.0.1:0", "PYTHONTZPATH": ""}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as the Makefile does
    began = time.perf_counter()
    command = [sys.executable, "-m", "devstack", "up", "--state-dir", str(state)]
    child = await Child.start(command, name="make run", environment=environment)
    try:
        if not await child.says("PostFlow serves after", _START_LIMIT):
            raise child.failure("has not served")
        return time.perf_counter() - began
    finally:
        await child.stop((signal.SIGTERM, 60.0))
