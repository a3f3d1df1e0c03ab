"""The run of a handler over a batch of locked jobs, in a task of its own."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from functools import partial
from typing import TypeAlias

from jobkit.guards import result_of, wait
from jobkit.job import Job, Outcome

Handle: TypeAlias = Callable[[Sequence[Job]], Awaitable[Sequence[Outcome]]]

_MOST_LOST = 16
_TURN = 0.01
"""Seconds after which a handler that never awaits anything lets other tasks run."""


class Interruption(Enum):
    TIMED_OUT = auto()
    LOCK_LOST = auto()
    STOPPED = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The answer or error of the handler for jobs that it was given together."""

    jobs: Sequence[Job]
    result: Sequence[Outcome] | Exception
    begun: datetime
    now: datetime


class Run:
    """Calls the handler for one group of jobs after the other.

    The task may outlive the run: the answer of a handler that ignores its cancellation is discarded.
    """

    def __init__(
        self,
        groups: Iterable[Sequence[Job]],
        handle: Handle,
        *,
        still_locked: Callable[[Iterable[Job]], list[Job]],
        may_begin: Callable[[], bool],
        now: Callable[[], datetime],
        linger: float,
    ) -> None:
        self._groups = deque(groups)
        self._handle = handle
        self._still_locked = still_locked
        self._may_begin = may_begin
        self._now = now
        self._linger = linger
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._ended: list[Ended] = []
        self.current: Sequence[Job] = ()
        """The jobs that the handler is running, or was running when it was cancelled."""
        self.begun = now()
        self.begun_at = self.started_at = self._loop.time()
        """On the event loop's clock, like all names that end in `_at`."""
        self.first_ended_at: float | None = None
        self.interruption: Interruption | None = None
        self.interrupted_at = 0.0
        self.groups_begun = 0
        self.task = self._loop.create_task(self._go())
        self.task.add_done_callback(lambda _: self._wake.set())

    @property
    def is_done(self) -> bool:
        return self.task.done()

    @property
    def has_more(self) -> bool:
        return bool(self._groups)

    async def wait(self, within: float | None) -> None:
        """Returns when the task has ended, after `wake`, or after so many seconds."""
        if within is None:
            await self._wake.wait()
        else:
            await wait(self._wake, within)
        self._wake.clear()

    def wake(self) -> None:
        self._wake.set()

    def drop_waiting(self) -> list[Job]:
        """Removes and returns the jobs that have not begun."""
        waiting = [job for group in self._groups for job in group]
        self._groups.clear()
        return waiting

    def interrupt(self, reason: Interruption) -> None:
        """Cancels the handler, once: a handler that is slow to end is not cancelled a second time."""
        if self.interruption is None and not self.task.done():
            self.interruption = reason
            self.interrupted_at = self._loop.time()
            self.task.cancel()
            self.wake()

    def take_ended(self) -> list[Ended]:
        ended, self._ended, self.first_ended_at = self._ended, [], None
        return ended

    def raise_if_exiting(self) -> None:
        """Raises an error that ends the process, such as SystemExit, which is no failure of a handler."""
        if self.task.done() and not self.task.cancelled() and (error := self.task.exception()) is not None:
            raise error

    async def _go(self) -> None:
        turn = self._loop.time()
        while self._groups and self.interruption is None and self._may_begin():
            jobs = self._still_locked(self._groups.popleft())
            if not jobs:
                continue
            self.groups_begun += 1
            self.current, self.begun, self.begun_at = jobs, self._now(), self._loop.time()
            self._end(await result_of(partial(self._handle, jobs)))
            if self._loop.time() - turn > _TURN:
                await asyncio.sleep(0)
                turn = self._loop.time()

    def _end(self, result: Sequence[Outcome] | Exception) -> None:
        if isinstance(result, Exception) and self.interruption is not None:
            return  # any error of a cancelled handler counts as its cancellation
        self._ended.append(Ended(jobs=self.current, result=result, begun=self.begun, now=self._now()))
        self.current = ()
        if self.first_ended_at is None and self._groups:
            self.first_ended_at = self._loop.time()
            self._loop.call_later(self._linger, self.wake)


class LostRuns:
    """The tasks of cancelled handlers that do not end. Their number is limited, since each holds memory or a thread."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def is_full(self) -> bool:
        return len(self._tasks) >= _MOST_LOST

    def add(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved, since nothing else awaits the task
