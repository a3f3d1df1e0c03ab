"""A scheduler: workers on one store, from a start to a stop."""

import asyncio
from contextvars import ContextVar
from typing import Self

from jobkit.config import Config
from jobkit.shift import Shift

__all__ = ["Config", "Scheduler"]

_working: "ContextVar[Scheduler | None]" = ContextVar("jobkit scheduler", default=None)
"""The scheduler that has called this code: its handlers, its hooks, and what they have started."""


class Scheduler:
    """`run(stop)` where something else decides when it ends; else `start` and `stop`, or `async with`."""

    def __init__(self, config: Config) -> None:
        self.name = config.name
        self._config = config
        self._wake = asyncio.Event()
        self._shift: Shift | None = None
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        return self._shift is not None

    @property
    def is_processing(self) -> bool:
        """Whether jobs are in hand."""
        return self._shift is not None and self._shift.is_processing

    @property
    def is_idle(self) -> bool:
        """Whether it has looked, and there is nothing to do."""
        return self._shift is not None and self._shift.is_idle

    def wake(self) -> None:
        """There may be something to do: an idle scheduler looks at once."""
        self._wake.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set; then what is in hand is finished, or given back after the grace.

        An error of `on_start` is raised, and nothing was begun.
        """
        await self._work(await self._open(asyncio.Event()), stop)

    async def start(self) -> None:
        """Returns when `on_start` is done; the work goes on in the background."""
        stop = asyncio.Event()
        shift = await self._open(stop)
        # No group could own it: it is `stop` that waits for it, and raises what it raised.
        self._task = asyncio.get_running_loop().create_task(self._work(shift, stop), name=self.name)

    async def stop(self) -> None:
        """As at the end of `run`; returns when `on_stop` is done. Without a start nothing happens.

        A handler or a hook may call it, and gets an answer at once: it would wait for itself.
        """
        self._stop.set()
        task = self._task
        if task is None or _working.get() is self:
            return
        try:
            await task
        finally:
            if self._task is task:
                self._task = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    async def _open(self, stop: asyncio.Event) -> Shift:
        if self._shift is not None:
            raise RuntimeError(f"{self.name} runs already")
        self._stop = stop
        # An event belongs to the loop that it has been waited on.
        self._wake = asyncio.Event()
        shift = self._shift = Shift(self._config, self._wake)
        try:
            if self._config.on_start is not None:
                await self._config.on_start()
        except BaseException:
            self._shift = None
            raise
        return shift

    async def _work(self, shift: Shift, stop: asyncio.Event) -> None:
        outside = _working.set(self)
        try:
            try:
                await shift.work(stop)
            finally:
                self._shift = None
            await shift.hook("on_stop", self._config.on_stop)
        finally:
            _working.reset(outside)
