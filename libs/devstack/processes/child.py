"""A child process: its output, its end, its orderly stop. It dies with us, also when we are killed."""

import asyncio
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import cast

from devstack.errors import StackError

LAUNCHER = Path(__file__).with_name("launcher.py")
KEPT_LINES = 2_000
LONGEST_LINE = 65_536
DRAIN_SECONDS = 1.0


class Child(asyncio.SubprocessProtocol):
    """Runs a command. Start it from a thread that lives on: Linux ties the child's life to the thread that made it."""

    def __init__(
        self, name: str, on_line: Callable[[str], None] | None, on_exit: Callable[["Child"], None] | None
    ) -> None:
        loop = asyncio.get_running_loop()
        self.name = name
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._on_line = on_line
        self._on_exit = on_exit
        self._partial = b""
        self._exited: asyncio.Future[int] = loop.create_future()
        self._drained: asyncio.Future[None] = loop.create_future()
        self._awaited: tuple[str, asyncio.Future[None]] | None = None
        self._transport: asyncio.SubprocessTransport

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        name: str,
        environment: Mapping[str, str] | None = None,
        uid: int | None = None,
        folder: Path | None = None,
        death_signal: signal.Signals = signal.SIGKILL,
        on_line: Callable[[str], None] | None = None,
        on_exit: Callable[["Child"], None] | None = None,
    ) -> "Child":
        """Starts the command. `folder` replaces `{folder}` in it; `uid` runs it as that user (for root only)."""
        child = cls(name, on_line, on_exit)
        user = "-" if uid is None else str(uid)
        launch = [
            os.path.realpath(sys.executable),
            "-I",
            "-S",
            str(LAUNCHER),
            str(os.getpid()),
            str(int(death_signal)),
            user,
        ]
        await asyncio.get_running_loop().subprocess_exec(
            lambda: child,
            *launch,
            str(folder or "-"),
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        return child

    @property
    def pid(self) -> int:
        pid = self._transport.get_pid()
        assert pid is not None
        return pid

    @property
    def running(self) -> bool:
        return not self._exited.done()

    @property
    def returncode(self) -> int | None:
        return self._exited.result() if self._exited.done() else None

    def send(self, number: signal.Signals) -> None:
        if self.running:
            self._transport.send_signal(number)

    async def wait(self, within: float | None = None) -> int:
        """Returns the exit code once all output is read; TimeoutError if the child outlives `within` seconds."""
        async with asyncio.timeout(within):
            code = await asyncio.shield(self._exited)
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                await asyncio.shield(self._drained)
        except TimeoutError:
            # A grandchild still holds the pipe; nothing of interest comes from it.
            self._transport.close()
        return code

    async def says(self, text: str, within: float) -> bool:
        """Waits for a line with that text. Returns False if the child ended first; TimeoutError if neither happened."""
        if any(text in line for line in self.lines):
            return True
        said = asyncio.get_running_loop().create_future()
        self._awaited = (text, said)
        async with asyncio.timeout(within):
            await asyncio.wait({said, self._exited}, return_when=asyncio.FIRST_COMPLETED)
        if not said.done():
            await self.wait()
        return any(text in line for line in self.lines)

    async def stop(self, *steps: tuple[signal.Signals, float]) -> int:
        """Sends the signals in turn, waits so many seconds after each, and sends SIGKILL in the end."""
        for number, seconds in steps:
            self.send(number)
            try:
                return await self.wait(seconds)
            except TimeoutError:
                continue
        self.send(signal.SIGKILL)
        return await self.wait()

    def failure(self, what: str) -> StackError:
        tail = "\n".join(f"    {line}" for line in list(self.lines)[-15:])
        return StackError(f"{self.name} {what} (exit code {self.returncode}); its last lines:\n{tail or '    (none)'}")

    # callbacks of the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.SubprocessTransport, transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        *lines, self._partial = (self._partial + data).split(b"\n")
        if len(self._partial) > LONGEST_LINE:
            lines.append(self._partial)
            self._partial = b""
        for line in lines:
            self._take(line)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if self._partial:
            self._take(self._partial)
            self._partial = b""

    def process_exited(self) -> None:
        code = self._transport.get_returncode()
        assert code is not None
        self._exited.set_result(code)
        if self._on_exit:
            self._on_exit(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport.close()
        if not self._drained.done():
            self._drained.set_result(None)

    def _take(self, raw: bytes) -> None:
        line = raw.decode(errors="replace").rstrip("\r")
        self.lines.append(line)
        if self._awaited and self._awaited[0] in line and not self._awaited[1].done():
            self._awaited[1].set_result(None)
        if self._on_line:
            self._on_line(line)
