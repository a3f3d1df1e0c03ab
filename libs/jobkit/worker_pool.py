"""The workers of a scheduler, from a start to a stop: one at a time looks for jobs, each runs what it has locked."""

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
from jobkit.retry import store_backoff
from jobkit.run import Interruption, LostRuns

_SHORTEST_SLEEP, _LONGEST_SLEEP = 0.001, 86_400.0
_ALWAYS = datetime.max.replace(tzinfo=UTC)
_FIRST_LOOK_AGAIN, _LAST_LOOK_AGAIN = 0.005, 0.1
_LOST_RUNS_CHECK = 1.0
"""Seconds between two checks whether a lost run has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """The answer of one look into the store."""

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

    async def run(self, stop: asyncio.Event) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                watchers = [group.create_task(self._stop_when(event)) for event in (stop, self._hurry)]
                extending = group.create_task(self._extender.run(self._over))
                async with asyncio.TaskGroup() as workers:
                    for number in range(self._config.workers):
                        workers.create_task(self._worker(), name=f"{self._config.name} {number}")
                self._over.set()
                await extending  # the watchers still run, since its reports to on_error may hang
                for watcher in watchers:
                    watcher.cancel()
        finally:
            self._handler.close()

    def hurry(self) -> None:
        """Stops without a grace, even if a stop has begun."""
        self._hurry.set()

    async def _stop_when(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._stopping.set()
        self._wake.set()
        for batch in self._batches:
            batch.wake()
        await wait(self._hurry, self._config.grace)
        self._out_of_time.set()
        for batch in self._batches:
            batch.interrupt(Interruption.STOPPED)
        self.hooks.limit()

    async def _worker(self) -> None:
        while not self._stopping.is_set():
            await self._wait_for_lost_runs()
            batch = await self._find()
            if batch is None:
                return
            await self._runner.run(batch)
            self._batches.discard(batch)
            await self._become_idle()
            if self._config.next_delay:
                await wait(self._stopping, self._config.next_delay)

    async def _wait_for_lost_runs(self) -> None:
        if self._lost_runs.is_full:
            await self.hooks.report(TooManyLostRuns())
        while self._lost_runs.is_full and not self._stopping.is_set():
            await wait(self._stopping, _LOST_RUNS_CHECK)

    async def _find(self) -> Batch | None:
        """Returns a locked batch, or None when it is time to stop.

        Only one worker looks at a time, so that many idle workers cost no more than one.
        """
        async with self._turn:
            failures = unlockable = 0
            while not self._stopping.is_set():
                self._wake.clear()
                look = await result_of(self._look)
                if isinstance(look, Exception):
                    await self.hooks.report(StoreFailed("lock_next", look))
                    await wait(self._stopping, store_backoff(failures, self._config.draw()))
                    failures += 1
                elif look.batch is not None:
                    return look.batch
                else:
                    failures = 0
                    unlockable = unlockable + 1 if look.next_due and look.next_due <= look.now else 0
                    self._nothing_due = True
                    await self._become_idle()
                    seconds = self._idle_seconds(look.next_due, unlockable)
                    self._asleep_until = self._now() + timedelta(seconds=seconds)
                    await wait(self._wake, seconds)
                    self._asleep_until = _ALWAYS
        return None

    async def _look(self) -> _Look:
        asked = self._config.monotonic()
        now = await self._store.now()
        # The store read its clock before it answered. Counted from now, our time is never ahead of the store's.
        self._reading, self._read_at = now, self._config.monotonic()
        jobs = await self._store.lock_next(now, now + self._config.lock_duration, self._runner.limit)
        if not jobs:
            return _Look(now=now, next_due=await self._store.next_due())
        batch = Batch(jobs, asked + self._config.lock_duration.total_seconds())
        self._batches.add(batch)
        self._nothing_due = self.is_idle = False
        return _Look(now=now, batch=batch)

    def _idle_seconds(self, next_due: datetime | None, unlockable: int) -> float:
        longest = min(self._config.idle_delay.total_seconds(), _LONGEST_SLEEP)
        if unlockable:
            # Another transaction has locked the due rows: asking in a tight loop would not free them, and when the
            # next other row is due is unknown.
            return min(_FIRST_LOOK_AGAIN * 2.0 ** min(unlockable, 30), _LAST_LOOK_AGAIN, longest)
        if next_due is None:
            return longest
        return min(max((next_due - self._now()).total_seconds(), _SHORTEST_SLEEP), longest)

    async def _become_idle(self) -> None:
        if self._nothing_due and not self._batches and not self.is_idle:
            self.is_idle = True
            await self.hooks.on_idle()

    def _now(self) -> datetime:
        """Returns the store's time, extrapolated from its last reading."""
        assert self._reading is not None
        return self._reading + timedelta(seconds=self._config.monotonic() - self._read_at)

    def _wake_for(self, times: Iterable[datetime | None]) -> None:
        """Wakes the worker that sleeps until the next job, if one of these times comes earlier."""
        if any(time is not None and time < self._asleep_until for time in times):
            self._wake.set()
