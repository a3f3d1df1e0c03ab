"""What a worker has in hand."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from jobkit.edge import result_of
from jobkit.job import Job, Lock

T = TypeVar("T")


class Interrupted(Exception):
    """The run was cancelled: its locks are lost, or the time to stop has come."""


class Hand:
    """Jobs that one worker has locked together, and neither settled nor lost."""

    def __init__(self, jobs: Sequence[Job], lock_end: float) -> None:
        self._jobs = {job.lock: job for job in jobs}
        self.lock_end = lock_end
        """On the monotonic clock, and never later than the store's."""
        self._running: frozenset[Lock] = frozenset()
        self._scope: asyncio.Timeout | None = None

    @property
    def jobs(self) -> list[Job]:
        return list(self._jobs.values())

    def still(self, jobs: Iterable[Job]) -> list[Job]:
        return [job for job in jobs if job.lock in self._jobs]

    def put_down(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            self._jobs.pop(job.lock, None)

    def lose(self, jobs: Iterable[Job]) -> None:
        """A run goes on as long as it holds one lock."""
        self.put_down(jobs)
        if self._running.isdisjoint(self._jobs):
            self.interrupt()

    def interrupt(self) -> None:
        """Once: a run that takes its time to end is not cancelled a second time."""
        if self._scope is not None and not self._scope.expired():
            self._scope.reschedule(asyncio.get_running_loop().time())

    async def run(self, work: Callable[[], Awaitable[T]], jobs: Sequence[Job]) -> T | Exception:
        """The result; or Interrupted. Without a task of its own: most runs end soon."""
        self._running = frozenset(job.lock for job in jobs)
        try:
            async with asyncio.timeout(None) as self._scope:
                return await result_of(work)
        except TimeoutError as error:
            return Interrupted(error)
        finally:
            self._scope = None
