"""The contract between a scheduler and a store of jobs.

A `JobStore` is enough to run jobs: six calls, of which `lock_next`, `update` and `remove` are the heart. A `JobTable`
also inserts jobs and edits them while they run. Both stores that jobkit brings are tables; the suite in
tests/usecase/jobkit holds them to what is written here.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol, runtime_checkable

from jobkit.changes import Enqueued, JobEdit, NewJob, OnConflict
from jobkit.job import Job, JobId, JobUpdate, Lock


class NoSuchJob(LookupError):
    """No job has that id."""


class JobExists(ValueError):
    """A job has that id already."""


class EditConflict(Exception):
    """Others changed the row each time before the edit could be written."""


class JobStore(Protocol):
    """Holds jobs, and locks each for one worker at a time.

    A row is *due* when its `sleep_until` is not null and not after now; a store may consider only some of its rows (a
    condition). Locking a row moves its `sleep_until` to the end of the lock, so that it becomes due again if its worker
    dies, and adds one to its `fence`. A `Lock` holds as long as the row still has the lock's fence. Time alone does not
    end a lock: an expired one holds until another worker locks the row.

    Every call is atomic: all of it is visible to other workers, or, if it raises, nothing. The scheduler reports an
    error to `on_error` and repeats the call after 0.1 s, doubling to 10 s, so a call may run twice if its answer was
    lost. `update`, `remove` and `extend` take locks of several jobs and return those that still hold; a lock that does
    not hold changes nothing and is no error.

    Calls of one scheduler overlap: one `lock_next` at a time, beside an `extend` and several of the others, but never
    two calls with the same lock.

    A program that moves or pauses a job past the scheduler must add one to the row's `fence`, or a current run would
    overwrite the change. `JobTable.edit_job` does so.
    """

    async def now(self) -> datetime:
        """Returns the aware time that `sleep_until` is compared with, the same for all workers of the store.

        The scheduler asks before each `lock_next` and `extend`, and computes all times that it writes from the answer.
        """
        ...

    async def lock_next(self, now: datetime, lock_until: datetime, limit: int) -> list[Job]:
        """Locks up to `limit` due rows and returns them in order: earliest `sleep_until` first, then lowest id.

        In each row sets `sleep_until` to `lock_until`, adds one to `fence` and to `attempts` (unless that is not
        counted), and sets `due_time` to the old `sleep_until` if it is null. Returns the row as it is then, except that
        `sleep_until` keeps its old value: a job that is given back gets it again.

        Skips rows that another call is locking at this moment, instead of waiting for them. A row that cannot be read
        is locked and returned with its `flaw`, because an exception would hold up the whole batch. Returns an empty
        list if nothing is due.
        """
        ...

    async def update(self, changes: Sequence[tuple[Lock, JobUpdate]]) -> frozenset[Lock]:
        """Writes all values of the updates, ends the locks by adding one to each `fence`, and returns those that held.

        If the call raises for several rows, the scheduler repeats it with halves of them, since one row may be refused
        by a constraint. It gives up when the locks have expired.
        """
        ...

    async def remove(self, locks: Sequence[Lock]) -> frozenset[Lock]:
        """Deletes the jobs and returns the locks that held."""
        ...

    async def extend(self, locks: Sequence[Lock], lock_until: datetime) -> frozenset[Lock]:
        """Sets `sleep_until` of the rows to `lock_until`, leaves `fence` alone, and returns the locks that hold.

        The scheduler calls this for all current runs each third of `lock_duration`, and cancels a run whose lock is
        missing in the answer. Must not wait for a row that a transaction has locked (a handler's, or an editor's): such
        a lock holds and counts as extended, and waiting for it would let all the others expire.
        """
        ...

    async def next_due(self) -> datetime | None:
        """Returns the earliest `sleep_until` of all rows, or None if every job is finished or paused.

        Called when `lock_next` found nothing: an idle scheduler sleeps until then. An answer in the past means that
        somebody has locked the rows that are due, and the scheduler asks again within 0.1 s.
        """
        ...


@runtime_checkable
class JobTable(JobStore, Protocol):
    """A store that also inserts jobs and edits them, while they wait or run.

    An edit of the schedule during a run leaves the run its lock, so the fence cannot reveal it. `lock_next` and `held`
    therefore return each job with a `definition`: a value that differs as soon as one of the parts named in
    `changes.DEFINITION` differs. `update` and `remove` treat a lock with another definition than its row as one that
    does not hold. The scheduler then asks `held`, decides again by the new definition, and writes that.
    """

    async def held(self, locks: Sequence[Lock]) -> list[Job]:
        """Returns the current rows of the locks that hold, no matter which definition the locks have."""
        ...

    async def enqueue(self, new: NewJob, *, on_conflict: OnConflict = OnConflict.REFUSE) -> Enqueued:
        """Inserts a job that is due at `editing.first_run_time`; if the id exists, does what `on_conflict` says.

        Raises ValueError for a job that would never run or that no worker could read, and JobExists.
        """
        ...

    async def edit_job(self, job_id: JobId, edit: JobEdit) -> Job:
        """Replaces the row by the answer of `editing.apply_edit` in one atomic step, and returns it.

        Raises NoSuchJob, ValueError for values that no worker could read, and EditConflict.
        """
        ...
