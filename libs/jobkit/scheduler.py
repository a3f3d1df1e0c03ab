"""The scheduler: workers on one store, from a start to a stop."""

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
"""The scheduler that has called the current code: a handler, a hook, or a task that one of them has started."""


class Scheduler:
    """Runs the jobs of a store with `Config.workers` workers.

    There are three ways to run it: `run(stop)` until an event is set, `start()` and `stop()`, or `async with`. Each
    works again after it has ended, but only one at a time. From start to stop

    1. `on_start` is awaited; its error is raised, and nothing has begun;
    2. workers lock jobs that are due, run them, and write their results, until a stop;
    3. at a stop no further run begins, and jobs that are locked but not begun are given back, so that another worker
       need not wait for their locks to expire;
    4. current runs have `grace` to finish, then `cancel_grace` after their cancellation. A cancelled run is given back
       as if it had not begun; one that ignores its cancellation is reported as `RunLost` and keeps its lock;
    5. `on_stop` is awaited when every job is settled or given back.

    Cancelling a call that waits for the end (`run`, `stop`, or the body of `async with`, as Ctrl-C does under
    `asyncio.run`) leaves out the grace: steps 4 and 5 still happen before the cancellation is raised. A second
    cancellation is raised at once, and the locks expire by themselves.

    All methods belong to one event loop. Handlers and hooks may call them, `stop` included.
    """

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
        """Returns whether a worker has locked jobs."""
        return self._pool is not None and self._pool.is_processing

    @property
    def is_idle(self) -> bool:
        """Returns whether the last look found nothing due and all runs have ended."""
        return self._pool is not None and self._pool.is_idle

    def wake(self) -> None:
        """Makes an idle scheduler look at once, because there may be something to do."""
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
            raise TypeError(f"{self._config.store!r:.100} is no JobTable and cannot insert or edit jobs")
        return self._config.store

    async def run(self, stop: asyncio.Event) -> None:
        """Runs jobs until `stop` is set, and returns when `on_stop` is done."""
        pool = await self._open(asyncio.Event())
        await self._until_over(pool, self._begin(pool, stop))

    async def run_until_signal(self, *signals: signal.Signals) -> None:
        """Runs jobs until the process gets one of the signals, by default SIGINT or SIGTERM.

        A second signal leaves out the grace. Works in the main thread only, and not on Windows.
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
        """Returns when `on_start` is done; the workers run in the background."""
        stop = asyncio.Event()
        pool = await self._open(stop)
        self._task = self._begin(pool, stop)

    async def stop(self) -> None:
        """Stops the scheduler and returns when `on_stop` is done. Does nothing if it was not started.

        Returns at once in a handler or a hook, which would wait for itself.
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
        """Stops the scheduler, without a grace if the body was cancelled."""
        if self._pool is not None and kind is not None and issubclass(kind, asyncio.CancelledError):
            self._pool.hurry()
        await self.stop()

    async def _until_over(self, pool: WorkerPool | None, task: asyncio.Task[None]) -> None:
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if pool is not None:
                pool.hurry()
            # A second cancellation is raised at once; the locks then expire by themselves.
            await asyncio.wait({task})
            raise

    def _begin(self, pool: WorkerPool, stop: asyncio.Event) -> asyncio.Task[None]:
        # No task group could own it: it outlives a cancelled call, to give the jobs back.
        return asyncio.get_running_loop().create_task(self._work(pool, stop), name=self.name)

    async def _open(self, stop: asyncio.Event) -> WorkerPool:
        if self._pool is not None:
            raise RuntimeError(f"{self.name} runs already")
        self._stop = stop
        # An event belongs to the loop on which it was first awaited.
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
                await pool.run(stop)
            finally:
                self._pool = None
            await pool.hooks.on_stop()
        finally:
            _working.reset(outside)
