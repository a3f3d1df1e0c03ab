"""Keeps one process running: starts it, restarts it after growing delays when it ends by itself, stops it."""

import asyncio
import signal
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from devstack.errors import StackError
from devstack.processes.child import KEPT_LINES, Child

FIRST_DELAY = 0.25
LONGEST_DELAY = 10.0
STEADY_SECONDS = 10.0
"""A process that has run for so long is restarted after the first delay again."""
MISCONFIGURED = 2
"""Exit code of a process whose settings are wrong: a restart would not help."""


class Keeper:
    """Starts, restarts and stops the process. `run` belongs in a TaskGroup and returns after `close`."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        respawn: bool,
        first_delay: float = FIRST_DELAY,
        on_line: Callable[[str], None],
        on_event: Callable[[str], None],
    ) -> None:
        self.name = name
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)
        self.starts = 0
        self._command = command
        self._environment = dict(environment)
        self._respawn = respawn
        self._revives = respawn
        self._on_line = on_line
        self._on_event = on_event
        self._wanted = asyncio.Event()
        self._hurry = asyncio.Event()
        self._closed = asyncio.Event()
        self._ended_by_us = False
        self._child: Child | None = None
        self._first_delay = self._delay = first_delay

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.running

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    @property
    def given_up(self) -> bool:
        """True once the process has ended by itself and will not be restarted."""
        return self.starts > 0 and not self.running and not self._wanted.is_set()

    def failure(self) -> StackError:
        assert self._child is not None
        return self._child.failure("ended")

    def start(self, environment: Mapping[str, str] | None = None) -> None:
        """Starts the process; `environment` adds to its variables, for later starts as well."""
        self._environment.update(environment or {})
        self._delay = self._first_delay
        # `run` may not have noticed the end of the previous process yet: that end must not undo this start.
        self._ended_by_us = self._ended_by_us or not self.running
        self._wanted.set()
        self._hurry.set()

    async def stop(self, within: float) -> None:
        """Sends SIGTERM, then SIGKILL to a process that needs longer. The process stays down."""
        self._keep_down()
        if self._child is not None:
            await self._child.stop((signal.SIGTERM, within))

    async def kill(self, *, respawn: bool | None = None) -> None:
        """Sends SIGKILL and returns when the process is gone. `respawn` overrules whether it is restarted."""
        self._revives = self._respawn if respawn is None else respawn
        if not self._revives:
            self._keep_down()
        if self._child is not None:
            await self._child.stop()

    def kill_now(self) -> None:
        self._keep_down()
        if self._child is not None:
            self._child.send(signal.SIGKILL)

    async def close(self, within: float) -> None:
        await self.stop(within)
        self._closed.set()
        self._wanted.set()
        self._hurry.set()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._wanted.wait()
            if self._closed.is_set():
                return
            began = loop.time()
            code = await self._live()
            ended_by_us, self._ended_by_us = self._ended_by_us, False
            if ended_by_us or not self._wanted.is_set():
                continue
            revives, self._revives = self._revives, self._respawn
            if not revives or code == MISCONFIGURED:
                self._on_event(f"ended with exit code {code}")
                self._wanted.clear()
                continue
            if loop.time() - began > STEADY_SECONDS:
                self._delay = self._first_delay
            self._on_event(f"ended with exit code {code}; starts again in {self._delay:g} s")
            await self._pause()

    async def _live(self) -> int:
        self.starts += 1
        self._child = await Child.start(
            self._command, name=self.name, environment=self._environment, on_line=self._take
        )
        self._ended_by_us = not self._wanted.is_set()  # Stopped while it was being started.
        if self._ended_by_us:
            self._child.send(signal.SIGTERM)
        return await self._child.wait()

    async def _pause(self) -> None:
        delay, self._delay = self._delay, min(self._delay * 2, LONGEST_DELAY)
        self._hurry.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(delay):
                await self._hurry.wait()

    def _keep_down(self) -> None:
        self._wanted.clear()
        # A start that follows at once must not make this end look like a failure.
        self._ended_by_us = self.running

    def _take(self, line: str) -> None:
        self.lines.append(line)
        self._on_line(line)
