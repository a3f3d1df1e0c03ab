"""How a scheduler works: handlers, delays, limits."""

import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeAlias

from jobkit.errors import SchedulerError
from jobkit.job import Job, Outcome
from jobkit.retry import RetryPolicy
from jobkit.store import JobStore

OnDocument: TypeAlias = Callable[[Job], Awaitable[Outcome | None]]
"""Does one job. None is Done; an exception is Failed."""
OnBatch: TypeAlias = Callable[[Sequence[Job]], Awaitable[Sequence[Outcome]]]
"""Does a batch; an outcome for each job, in their order. An exception is Failed for all of them."""
Hook: TypeAlias = Callable[[], Awaitable[None]]
OnError: TypeAlias = Callable[[SchedulerError], Awaitable[None]]

_ZERO = timedelta(0)
_LONGEST_LOCK = timedelta(days=365)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Either `on_document` or `on_batch` is needed; everything else has a default."""

    store: JobStore
    name: str = "jobs"
    on_document: OnDocument | None = None
    on_batch: OnBatch | None = None
    on_start: Hook | None = None
    on_stop: Hook | None = None
    on_idle: Hook | None = None
    """Once each time that there is nothing left to do."""
    on_error: OnError | None = None
    """Left out: errors are logged."""
    next_delay: timedelta = _ZERO
    """What a worker waits between two batches."""
    reprocess_delay: timedelta = _ZERO
    """The least time between the end of a run and the next of the same job."""
    idle_delay: timedelta = timedelta(seconds=1)
    """How long an idle scheduler waits at most: how late it sees a row that was inserted without `wake()`."""
    lock_duration: timedelta = timedelta(minutes=10)
    """After it the job of a dead worker is taken over. Long runs extend their locks each third of it."""
    batch: int = 1
    """How many jobs a worker locks at once."""
    workers: int = 1
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    misfire_after: timedelta = timedelta(seconds=60)
    """SKIP leaves out what is later than this."""
    pace: timedelta = timedelta(seconds=1)
    """The least time between two late occurrences of a job under FIRE_ALL."""
    grace: timedelta = timedelta(seconds=15)
    """What runs in hand have to finish after a stop; then they are cancelled, and their locks given back."""
    monotonic: Callable[[], float] = time.monotonic
    draw: Callable[[], float] = random.random
    """For the jitter of back-offs: numbers from [0, 1)."""

    def __post_init__(self) -> None:
        if (self.on_document is None) == (self.on_batch is None):
            raise ValueError("either on_document or on_batch does the jobs")
        if self.batch < 1 or self.workers < 1:
            raise ValueError("there is at least one worker, and at least one job in a batch")
        if min(self.idle_delay, self.lock_duration) <= _ZERO:
            raise ValueError("idle_delay and lock_duration are positive")
        if self.lock_duration > _LONGEST_LOCK:
            raise ValueError(f"lock_duration is at most {_LONGEST_LOCK.days} days")
        if min(self.next_delay, self.reprocess_delay, self.misfire_after, self.pace, self.grace) < _ZERO:
            raise ValueError("no delay is negative")
