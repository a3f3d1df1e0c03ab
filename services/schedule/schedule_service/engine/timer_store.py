"""The store of jobkit's scheduler: writing the result of a run fires its occurrence."""

from collections.abc import Sequence
from datetime import datetime

from jobkit.job import Job, JobUpdate, Lock
from schedule_service.adapters.postgres.due_timers import DueTimers, timer_jobs
from schedule_service.application.timers.fire_due_timers import FireDueTimers
from schedule_service.engine.batch import CurrentBatch
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database


class TimerStore:
    """Implements jobkit's `JobStore`."""

    def __init__(self, *, database: Database, clock: DatabaseClock, fire: FireDueTimers, batch: CurrentBatch) -> None:
        self._jobs = timer_jobs(database, clock)
        self._due = DueTimers(database, clock)
        self._fire = fire
        self._batch = batch

    async def now(self) -> datetime:
        return await self._jobs.now()

    async def lock_next(self, now: datetime, lock_until: datetime, limit: int) -> list[Job]:
        return await self._due.lock_next(now, lock_until, limit)

    async def update(self, changes: Sequence[tuple[Lock, JobUpdate]]) -> frozenset[Lock]:
        return await self._fire.settle([(lock, update, self._batch.occurrence(lock)) for lock, update in changes])

    async def remove(self, locks: Sequence[Lock]) -> frozenset[Lock]:
        return await self._fire.remove([(lock, self._batch.occurrence(lock)) for lock in locks])

    async def extend(self, locks: Sequence[Lock], lock_until: datetime) -> frozenset[Lock]:
        return await self._jobs.extend(locks, lock_until)

    async def next_due(self) -> datetime | None:
        return await self._jobs.next_due()
