"""The work between a start and a stop: one worker at a time looks for jobs, each does what it has found."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from jobkit.batch import Batch
from jobkit.batch_runner import BatchRunner
from jobkit.config import Config
from jobkit.errors import StoreFailed, TooManyLostRuns
from jobkit.guards import result_of, wait
from jobkit.handler import Handler
from jobkit.hooks import Hooks
from jobkit.lock_extender import LockExtender
from jobkit.result_writer import ResultWriter
from jobkit.retry import patience
from jobkit.run import Interruption, LostRuns

_LEAST_WAIT, _LONGEST_WAIT = 0.001, 86_400.0
_ALWAYS = datetime.max.replace(tzinfo=UTC)
_FIRST_LOOK_AGAIN, _LAST_LOOK_AGAIN = 0.005, 0.1
_ROOM = 1.0
"""Seconds after which it is seen again whether a lost run has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """What one look into the store has found."""

    now: datetime
    batch: Batch | None = None
    next_due: datetime | None = None


class WorkerPool:
    def __init__(self, config: Config, wake: asyncio.Event, lost_runs: LostRuns) -> None:
        self._config = config
        self._store = config.store
        self._wake = wake
        self._lost_runs = lost_runs
        self._turn = asyncio.Lock()
        self._stopping = asyncio.Event()
        self._hurry = asyncio.Event()
        self._out_of_time = asyncio.Event()
        self._over = asyncio.Event()
        self._batches: set[Batch] = set()
        self._nothing_due = False
        self.is_idle = False
        self._asleep_until = _ALWAYS
        self._read_at = 0.0
        self._reading: datetime | None = None
        self.hooks = Hooks(config)
        self._handler = Handler(config)
        writer = ResultWriter(config, self.hooks, self._out_of_time, self._wake_for)
        self._extender = LockExtender(config, self.hooks, writer, self._batches)
        self._runner = BatchRunner(
            config,
            hooks=self.hooks,
            writer=writer,
            handler=self._handler,
            lost_runs=lost_runs,
            stopping=self._stopping,
            now=self._now,
        )

    @property
    def is_processing(self) -> bool:
        return bool(self._batches)

    async def work(self, stop: asyncio.Event) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                watchers = [group.create_task(self._stop_when(event)) for event in (stop, self._hurry)]
                keeping = group.create_task(self._extender.keep(self._over))
                async with asyncio.TaskGroup() as workers:
                    for number in range(self._config.workers):
                        workers.create_task(self._worker(), name=f"{self._config.name} {number}")
                self._over.set()
                await keeping  # watched: what it reports may hang
                for watcher in watchers:
                    watcher.cancel()
        finally:
            self._handler.close()

    def hurry(self) -> None:
        """Stops without a grace, also when a stop has begun."""
        self._hurry.set()

    async def _stop_when(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._stopping.set()
        self._wake.set()
        for batch in self._batches:
            batch.look()
        await wait(self._hurry, self._config.grace)
        self._out_of_time.set()
        for batch in self._batches:
            batch.interrupt(Interruption.STOPPED)
        self.hooks.end()

    async def _worker(self) -> None:
        while not self._stopping.is_set():
            await self._have_room()
            batch = await self._find()
            if batch is None:
                return
            await self._runner.do(batch)
            self._batches.discard(batch)
            await self._become_idle()
            if self._config.next_delay:
                await wait(self._stopping, self._config.next_delay)

    async def _have_room(self) -> None:
        if self._lost_runs.is_full:
            await self.hooks.report(TooManyLostRuns())
        while self._lost_runs.is_full and not self._stopping.is_set():
            await wait(self._stopping, _ROOM)

    # Finding: one at a time, so that idle workers cost what one costs.

    async def _find(self) -> Batch | None:
        """None: it is time to stop."""
        async with self._turn:
            failures = passed_over = 0
            while not self._stopping.is_set():
                self._wake.clear()
                look = await result_of(self._look)
                if isinstance(look, Exception):
                    await self.hooks.report(StoreFailed("lock_next", look))
                    await wait(self._stopping, patience(failures, self._config.draw()))
                    failures += 1
                elif look.batch is not None:
                    return look.batch
                else:
                    failures = 0
                    passed_over = passed_over + 1 if look.next_due and look.next_due <= look.now else 0
                    self._nothing_due = True
                    await self._become_idle()
                    seconds = self._idle_seconds(look.next_due, passed_over)
                    self._asleep_until = self._now() + timedelta(seconds=seconds)
                    await wait(self._wake, seconds)
                    self._asleep_until = _ALWAYS
        return None

    async def _look(self) -> _Look:
        asked = self._config.monotonic()
        now = await self._store.now()
        # The store read its clock before it answered: taken as read now, the time is never ahead of the store's.
        self._reading, self._read_at = now, self._config.monotonic()
        jobs = await self._store.lock_next(now, now + self._config.lock_duration, self._runner.limit)
        if not jobs:
            return _Look(now=now, next_due=await self._store.next_due())
        batch = Batch(jobs, asked + self._config.lock_duration.total_seconds())
        self._batches.add(batch)
        self._nothing_due = self.is_idle = False
        return _Look(now=now, batch=batch)

    def _idle_seconds(self, next_due: datetime | None, passed_over: int) -> float:
        longest = min(self._config.idle_delay.total_seconds(), _LONGEST_WAIT)
        if passed_over:
            # What is due is locked by somebody's transaction: asking at once, again and again, would not free it. Nor
            # is it known when the first of the others is due.
            return min(_FIRST_LOOK_AGAIN * 2.0 ** min(passed_over, 30), _LAST_LOOK_AGAIN, longest)
        if next_due is None:
            return longest
        return min(max((next_due - self._now()).total_seconds(), _LEAST_WAIT), longest)

    async def _become_idle(self) -> None:
        if self._nothing_due and not self._batches and not self.is_idle:
            self.is_idle = True
            await self.hooks.idle()

    def _now(self) -> datetime:
        """The store's time, carried on from its last reading."""
        assert self._reading is not None
        return self._reading + timedelta(seconds=self._config.monotonic() - self._read_at)

    def _wake_for(self, times: Iterable[datetime | None]) -> None:
        """Wakes the worker that waits for the next job: it has looked before these were written."""
        if any(time is not None and time < self._asleep_until for time in times):
            self._wake.set()
