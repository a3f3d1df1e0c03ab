"""Records where the services spend their time, by py-spy: a flame graph of each, and its ten dearest functions."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.flames import dearest
from benchmarks.processes import SERVICES
from devstack.stack import Stack

OUT = Path(__file__).parent / "out"
_RATE = 200
_SHOWN = 10


class Profiler:
    """Records while something is measured. It slows the services, so such a run's figures are no measurement."""

    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted

    @asynccontextmanager
    async def recording(self, stack: Stack, name: str) -> AsyncIterator[None]:
        """Writes `out/flames-<name>-<service>.svg` for each service."""
        if not self._wanted:
            yield
            return
        OUT.mkdir(parents=True, exist_ok=True)
        files = {service: OUT / f"flames-{name}-{service}.svg" for service in SERVICES}
        running = {service: await attached(stack.pid(service), file) for service, file in files.items()}
        try:
            yield
        finally:
            await _end(running)
        for service, file in files.items():
            print(f"\n{name}, {service}: {file}\n{_report(file)}", flush=True)


async def attached(pid: int, file: Path) -> Process:
    """Starts to record a process; ends the run with a reason if that is not permitted."""
    file.unlink(missing_ok=True)
    program = Path(sys.executable).with_name("py-spy")
    # By function, not by line. Samples of the thread that holds the GIL: py-spy takes waiting threads for busy ones
    # on some kernels. A day is longer than any run, which a signal ends.
    options = ("--format", "flamegraph", "--function", "--gil", "--rate", str(_RATE), "--duration", "86400")
    process = await asyncio.create_subprocess_exec(
        *(str(program), "record", "--pid", str(pid), "--output", str(file), *options),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdout is not None
    said = ""
    while line := (await process.stdout.readline()).decode():
        if "Sampling process" in line:
            return process
        said = said or line.strip()
    raise SystemExit(_refusal(said or "it said nothing"))


async def _end(running: Mapping[str, Process]) -> None:
    for process in running.values():
        if process.returncode is None:
            process.send_signal(signal.SIGINT)  # py-spy then writes its file
    for process in running.values():
        await process.communicate()


def _refusal(said: str) -> str:
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    who = "as root" if os.geteuid() == 0 else "not as root"
    text = f"py-spy could not attach ({who}): {said}"
    if scope.exists() and scope.read_text().strip() != "0":
        text += f"\n{scope} is {scope.read_text().strip()}: another process may be traced by root alone; 0 permits it"
    return text


def _report(file: Path) -> str:
    if not file.exists():
        return "  no samples"
    own, inclusive = dearest(file.read_text(), _SHOWN)
    lines = [f"  {'self':>6}  {'':60}  {'inclusive':>9}"]
    for (name, share), (outer, outer_share) in zip(own, inclusive, strict=False):
        lines.append(f"  {share:6.1%}  {name[:60]:60}  {outer_share:9.1%}  {outer[:60]}")
    return "\n".join(lines)
