"""Runs a batch: settles jobs that have ended, gives back jobs that wait too long, cancels runs that take too long."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import assert_never

from jobkit.batch import Batch
from jobkit.config import Config
from jobkit.errors import RunLost, RunTimedOut
from jobkit.guards import WaitCancelled
from jobkit.handler import Handler
from jobkit.hooks import Hooks
from jobkit.job import Failed, Job, Outcome
from jobkit.result_writer import Decision, ResultWriter
from jobkit.run import Ended, Interruption, LostRuns, Run
from jobkit.settlement import Policy, Settlement, after_run, before_run, given_back

_LINGER = 0.005
"""Seconds that a finished job waits for others, to be settled with them in one call."""


class BatchRunner:
    def __init__(
        self,
        config: Config,
        *,
        hooks: Hooks,
        writer: ResultWriter,
        handler: Handler,
        lost_runs: LostRuns,
        stopping: asyncio.Event,
        now: Callable[[], datetime],
    ) -> None:
        self._config = config
        self._hooks = hooks
        self._writer = writer
        self._handler = handler
        self._lost_runs = lost_runs
        self._stopping = stopping
        self._now = now
        self._policy = Policy(
            retry=config.retry,
            reprocess_delay=config.reprocess_delay,
            misfire_after=config.misfire_after,
            pace=config.pace,
        )
        self.limit = config.batch
        """How many jobs a worker locks at once: fewer than `Config.batch` while jobs are slow."""
        self._timeout = None if config.run_timeout is None else config.run_timeout.total_seconds()
        self._batch_time = config.batch_time.total_seconds()
        self._cancel_grace = config.cancel_grace.total_seconds()

    async def run(self, batch: Batch) -> None:
        """Runs the jobs and settles them."""
        jobs = await self._sort_out(batch)
        if not jobs:
            return
        run = batch.run = self._begin(batch, jobs)
        try:
            # Writing a result may have to wait for a transaction that has its row; the run is watched meanwhile.
            async with asyncio.TaskGroup() as writing:
                while not run.is_done and not self._is_lost(run):
                    await run.wait(self._seconds_to_next_look(batch, run))
                    await self._look_after(batch, run, writing)
                await self._end(batch, run)
        finally:
            if not run.is_done:
                run.interrupt(Interruption.STOPPED)
                self._lost_runs.add(run.task)
        run.raise_if_exiting()

    async def _sort_out(self, batch: Batch) -> list[Job]:
        """Settles the jobs that are not to be run, and returns the others."""
        now = self._now()
        is_run = {job.lock: before_run(job, now, self._policy) is None for job in batch.jobs}
        decisions = [(job, partial(self._without_run, now)) for job in batch.jobs if not is_run[job.lock]]
        await self._writer.settle(batch, decisions)
        return [job for job in batch.jobs if is_run[job.lock]]

    def _without_run(self, now: datetime, job: Job) -> Settlement:
        """Settles a job that is not to be run; gives it back if an edit has made it runnable since."""
        return before_run(job, now, self._policy) or given_back(job)

    def _begin(self, batch: Batch, jobs: Sequence[Job]) -> Run:
        return Run(
            [[job] for job in jobs] if self._config.on_batch is None else [jobs],
            self._handler.handle,
            still_locked=batch.still_locked,
            may_begin=lambda: not self._stopping.is_set(),
            now=self._now,
            linger=_LINGER,
        )

    def _seconds_to_next_look(self, batch: Batch, run: Run) -> float | None:
        """Returns the seconds until a timeout, a settlement or the end of a grace is due, None without any."""
        times: list[float] = []
        if run.first_ended_at is not None and not batch.writing:
            times.append(run.first_ended_at + _LINGER)
        if run.has_more:
            times.append(run.started_at + self._batch_time)
        if run.interruption is not None:
            times.append(run.interrupted_at + self._cancel_grace)
        elif self._timeout is not None:
            times.append(run.begun_at + self._timeout)
        return max(min(times) - _loop_time(), 0) if times else None

    async def _look_after(self, batch: Batch, run: Run, writing: asyncio.TaskGroup) -> None:
        decisions: list[Decision] = []
        if run.has_more and (self._stopping.is_set() or _loop_time() >= run.started_at + self._batch_time):
            # They wait behind a slow or hanging run; another worker may be free.
            decisions += [(job, given_back) for job in run.drop_waiting()]
            self.limit = max(run.groups_begun, 1)
        if run.first_ended_at is not None and not batch.writing and _loop_time() >= run.first_ended_at + _LINGER:
            decisions += self._outcomes(run.take_ended())
        if decisions:
            self._settle_meanwhile(batch, run, decisions, writing)
        if self._has_timed_out(run):
            run.interrupt(Interruption.TIMED_OUT)
            for job in run.current:
                await self._hooks.report(self._timed_out(job))

    def _settle_meanwhile(
        self, batch: Batch, run: Run, decisions: Sequence[Decision], writing: asyncio.TaskGroup
    ) -> None:
        def written(task: asyncio.Task[None]) -> None:
            batch.writing.discard(task)
            run.wake()

        task = writing.create_task(self._writer.settle(batch, decisions))
        batch.writing.add(task)
        task.add_done_callback(written)

    def _has_timed_out(self, run: Run) -> bool:
        if self._timeout is None or run.is_done or run.interruption is not None:
            return False
        return _loop_time() >= run.begun_at + self._timeout

    def _is_lost(self, run: Run) -> bool:
        return run.interruption is not None and _loop_time() >= run.interrupted_at + self._cancel_grace

    async def _end(self, batch: Batch, run: Run) -> None:
        decisions = self._outcomes(run.take_ended())
        current = batch.still_locked(run.current)
        if not run.is_done:
            for job in run.current:
                await self._hooks.report(RunLost(job, self._config.cancel_grace))
        match run.interruption:
            case Interruption.TIMED_OUT:
                decisions += self._failed(batch, run, [(job, self._timed_out(job)) for job in current])
            case Interruption.STOPPED | Interruption.LOCK_LOST:
                if not run.is_done:
                    # The run may still be going on: its lock is left to expire before another worker takes the job.
                    batch.release(current)
            case None:
                # The handler has cancelled its own task.
                decisions += self._failed(batch, run, [(job, WaitCancelled("it cancelled itself")) for job in current])
            case other:
                assert_never(other)
        decided = {job.lock for job, _ in decisions}
        decisions += [(job, given_back) for job in batch.jobs if job.lock not in decided]
        await self._writer.settle(batch, decisions)
        if run.interruption is None and _loop_time() < run.started_at + self._batch_time / 2:
            self.limit = min(2 * self.limit, self._config.batch)

    def _timed_out(self, job: Job) -> RunTimedOut:
        assert self._config.run_timeout is not None
        return RunTimedOut(job, self._config.run_timeout)

    def _failed(self, batch: Batch, run: Run, failures: Sequence[tuple[Job, Exception]]) -> list[Decision]:
        """Settles failed jobs. If the run may still be going on, they are retried only after their lock has expired."""
        now = self._now()
        lock_left = timedelta(seconds=max(batch.lock_end - self._config.monotonic(), 0))
        not_before = None if run.is_done else now + lock_left
        return [
            (job, self._decide(Failed(error=error), begun=run.begun, now=now, not_before=not_before))
            for job, error in failures
        ]

    def _outcomes(self, ended: Sequence[Ended]) -> list[Decision]:
        return [
            (job, self._decide(outcome, begun=one.begun, now=one.now))
            for one in ended
            for job, outcome in zip(one.jobs, _each(one), strict=True)
        ]

    def _decide(
        self, outcome: Outcome, *, begun: datetime, now: datetime, not_before: datetime | None = None
    ) -> Callable[[Job], Settlement]:
        draw = self._config.draw()
        return partial(
            after_run, outcome=outcome, begun=begun, now=now, policy=self._policy, draw=draw, not_before=not_before
        )


def _each(ended: Ended) -> Sequence[Outcome]:
    if isinstance(ended.result, Exception):
        return [Failed(error=ended.result)] * len(ended.jobs)
    return ended.result


def _loop_time() -> float:
    return asyncio.get_running_loop().time()
