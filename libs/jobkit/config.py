"""The configuration of a scheduler: handlers, delays, limits."""

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
"""Does one job. None counts as Done, an exception as Failed. A function that is not `async def` runs in a thread."""
OnBatch: TypeAlias = (
    Callable[[Sequence[Job]], Awaitable[Sequence[Outcome]]] | Callable[[Sequence[Job]], Sequence[Outcome]]
)
"""Does a batch and returns an outcome for each job, in order. An exception counts as Failed for all of them."""
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
    """Needs a store and either `on_document` or `on_batch`; everything else has a default.

    `on_start` runs before the first look, and its error ends the start. Errors of the other hooks, of handlers and of
    the store go to `on_error`, and the scheduler goes on. Hooks are awaited where something happened: a slow `on_error`
    keeps a worker waiting, a slow `on_idle` all of them. Locks are extended meanwhile.
    """

    store: JobStore
    name: str = "jobs"
    """Appears in logs and in the names of tasks and threads."""
    on_document: OnDocument | None = None
    on_batch: OnBatch | None = None
    on_start: Hook | None = None
    on_stop: Hook | None = None
    on_idle: Hook | None = None
    """Called once each time that nothing is left to do."""
    on_error: OnError | None = None
    """None: errors are logged."""
    next_delay: timedelta = _ZERO
    """How long a worker waits between two batches."""
    reprocess_delay: timedelta = _ZERO
    """The minimum time between the end of a run and the next run of the same job."""
    idle_delay: timedelta = timedelta(seconds=1)
    """How long an idle scheduler sleeps at most, so how late it may see a row that was inserted without `wake()`."""
    lock_duration: timedelta = timedelta(minutes=10)
    """How long a lock lasts; then a dead worker's job is taken over. Long runs extend their locks each third of it."""
    run_timeout: timedelta | None = timedelta(minutes=10)
    """How long a run may take (under `on_batch` the whole batch); then it is cancelled and has failed. None: no limit.

    Also the limit of `on_idle` and `on_error`.
    """
    cancel_grace: timedelta = timedelta(seconds=5)
    """How long a cancelled run may take to end; then its worker abandons it, and its lock is no longer extended."""
    batch: int = 1
    """How many jobs a worker locks at once. It locks fewer while jobs are slow."""
    batch_time: timedelta = timedelta(milliseconds=250)
    """How long a worker keeps jobs of a batch that it has not begun; then it gives them back for other workers."""
    workers: int = 1
    """How many batches are processed at once."""
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    misfire_after: timedelta = timedelta(seconds=60)
    """How late an occurrence may be before SKIP skips it."""
    pace: timedelta = timedelta(seconds=1)
    """The minimum time between two late occurrences of a job under FIRE_ALL."""
    grace: timedelta = timedelta(seconds=15)
    """How long runs may take to finish after a stop; then they are cancelled, and their jobs unlocked."""
    monotonic: Callable[[], float] = time.monotonic
    """The clock that durations are measured with."""
    draw: Callable[[], float] = random.random
    """Draws numbers from [0, 1) for the jitter of back-offs."""

    def __post_init__(self) -> None:
        self._check_types()
        if (self.on_document is None) == (self.on_batch is None):
            raise ValueError("set either on_document or on_batch")
        if self.batch < 1 or self.workers < 1:
            raise ValueError("workers and batch must be at least one")
        limit = self.lock_duration if self.run_timeout is None else self.run_timeout
        if min(self.idle_delay, self.lock_duration, limit) <= _ZERO:
            raise ValueError("idle_delay, lock_duration and run_timeout must be positive")
        if self.lock_duration > _LONGEST_LOCK:
            raise ValueError(f"lock_duration must be at most {_LONGEST_LOCK.days} days")
        if any(getattr(self, name) < _ZERO for name in _DELAYS):
            raise ValueError("delays must not be negative")

    def _check_types(self) -> None:
        for name, (wanted, says) in _TYPES.items():
            value = getattr(self, name)
            if not isinstance(value, wanted) or isinstance(value, bool):
                raise TypeError(f"{name} must be {says}, not {value!r:.100}")
        for name in (*_CALLED, *_CALLED_ALWAYS):
            value = getattr(self, name)
            if not callable(value) and (value is not None or name in _CALLED_ALWAYS):
                raise TypeError(f"{name} must be a function, not {value!r:.100}")
        if missing := [call for call in _STORE_CALLS if not callable(getattr(self.store, call, None))]:
            raise TypeError(f"store must be a JobStore; {self.store!r:.100} has no {', '.join(missing)}")
