"""Background steps that are repeated until the process stops."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Protocol

from opentelemetry import metrics

from servicekit.run.transient import is_transient
from servicekit.run.zeros import from_zero

_FIRST_BACKOFF = 0.1
_LAST_BACKOFF = 10.0

_log = logging.getLogger(__name__)
_meter = metrics.get_meter(__name__)
_errors = _meter.create_counter("loop.errors", unit="{error}", description="Steps that failed and were retried later.")


class Background(Protocol):
    """A part of a process that works until it is stopped, then finishes its current work and returns."""

    @property
    def name(self) -> str: ...

    async def run(self, stop: asyncio.Event) -> None: ...


class Loop:
    """Runs `step` every `period`, at once if it returns that there is more to do, and early when `wake` is set.

    While a dependency is unreachable the step is retried; any other exception ends the loop, and with it the process.
    """

    def __init__(
        self,
        name: str,
        step: Callable[[], Awaitable[bool | None]],
        period: timedelta,
        wake: asyncio.Event | None = None,
    ) -> None:
        self.name = name
        self._step = step
        self._period = period.total_seconds()
        self._wake = wake or asyncio.Event()
        self._failures = 0
        from_zero(_errors, {"loop": name})

    async def run(self, stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            watcher = group.create_task(self._wake_when(stop))
            while not stop.is_set():
                await self._once(stop)
            watcher.cancel()

    async def _wake_when(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._wake.set()

    async def _once(self, stop: asyncio.Event) -> None:
        self._wake.clear()
        if stop.is_set():
            return
        try:
            more = await self._step()
        except Exception as error:
            if not is_transient(error):
                raise
            await self._back_off(error, stop)
            return
        self._failures = 0
        # Jitter, so that replicas started together do not keep polling together.
        await wait(self._wake, 0 if more else self._period * random.uniform(0.9, 1.1))

    async def _back_off(self, error: Exception, stop: asyncio.Event) -> None:
        delay = backoff(self._failures)
        self._failures += 1
        _errors.add(1, {"loop": self.name})
        _log.warning("%s: %r; retrying in %.1f s", self.name, error, delay)
        await wait(stop, delay)


def backoff(failures: int) -> float:
    """Returns the seconds to wait after so many failures in a row, with jitter."""
    return min(_FIRST_BACKOFF * 2.0 ** min(failures, 30), _LAST_BACKOFF) * random.uniform(0.5, 1.0)


async def wait(event: asyncio.Event, seconds: float) -> None:
    """Waits for the event for at most `seconds`. Always yields to the loop once."""
    await asyncio.sleep(0)
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
