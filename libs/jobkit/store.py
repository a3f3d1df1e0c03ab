"""What a scheduler asks of a store; `lock_next`, `update` and `remove` are the heart. One job is a batch of one.

A `JobTable` can also take new jobs, and change those that it has while they run.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable

from jobkit.changes import Enqueued, JobEdit, NewJob, OnConflict
from jobkit.job import Job, JobId, JobUpdate, Lock


class NoSuchJob(LookupError):
    """There is no job with that id."""


class JobExists(ValueError):
    """There is a job with that id."""


class EditConflict(Exception):
    """The row was changed by others each time before the edit could be written."""


class JobStore(Protocol):
    """Every call is atomic. A lock whose fence is not the row's any more changes nothing, and is missing in the answer.

    A change past the scheduler that moves or pauses a job adds one to its fence, so that a run in hand cannot overwrite
    it: `JobTable.edit_job` does.
    """

    async def now(self) -> datetime:
        """The clock that `sleep_until` is compared with, aware."""
        ...

    async def lock_next(self, now: datetime, lock_until: datetime, limit: int) -> list[Job]:
        """Locks up to `limit` jobs with `sleep_until` <= `now`, the longest waiting first, then by id.

        Locking moves `sleep_until` to `lock_until` (so that the job of a worker that died comes up again), adds one to
        `fence` and to `attempts`, and settles `due_time`. What another worker is locking is passed over.
        """
        ...

    async def update(self, changes: Sequence[tuple[Lock, JobUpdate]]) -> frozenset[Lock]:
        """Writes what became of the jobs and ends their locks (`fence` grows again); those that still held."""
        ...

    async def remove(self, locks: Sequence[Lock]) -> frozenset[Lock]:
        """Deletes the jobs; the locks that still held."""
        ...

    async def extend(self, locks: Sequence[Lock], lock_until: datetime) -> frozenset[Lock]:
        """Moves the end of the locks, for runs that last; those that still held.

        One that cannot be moved at once, because a transaction has its row, holds nevertheless.
        """
        ...

    async def next_due(self) -> datetime | None:
        """When the first row wants to be looked at; None when none does."""
        ...


@runtime_checkable
class JobTable(JobStore, Protocol):
    """`update` and `remove` write nothing either where the row has another definition than the lock names."""

    async def held(self, locks: Sequence[Lock]) -> list[Job]:
        """The jobs whose fence is still that of the lock, as their rows are now, with the definition that they have."""
        ...

    async def enqueue(self, new: NewJob, *, on_conflict: OnConflict = OnConflict.REFUSE) -> Enqueued:
        """Inserts a job. Raises ValueError for one that would never run or makes no sense, and JobExists."""
        ...

    async def edit_job(self, job_id: JobId, edit: JobEdit) -> Job:
        """Changes a job at once, whether it waits or runs; see `editing.edited`. The row as it is then.

        Raises NoSuchJob, and ValueError for what makes no sense.
        """
        ...
