"""What a worker has locked."""

import asyncio
from collections.abc import Iterable, Sequence

from jobkit.job import Job
from jobkit.run import Interruption, Run


class Batch:
    """Jobs that one worker has locked together, and neither settled nor lost."""

    def __init__(self, jobs: Sequence[Job], lock_end: float) -> None:
        self._jobs = {job.lock: job for job in jobs}
        self.lock_end = lock_end
        """On the monotonic clock, and never later than the store's."""
        self.run: Run | None = None
        self.writing: set[asyncio.Task[None]] = set()
        """What is being settled while the run goes on."""

    @property
    def jobs(self) -> list[Job]:
        return list(self._jobs.values())

    def still(self, jobs: Iterable[Job]) -> list[Job]:
        return [job for job in jobs if job.lock in self._jobs]

    def release(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            self._jobs.pop(job.lock, None)

    def lose(self, jobs: Sequence[Job]) -> None:
        """A run goes on as long as it holds one lock."""
        self.release(jobs)
        if jobs and self.run is not None and self.run.current and not self.still(self.run.current):
            self.interrupt(Interruption.LOCK_LOST)

    def interrupt(self, reason: Interruption) -> None:
        if self.run is not None:
            self.run.interrupt(reason)

    def look(self) -> None:
        if self.run is not None:
            self.run.look()
