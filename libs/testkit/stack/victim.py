"""The publisher that is broken: its failpoints stand in a file, so that it can be armed again while it runs."""

import asyncio
import os
import signal
from collections.abc import Iterable, Mapping
from pathlib import Path

import grpc

from devstack.errors import StackError
from devstack.stack import Stack
from servicekit.rpc import open_channel
from servicekit.run.loops import wait
from testkit.stack.orders import Caller
from testkit.stack.scene import VICTIM

_FAILPOINTS = "POSTFLOW_PUBLISHER_FAILPOINTS"
_PATIENCE = 10.0
_ARMED = "failpoints are armed again"


class Hits:
    """Sees in the victim's log which failpoints it has passed."""

    def __init__(self, places: Iterable[str]) -> None:
        self.at = {place: asyncio.Event() for place in places}
        self.armed_again = asyncio.Event()

    def note(self, name: str, line: str) -> None:
        if name != VICTIM or "failpoint" not in line:
            return
        if _ARMED in line:
            self.armed_again.set()
        for place, hit in self.at.items():
            if f"failpoint {place}: " in line:
                hit.set()


class Victim:
    def __init__(self, stack: Stack, hits: Hits, folder: Path) -> None:
        self._stack = stack
        self._hits = hits
        self._file = folder / "failpoints"
        self._settings: Mapping[str, str] = {}
        self._channel: grpc.aio.Channel | None = None

    @property
    def caller(self) -> Caller:
        """Returns a client that has met no other process there: after a failure, one waits before it connects again."""
        if self._channel is None:
            self._channel = open_channel(self._stack.address(VICTIM))
        return Caller(self._channel)

    async def arm(self, specification: str, settings: Mapping[str, str], *, fresh: bool) -> None:
        """Arms the failpoints of the specification and disarms all others, in a process just started if `fresh`."""
        self._file.write_text(specification)
        if fresh or settings != self._settings or not self._stack.running(VICTIM):
            await self._restart(specification, settings)
            return
        self._hits.armed_again.clear()
        os.kill(self._stack.pid(VICTIM), signal.SIGUSR1)
        await wait(self._hits.armed_again, _PATIENCE)
        if not self._hits.armed_again.is_set():
            raise AssertionError("the victim cannot be armed again")

    async def close(self) -> None:
        if self._channel is not None:
            await self._channel.close()
            self._channel = None

    async def _restart(self, specification: str, settings: Mapping[str, str]) -> None:
        if self._stack.running(VICTIM):
            await self._stack.stop(VICTIM)
        await self.close()
        self._settings = settings
        try:
            await self._stack.start(VICTIM, {_FAILPOINTS: f"@{self._file}", **settings})
        except StackError:
            # Its loops have passed the failpoint before it was serving.
            if not specification:
                raise
