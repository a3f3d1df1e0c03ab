"""A scheduler: workers on one store, from a start to a stop."""

import asyncio
import signal
from contextvars import ContextVar
from typing import Self

from jobkit.changes import Enqueued, JobEdit, NewJob, OnConflict
from jobkit.config import Config
from jobkit.job import Job, JobId
from jobkit.run import LostRuns
from jobkit.store import JobTable
from jobkit.worker_pool import WorkerPool

__all__ = ["Config", "Scheduler"]

_working: "ContextVar[Scheduler | None]" = ContextVar("jobkit scheduler", default=None)
"""The scheduler that has called this code: its handlers, its hooks, and what they have started."""


class Scheduler:
    """`run(stop)` where something else decides when it ends; else `start` and `stop`, or `async with`."""

    def __init__(self, config: Config) -> None:
        self.name = config.name
        self._config = config
        self._wake = asyncio.Event()
        self._pool: WorkerPool | None = None
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._lost_runs = LostRuns()

    @property
    def is_running(self) -> bool:
        return self._pool is not None

    @property
    def is_processing(self) -> bool:
        """Whether jobs are in hand."""
        return self._pool is not None and self._pool.is_processing

    @property
    def is_idle(self) -> bool:
        """Whether it has looked, and there is nothing to do."""
        return self._pool is not None and self._pool.is_idle

    def wake(self) -> None:
        """There may be something to do: an idle scheduler looks at once."""
        self._wake.set()

    async def enqueue(self, new: NewJob, *, on_conflict: OnConflict = OnConflict.REFUSE) -> Enqueued:
        """Inserts a job and looks at once; see `JobTable.enqueue`."""
        answer = await self._table.enqueue(new, on_conflict=on_conflict)
        self.wake()
        return answer

    async def edit_job(self, job_id: JobId, edit: JobEdit) -> Job:
        """Changes a job, whether it waits or runs, and looks at once; see `JobTable.edit_job`."""
        job = await self._table.edit_job(job_id, edit)
        self.wake()
        return job

    @property
    def _table(self) -> JobTable:
        if not isinstance(self._config.store, JobTable):
            raise TypeError(f"{self._config.store!r:.100} is no JobTable: it cannot enqueue or edit jobs")
        return self._config.store

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop` is set; then what is in hand is finished, or given back after the grace.

        An error of `on_start` is raised, and nothing was begun. When the call is cancelled, as Ctrl-C does under
        `asyncio.run`, what is in hand is cancelled and given back without a grace before it ends.
        """
        pool = await self._open(asyncio.Event())
        await self._until_over(pool, self._begin(pool, stop))

    async def run_until_signal(self, *signals: signal.Signals) -> None:
        """As `run`, until the process gets one of the signals (SIGINT or SIGTERM, if none is named).

        A second one leaves out the grace. For the main thread, and not for Windows.
        """
        loop, stop = asyncio.get_running_loop(), asyncio.Event()

        def stop_or_hurry() -> None:
            if stop.is_set() and self._pool is not None:
                self._pool.hurry()
            stop.set()

        named = signals or (signal.SIGINT, signal.SIGTERM)
        for number in named:
            loop.add_signal_handler(number, stop_or_hurry)
        try:
            await self.run(stop)
        finally:
            for number in named:
                loop.remove_signal_handler(number)

    async def start(self) -> None:
        """Returns when `on_start` is done; the work goes on in the background."""
        stop = asyncio.Event()
        pool = await self._open(stop)
        self._task = self._begin(pool, stop)

    async def stop(self) -> None:
        """As at the end of `run`; returns when `on_stop` is done. Without a start nothing happens.

        A handler or a hook may call it, and gets an answer at once: it would wait for itself. When the call is
        cancelled, what is in hand is cancelled and given back without a grace.
        """
        self._stop.set()
        task, pool = self._task, self._pool
        if task is None or _working.get() is self:
            return
        try:
            await self._until_over(pool, task)
        finally:
            if self._task is task and task.done():
                self._task = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Stops. When the body was cancelled, as Ctrl-C does, what is in hand is given back without a grace."""
        if self._pool is not None and kind is not None and issubclass(kind, asyncio.CancelledError):
            self._pool.hurry()
        await self.stop()

    async def _until_over(self, pool: WorkerPool | None, task: asyncio.Task[None]) -> None:
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if pool is not None:
                pool.hurry()
            # A second cancellation is let through, and leaves the locks to their ends.
            await asyncio.wait({task})
            raise

    def _begin(self, pool: WorkerPool, stop: asyncio.Event) -> asyncio.Task[None]:
        # No group could own it: it goes on when the call is cancelled, to give back what is in hand.
        return asyncio.get_running_loop().create_task(self._work(pool, stop), name=self.name)

    async def _open(self, stop: asyncio.Event) -> WorkerPool:
        if self._pool is not None:
            raise RuntimeError(f"{self.name} runs already")
        self._stop = stop
        # An event belongs to the loop that it has been waited on.
        self._wake = asyncio.Event()
        pool = self._pool = WorkerPool(self._config, self._wake, self._lost_runs)
        try:
            if self._config.on_start is not None:
                await self._config.on_start()
        except BaseException:
            self._pool = None
            raise
        return pool

    async def _work(self, pool: WorkerPool, stop: asyncio.Event) -> None:
        outside = _working.set(self)
        try:
            try:
                await pool.work(stop)
            finally:
                self._pool = None
            await pool.hooks.stop()
        finally:
            _working.reset(outside)
