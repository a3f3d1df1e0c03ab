"""Extends the locks of long runs."""

import asyncio
import logging
from collections.abc import Sequence
from functools import partial

from jobkit.batch import Batch
from jobkit.config import Config
from jobkit.errors import LockLost, LoopBlocked, SchedulerError, StoreFailed
from jobkit.guards import result_of, wait
from jobkit.hooks import Hooks
from jobkit.job import Job, Lock
from jobkit.result_writer import ResultWriter

_MOST_REPORTS = 1000
"""Reports that wait for `on_error` at once; more are logged."""

_log = logging.getLogger(__name__)


class LockExtender:
    def __init__(self, config: Config, hooks: Hooks, writer: ResultWriter, batches: set[Batch]) -> None:
        self._config = config
        self._store = config.store
        self._hooks = hooks
        self._writer = writer
        self._batches = batches
        self._reports = 0

    async def run(self, over: asyncio.Event) -> None:
        """Extends all locks each third of their duration, without waiting for a slow `on_error` in between."""
        async with asyncio.TaskGroup() as reports:
            await self._extend_until(over, reports)

    async def _extend_until(self, over: asyncio.Event, reports: asyncio.TaskGroup) -> None:
        duration = self._config.lock_duration.total_seconds()
        delay = period = duration / 3
        while True:
            slept_at = self._config.monotonic()
            if await wait(over, delay):
                return
            late = self._config.monotonic() - slept_at - delay
            if late >= duration - delay:
                self._start_report(LoopBlocked(late), reports)
            errors = await self._extend_all()
            for error in errors:
                self._start_report(error, reports)
            delay = period / 4 if any(isinstance(error, StoreFailed) for error in errors) else period

    async def _extend_all(self) -> list[SchedulerError]:
        asked = self._config.monotonic()
        async with self._writer.extending:
            batches = {batch: batch.jobs for batch in self._batches}
            locks = [job.lock for jobs in batches.values() for job in jobs]
            answer = await result_of(partial(self._extend, locks)) if locks else frozenset()
        failed = [StoreFailed("extend", answer)] if isinstance(answer, Exception) else []
        lost = [job for batch, jobs in batches.items() for job in self._lost(batch, jobs, answer, asked)]
        return [*failed, *map(LockLost, lost)]

    async def _extend(self, locks: Sequence[Lock]) -> frozenset[Lock]:
        lock_until = await self._store.now() + self._config.lock_duration
        return await self._store.extend(locks, lock_until)

    def _lost(
        self, batch: Batch, jobs: Sequence[Job], answer: frozenset[Lock] | Exception, asked: float
    ) -> Sequence[Job]:
        if not isinstance(answer, Exception):
            batch.lock_end = asked + self._config.lock_duration.total_seconds()
            lost = batch.still_locked(job for job in jobs if job.lock not in answer)
        elif self._config.monotonic() >= batch.lock_end:
            # No answer in time: another worker may have the jobs by now.
            lost = batch.still_locked(jobs)
        else:
            lost = []
        batch.lose(lost)
        return lost

    def _start_report(self, error: SchedulerError, reports: asyncio.TaskGroup) -> None:
        if self._reports < _MOST_REPORTS:
            self._reports += 1
            reports.create_task(self._report(error))
        else:
            _log.warning("%s: %s", self._config.name, error)

    async def _report(self, error: SchedulerError) -> None:
        try:
            await self._hooks.report(error)
        finally:
            self._reports -= 1
