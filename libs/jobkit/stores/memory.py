"""A store in the memory of one process, on one event loop: for tests, and for programs without a database."""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import count
from typing import Any, assert_never

from jobkit.changes import DEFINITION, Enqueued, JobEdit, NewJob, OnConflict
from jobkit.clock import system_now
from jobkit.editing import apply_edit, edit_to_match, first_run_time
from jobkit.job import Job, JobId, JobUpdate, Lock
from jobkit.store import JobExists, NoSuchJob


class StoreFull(Exception):
    """The store holds as many jobs as its capacity allows."""


class MemoryStore:
    """Keeps jobs in a heap. Its calls never await anything, so that each is atomic. Ids must be comparable."""

    def __init__(
        self,
        *,
        now: Callable[[], datetime] = system_now,
        condition: Callable[[Job], bool] = lambda job: True,
        capacity: int = 100_000,
    ) -> None:
        self._now = now
        self._condition = condition
        self._capacity = capacity
        self._jobs: dict[JobId, Job] = {}
        # A job may have several entries; only the one with its newest stamp is valid.
        self._waiting: list[tuple[datetime, Any, int]] = []
        self._stamps: dict[JobId, int] = {}
        self._next_stamp = count(1)
        self._next_id = count(1)

    def __len__(self) -> int:
        return len(self._jobs)

    def get(self, job_id: JobId) -> Job | None:
        return self._jobs.get(job_id)

    def add(self, job: Job) -> None:
        _require_aware(job)
        if job.id in self._jobs:
            raise ValueError(f"there is a job {job.id} already")
        if len(self._jobs) >= self._capacity:
            raise StoreFull(f"the store is full: it holds {self._capacity} jobs")
        self._put(job)

    def edit(self, job_id: JobId, **changes: Any) -> Job:
        """Changes a job past the scheduler, so that a current run can no longer write to it. Raises KeyError."""
        job = self._jobs[job_id]
        changed = replace(job, **(changes | {"fence": job.fence + 1}))
        _require_aware(changed)
        self._put(changed)
        return changed

    async def enqueue(self, new: NewJob, *, on_conflict: OnConflict = OnConflict.REFUSE) -> Enqueued:
        due = first_run_time(new, self._now())
        job_id = self._free_id() if new.id is None else new.id
        if job_id not in self._jobs:
            parts = {name: getattr(new, name) for name in DEFINITION}
            self.add(Job(id=job_id, due_time=due, sleep_until=due, data=new.data, **parts))
            return Enqueued(job_id, is_new=True)
        match on_conflict:
            case OnConflict.REFUSE:
                raise JobExists(f"there is a job {job_id} already")
            case OnConflict.KEEP:
                pass
            case OnConflict.EDIT:
                await self.edit_job(job_id, edit_to_match(new))
            case other:
                assert_never(other)
        return Enqueued(job_id, is_new=False)

    async def edit_job(self, job_id: JobId, edit: JobEdit) -> Job:
        if job_id not in self._jobs:
            raise NoSuchJob(f"there is no job {job_id}")
        job = apply_edit(self._jobs[job_id], edit, self._now()).job
        self._put(job)
        return job

    def delete(self, job_id: JobId) -> None:
        """Deletes a job past the scheduler, if it exists."""
        self._jobs.pop(job_id, None)
        self._stamps.pop(job_id, None)

    async def now(self) -> datetime:
        return self._now()

    async def lock_next(self, now: datetime, lock_until: datetime, limit: int) -> list[Job]:
        return [self._lock(job, lock_until) for job in self._first(limit, now)]

    async def update(self, changes: Sequence[tuple[Lock, JobUpdate]]) -> frozenset[Lock]:
        held = self._unchanged([lock for lock, _ in changes])
        for lock, update in changes:
            if lock in held:
                self._put(
                    replace(
                        self._jobs[lock.id],
                        fence=lock.fence + 1,
                        due_time=update.due_time,
                        sleep_until=update.sleep_until,
                        attempts=update.attempts,
                        last_error=update.last_error,
                    )
                )
        return held

    async def remove(self, locks: Sequence[Lock]) -> frozenset[Lock]:
        held = self._unchanged(locks)
        for lock in held:
            self.delete(lock.id)
        return held

    async def extend(self, locks: Sequence[Lock], lock_until: datetime) -> frozenset[Lock]:
        held = self._held(locks)
        for lock in held:
            self._put(replace(self._jobs[lock.id], sleep_until=lock_until))
        return held

    async def held(self, locks: Sequence[Lock]) -> list[Job]:
        rows = [self._jobs[lock.id] for lock in self._held(locks)]
        return [replace(job, definition=_definition(job)) for job in rows]

    async def next_due(self) -> datetime | None:
        return next((job.sleep_until for job in self._first(1)), None)

    def _held(self, locks: Sequence[Lock]) -> frozenset[Lock]:
        return frozenset(lock for lock in locks if (job := self._jobs.get(lock.id)) and job.fence == lock.fence)

    def _unchanged(self, locks: Sequence[Lock]) -> frozenset[Lock]:
        return frozenset(
            lock for lock in self._held(locks) if lock.definition in (None, _definition(self._jobs[lock.id]))
        )

    def _free_id(self) -> int:
        return next(number for number in self._next_id if number not in self._jobs)

    def _lock(self, job: Job, lock_until: datetime) -> Job:
        attempts = None if job.attempts is None else job.attempts + 1
        locked = replace(job, fence=job.fence + 1, attempts=attempts, due_time=job.due_time or job.sleep_until)
        self._put(replace(locked, sleep_until=lock_until))
        return replace(locked, definition=_definition(locked))

    def _put(self, job: Job) -> None:
        self._jobs[job.id] = job
        stamp = self._stamps[job.id] = next(self._next_stamp)
        if job.sleep_until is not None:
            heapq.heappush(self._waiting, (job.sleep_until, job.id, stamp))
        if len(self._waiting) > 2 * len(self._jobs) + 64:
            self._waiting = [entry for entry in self._waiting if self._is_newest(entry)]
            heapq.heapify(self._waiting)

    def _first(self, limit: int, until: datetime | None = None) -> list[Job]:
        """Returns the first jobs that meet the condition, in order."""
        found: list[Job] = []
        kept: list[tuple[datetime, Any, int]] = []
        try:
            while self._waiting and len(found) < limit and (until is None or self._waiting[0][0] <= until):
                entry = heapq.heappop(self._waiting)
                if self._is_newest(entry):
                    kept.append(entry)
                    job = self._jobs[entry[1]]
                    if self._condition(job):
                        found.append(job)
        finally:  # a condition may raise, and must not lose the entries taken out so far
            for entry in kept:
                heapq.heappush(self._waiting, entry)
        return found

    def _is_newest(self, entry: tuple[datetime, Any, int]) -> bool:
        return self._stamps.get(entry[1]) == entry[2]


def _definition(job: Job) -> tuple[object, ...]:
    return tuple(getattr(job, name) for name in DEFINITION)


def _require_aware(job: Job) -> None:
    """Refuses a job that cannot be compared with the clock: it would block all the others."""
    for part in ("due_time", "sleep_until", "repeat_until"):
        instant: datetime | None = getattr(job, part)
        if instant is not None and instant.tzinfo is None:
            raise ValueError(f"{part} has no time zone: {instant}")
