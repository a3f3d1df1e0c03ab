"""The life of a process: start, wait for dependencies, serve, drain, close. Every wait is bounded."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol

from servicekit.run.addresses import Misconfigured, Place, misconfiguration
from servicekit.run.loops import Background, backoff
from servicekit.run.settings import SettingsError
from servicekit.run.transient import is_transient

Step = Callable[[], Awaitable[object]]

_SLOW_START = 3.0
_LEAST_GRACE = 1.0
_LOOPS_APART = 0.03  # seconds; a first step takes 10 to 20 ms
_CLOSER_LIMIT = 5.0  # seconds for each closer, and for cancelled parts to end

_log = logging.getLogger(__name__)


class Server(Protocol):
    async def start(self) -> None:
        """Starts to listen, with a health of NOT_SERVING."""
        ...

    async def set_serving(self, *, serving: bool) -> None: ...

    async def stop(self, grace: float) -> None:
        """Refuses new calls and gives those in flight `grace` seconds."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """The parts of a process, wired.

    Starters run in order, each repeated while a dependency is unreachable. Closers run in order, each no matter whether
    the one before failed, and even if their part was never started.
    """

    name: str
    server: Server
    starters: Mapping[str, Step] = field(default_factory=dict)
    consumers: Sequence[Background] = ()
    loops: Sequence[Background] = ()
    closers: Mapping[str, Step] = field(default_factory=dict)
    grace: timedelta = timedelta(seconds=20)

    @property
    def stop_limit(self) -> float:
        """Returns the seconds that a stop may take at most."""
        return self.grace.total_seconds() + _CLOSER_LIMIT * (len(self.closers) + 4)


async def serve(
    process: Process,
    stop: asyncio.Event,
    ready: asyncio.Event | None = None,
    *,
    places: Mapping[str, Place] | None = None,
) -> None:
    """Runs until `stop` is set. A part that fails sets it too; then the others drain, and the failure is raised.

    `places` are the servers that the settings name, by field, for the log lines of a start that waits or fails.
    """
    life = _Life(process, stop, places or {})
    try:
        await _listen(process.server, places or {})
        if await life.start():
            await life.work(ready)
    finally:
        await life.close()
    life.check()


async def _listen(server: Server, places: Mapping[str, Place]) -> None:
    try:
        await server.start()
    except Misconfigured as wrong:
        raise SettingsError(_complaint(wrong, places)) from wrong


class _Life:
    def __init__(self, process: Process, stop: asyncio.Event, places: Mapping[str, Place]) -> None:
        self._process = process
        self._places = places
        self._stop = stop
        self._deadline = 0.0  # of the whole drain, on the clock of the event loop
        self._failures: list[Exception] = []

    async def start(self) -> bool:
        """Runs the starters; returns whether all of them finished before a stop."""
        for name, starter in self._process.starters.items():
            if not await _unless(self._stop, _patiently(name, starter, self._places)):
                return False
        return not self._stop.is_set()

    async def work(self, ready: asyncio.Event | None) -> None:
        stop_consumers, stop_loops = asyncio.Event(), asyncio.Event()
        async with asyncio.TaskGroup() as group:
            consumers = [self._spawn(group, part, stop_consumers) for part in self._process.consumers]
            await self._process.server.set_serving(serving=True)
            _log.info("serving")
            if ready:
                ready.set()
            loops = await self._spawn_loops(group, stop_loops)
            await self._stop.wait()
            _log.info("stopping")
            self._deadline = _now() + self._process.grace.total_seconds()
            await self._process.server.set_serving(serving=False)
            # Consumers first: the loops carry their results on, as the relay does.
            stop_consumers.set()
            await self._finish(consumers)
            stop_loops.set()
            await self._finish(loops)

    async def close(self) -> None:
        # Nothing is in flight if there was no drain, after a start that failed.
        left = self._left()
        await self._bounded("server", self._process.server.stop(left), left + _CLOSER_LIMIT)
        for name, closer in self._process.closers.items():
            await self._bounded(name, closer(), _CLOSER_LIMIT)
        _log.info("stopped")

    def check(self) -> None:
        if self._failures:
            raise self._failures[0]

    async def _spawn_loops(self, group: asyncio.TaskGroup, stop: asyncio.Event) -> list[asyncio.Task[None]]:
        """Starts the loops one after another.

        First steps that run at once need a database connection each, which stays and has 2 to 3 MB in PostgreSQL: the
        four services had 27 after their start, and have 16.
        """
        loops: list[asyncio.Task[None]] = []
        for part in self._process.loops:
            loops.append(self._spawn(group, part, stop))
            await asyncio.sleep(_LOOPS_APART)
        return loops

    def _spawn(self, group: asyncio.TaskGroup, part: Background, stop: asyncio.Event) -> asyncio.Task[None]:
        return group.create_task(self._supervise(part, stop), name=part.name)

    async def _supervise(self, part: Background, stop: asyncio.Event) -> None:
        try:
            await part.run(stop)
        except asyncio.CancelledError:
            # Something that it awaited was cancelled. The task group would take that for a regular end.
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
        except Exception as error:  # noqa: BLE001 - the loop runner: any failure ends the process in order
            self._fail(part.name, error)
            return
        if not stop.is_set():
            self._fail(part.name, RuntimeError(f"{part.name} ended by itself"))

    def _fail(self, name: str, error: Exception) -> None:
        _log.critical("%s failed", name, exc_info=error)
        self._failures.append(error)
        self._stop.set()

    async def _finish(self, tasks: Iterable[asyncio.Task[None]]) -> None:
        running = [task for task in tasks if not task.done()]
        if not running:
            return
        _, late = await asyncio.wait(running, timeout=self._left())
        for task in late:
            _log.error("%s did not finish in time and is cancelled", task.get_name())
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=_CLOSER_LIMIT)

    def _left(self) -> float:
        """Returns the rest of the grace, at least a second: a part that hangs must not cost the others theirs."""
        return max(self._deadline - _now(), _LEAST_GRACE)

    async def _bounded(self, name: str, work: Awaitable[object], limit: float) -> None:
        try:
            async with asyncio.timeout(limit):
                await work
        except Exception as error:  # noqa: BLE001 - as above; the other closers still run
            if is_transient(error):
                _log.warning("closing %s: %r", name, error)
            else:
                self._fail(f"closing {name}", error)


async def _patiently(name: str, starter: Step, places: Mapping[str, Place]) -> None:
    """Repeats the starter until it succeeds. A reason to wait is logged when it changes, not for each attempt."""
    failures, logged = 0, ""
    while True:
        try:
            with _naming_what_it_waits_for(name, places):
                await starter()
        except Exception as error:
            if wrong := misconfiguration(error):
                raise SettingsError(_complaint(wrong, places)) from None
            if not is_transient(error):
                raise
            reason = _first_line(error)
            if reason != logged:
                _log.warning("starting %s: waiting for %s: %s", name, _where(name, places), reason)
            logged = reason
            await asyncio.sleep(backoff(failures))
            failures += 1
        else:
            return


@contextmanager
def _naming_what_it_waits_for(starter: str, places: Mapping[str, Place]) -> Iterator[None]:
    """Logs a slow start, for clients that retry by themselves and name neither the setting nor the part."""

    def log() -> None:
        _log.warning("starting %s: still waiting for %s", starter, _where(starter, places))

    timer = asyncio.get_running_loop().call_later(_SLOW_START, log)
    try:
        yield
    finally:
        timer.cancel()


def _complaint(wrong: Misconfigured, places: Mapping[str, Place]) -> str:
    place = places.get(wrong.setting)
    return f"{place.variable}: {place.address}: {wrong.complaint}" if place else str(wrong)


def _where(starter: str, places: Mapping[str, Place]) -> str:
    """Returns the server that the starter waits for: the database, or NATS for all others."""
    place = places.get("database_url" if starter == "database" else "nats_url")
    return f"{place.address} ({place.variable})" if place else "what it needs"


def _first_line(error: BaseException) -> str:
    """Returns the first line of an error, to which clients add pages of advice."""
    original = getattr(error, "orig", None) or error
    return (str(original) or type(original).__name__).partition("\n")[0]


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Does the work, unless `stop` is set before; returns whether it was done."""
    try:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(work)
            watcher = group.create_task(_cancel_when(stop, task))
            await asyncio.wait((task,))
            watcher.cancel()
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return not task.cancelled()


async def _cancel_when(stop: asyncio.Event, task: asyncio.Task[None]) -> None:
    await stop.wait()
    task.cancel()


def _now() -> float:
    return asyncio.get_running_loop().time()
