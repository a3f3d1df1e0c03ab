"""The part of the process that watches the clock: jobkit's scheduler over the table of timers."""

import asyncio
import logging
from datetime import timedelta

from opentelemetry import metrics

from jobkit.errors import (
    InvalidJob,
    JobError,
    LateWrite,
    LockLost,
    LoopBlocked,
    OccurrenceSkipped,
    RunLost,
    RunTimedOut,
    SchedulerError,
    StoreFailed,
)
from jobkit.retry import RetryPolicy
from jobkit.scheduler import Config, Scheduler
from schedule_service.application.timers.fire_due_timers import FireDueTimers
from servicekit.run import is_transient
from servicekit.run.zeros import from_zero

# A timer is never given up: what keeps it from firing passes, or ends the process.
_RETRY = RetryPolicy(max_attempts=2**31 - 1, first=timedelta(seconds=1), cap=timedelta(minutes=1))
# Nothing is wrong: they are what pauses, deletions, other replicas and policies look like from here.
_EXPECTED = (LateWrite, LockLost, OccurrenceSkipped)

_log = logging.getLogger(__name__)
_troubles = from_zero(
    metrics.get_meter("schedule_service").create_counter(
        "postflow.timer.troubles", description="What kept timers from firing, by kind"
    ),
    *({"kind": kind.__name__} for kind in (StoreFailed, RunTimedOut, RunLost, LoopBlocked, InvalidJob)),
)


class TimerEngine:
    name = "timers"

    def __init__(self, fire: FireDueTimers, *, poll: timedelta, batch: int, lock: timedelta) -> None:
        """`poll` is how late another replica's new timer may be seen, `lock` how long a batch may take at most."""
        self._poll = poll
        self._failure: Exception | None = None
        self._halt = asyncio.Event()
        self._scheduler = Scheduler(
            Config(
                store=fire,
                name=self.name,
                on_batch=fire.on_batch,
                on_error=self._on_error,
                idle_delay=poll,
                lock_duration=lock,
                batch=batch,
                retry=_RETRY,
            )
        )

    def wake(self, ahead: timedelta) -> None:
        """A timer has come that is due so far ahead. What is due later than the next poll is found by it."""
        if ahead <= self._poll:
            self._scheduler.wake()

    async def run(self, stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            watcher = group.create_task(self._halt_when(stop))
            await self._scheduler.run(self._halt)
            watcher.cancel()
        if self._failure:
            raise self._failure

    async def _halt_when(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._halt.set()

    async def _on_error(self, error: SchedulerError) -> None:
        _troubles.add(1, {"kind": type(error).__name__})
        if isinstance(error, StoreFailed) and not is_transient(error.error):
            self._failure = error.error
            self._halt.set()
        level = logging.INFO if isinstance(error, _EXPECTED) else logging.WARNING
        _log.log(level, "%s: %s", self.name, error, extra=_timer(error))


def _timer(error: SchedulerError) -> dict[str, str]:
    """Which one it is about, as callers name it; what jobkit calls a job is a number of ours."""
    if not isinstance(error, JobError):
        return {}
    return {"organization_id": error.job.data["organization_id"], "timer_id": error.job.data["id"]}
