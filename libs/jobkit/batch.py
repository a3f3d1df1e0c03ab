"""The jobs that one worker has locked together."""

import asyncio
from collections.abc import Iterable, Sequence

from jobkit.job import Job
from jobkit.run import Interruption, Run


class Batch:
    """Jobs that one worker has locked together and has neither settled nor lost."""

    def __init__(self, jobs: Sequence[Job], lock_end: float) -> None:
        self._jobs = {job.lock: job for job in jobs}
        self.lock_end = lock_end
        """When the locks expire, on the monotonic clock: never later than by the store's clock."""
        self.run: Run | None = None
        self.writing: set[asyncio.Task[None]] = set()
        """The tasks that settle jobs while the run goes on."""

    @property
    def jobs(self) -> list[Job]:
        return list(self._jobs.values())

    def still_locked(self, jobs: Iterable[Job]) -> list[Job]:
        """Returns those of the jobs that are still part of the batch."""
        return [job for job in jobs if job.lock in self._jobs]

    def release(self, jobs: Iterable[Job]) -> None:
        """Removes jobs from the batch: their locks are no longer extended."""
        for job in jobs:
            self._jobs.pop(job.lock, None)

    def lose(self, jobs: Sequence[Job]) -> None:
        """Removes jobs whose locks were lost. A run is cancelled when it holds no lock any more."""
        self.release(jobs)
        if jobs and self.run is not None and self.run.current and not self.still_locked(self.run.current):
            self.interrupt(Interruption.LOCK_LOST)

    def interrupt(self, reason: Interruption) -> None:
        if self.run is not None:
            self.run.interrupt(reason)

    def wake(self) -> None:
        """Makes the worker look at its run."""
        if self.run is not None:
            self.run.wake()
