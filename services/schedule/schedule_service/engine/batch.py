"""The handler of jobkit's scheduler, and the occurrences that it leaves for the store."""

from collections.abc import Mapping, Sequence

from jobkit.job import Done, Job, Lock
from schedule_service.domain.timers.occurrence import Occurrence
from schedule_service.engine.occurrences import Occurrences
from servicekit.failpoints import declare, failpoint

LOCKED = declare("schedule.timers.locked")


class CurrentBatch:
    """The occurrences of the batch that is being run, by lock.

    jobkit passes locks to the store, but nothing that the handler computed. The engine has one worker, which settles a
    batch before it takes the next, so keeping one batch is enough.
    """

    def __init__(self) -> None:
        self._occurrences: dict[Lock, Occurrence] = {}

    def clear(self) -> None:
        self._occurrences.clear()

    def add(self, occurrences: Mapping[Lock, Occurrence]) -> None:
        self._occurrences |= occurrences

    def occurrence(self, lock: Lock) -> Occurrence | None:
        """Returns None for a timer that was not run: its lock was given back, or its occurrence skipped."""
        return self._occurrences.get(lock)


class BatchHandler:
    """Reads the occurrences of a batch. They fire when the store writes the results."""

    def __init__(self, occurrences: Occurrences, batch: CurrentBatch) -> None:
        self._occurrences = occurrences
        self._batch = batch

    async def __call__(self, jobs: Sequence[Job]) -> list[Done]:
        """Begins a new batch.

        A run that hung and was abandoned may finish at any time. It only adds occurrences that are never settled.
        """
        self._batch.clear()
        await failpoint(LOCKED)
        self._batch.add({job.lock: await self._occurrences.of(job) for job in jobs})
        return [Done()] * len(jobs)
