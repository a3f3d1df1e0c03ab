"""What a scheduler asks of a store; `lock_next`, `update` and `remove` are the heart. One job is a batch of one."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from jobkit.job import Job, JobUpdate, Lock


class JobStore(Protocol):
    """Every call is atomic. A lock whose fence is not the row's any more changes nothing, and is missing in the answer.

    Whoever changes a row past the scheduler (pauses it, moves it) adds one to its fence: a run in hand then
    cannot overwrite the change.
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
