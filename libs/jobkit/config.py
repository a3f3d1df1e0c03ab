"""How a scheduler works: handlers, delays, limits."""

import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from types import NoneType
from typing import TypeAlias

from jobkit.errors import SchedulerError
from jobkit.job import Job, Outcome
from jobkit.retry import RetryPolicy
from jobkit.store import JobStore

OnDocument: TypeAlias = Callable[[Job], Awaitable[Outcome | None]] | Callable[[Job], Outcome | None]
"""Does one job. None is Done; an exception is Failed. A function that is not `async def` runs in a thread."""
OnBatch: TypeAlias = (
    Callable[[Sequence[Job]], Awaitable[Sequence[Outcome]]] | Callable[[Sequence[Job]], Sequence[Outcome]]
)
"""Does a batch; an outcome for each job, in their order. An exception is Failed for all of them."""
Hook: TypeAlias = Callable[[], Awaitable[None]]
OnError: TypeAlias = Callable[[SchedulerError], Awaitable[None]]

_ZERO = timedelta(0)
_DELAYS = ("next_delay", "reprocess_delay", "cancel_grace", "batch_time", "misfire_after", "pace", "grace")
_LONGEST_LOCK = timedelta(days=365)

_DURATION = (timedelta, "a timedelta, such as timedelta(seconds=1)")
_NUMBER = (int, "an int")
_TYPES: Mapping[str, tuple[type | tuple[type, ...], str]] = {
    "name": (str, "a str"),
    **dict.fromkeys((*_DELAYS, "idle_delay", "lock_duration"), _DURATION),
    "run_timeout": ((timedelta, NoneType), "a timedelta or None"),
    "batch": _NUMBER,
    "workers": _NUMBER,
    "retry": (RetryPolicy, "a RetryPolicy"),
}
_CALLED_ALWAYS = ("monotonic", "draw")
_CALLED = ("on_document", "on_batch", "on_start", "on_stop", "on_idle", "on_error")
_STORE_CALLS = ("now", "lock_next", "update", "remove", "extend", "next_due")


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
    run_timeout: timedelta | None = timedelta(minutes=10)
    """A run (of a job, or of a batch by `on_batch`) that takes longer is cancelled and has failed. None: no limit.

    `on_idle` and `on_error` are cancelled after it, too.
    """
    cancel_grace: timedelta = timedelta(seconds=5)
    """How long a cancelled run may take to end. Then its worker leaves it behind, and its lock is not extended."""
    batch: int = 1
    """How many jobs a worker locks at once; fewer while they take long."""
    batch_time: timedelta = timedelta(milliseconds=250)
    """How long a worker keeps jobs of a batch that it has not begun; then they are given back for others."""
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
        self._check_types()
        if (self.on_document is None) == (self.on_batch is None):
            raise ValueError("either on_document or on_batch does the jobs")
        if self.batch < 1 or self.workers < 1:
            raise ValueError("there is at least one worker, and at least one job in a batch")
        limit = self.lock_duration if self.run_timeout is None else self.run_timeout
        if min(self.idle_delay, self.lock_duration, limit) <= _ZERO:
            raise ValueError("idle_delay, lock_duration and run_timeout are positive")
        if self.lock_duration > _LONGEST_LOCK:
            raise ValueError(f"lock_duration is at most {_LONGEST_LOCK.days} days")
        if any(getattr(self, name) < _ZERO for name in _DELAYS):
            raise ValueError("no delay is negative")

    def _check_types(self) -> None:
        for name, (wanted, says) in _TYPES.items():
            value = getattr(self, name)
            if not isinstance(value, wanted) or isinstance(value, bool):
                raise TypeError(f"{name} is {says}, not {value!r:.100}")
        for name in (*_CALLED, *_CALLED_ALWAYS):
            value = getattr(self, name)
            if not callable(value) and (value is not None or name in _CALLED_ALWAYS):
                raise TypeError(f"{name} is a function, not {value!r:.100}")
        if missing := [call for call in _STORE_CALLS if not callable(getattr(self.store, call, None))]:
            raise TypeError(f"store is a JobStore; {self.store!r:.100} has no {', '.join(missing)}")
