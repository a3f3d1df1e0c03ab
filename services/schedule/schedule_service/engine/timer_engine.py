"""The timer engine: jobkit's scheduler on the table of timers."""

import asyncio
import logging
from datetime import timedelta
from typing import NamedTuple

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
from schedule_service.engine.batch import BatchHandler, CurrentBatch
from schedule_service.engine.occurrences import Occurrences
from schedule_service.engine.timer_store import TimerStore
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.outbox import Outbox
from servicekit.run import is_transient
from servicekit.run.zeros import from_zero

# A timer is retried forever, because any error that keeps it from firing is transient, or ends the process.
_RETRY = RetryPolicy(max_attempts=2**31 - 1, first=timedelta(seconds=1), cap=timedelta(minutes=1))
# Normal effects of pauses, deletions, other replicas and misfire policies.
_EXPECTED = (LateWrite, LockLost, OccurrenceSkipped)

_log = logging.getLogger(__name__)
_meter = metrics.get_meter(__name__)
_troubles = from_zero(
    _meter.create_counter("postflow.timer.troubles", description="Errors that kept timers from firing, by kind"),
    *({"kind": kind.__name__} for kind in (StoreFailed, RunTimedOut, RunLost, LoopBlocked, InvalidJob)),
)


class TimerJobs(NamedTuple):
    """The two sides that jobkit's scheduler works on."""

    store: TimerStore
    handler: BatchHandler


def due_timer_jobs(*, database: Database, clock: DatabaseClock, outbox: Outbox) -> TimerJobs:
    batch = CurrentBatch()
    fire = FireDueTimers(database=database, clock=clock, outbox=outbox)
    return TimerJobs(
        store=TimerStore(database=database, clock=clock, fire=fire, batch=batch),
        handler=BatchHandler(Occurrences(database), batch),
    )


class TimerEngine:
    name = "timers"

    def __init__(self, jobs: TimerJobs, *, poll: timedelta, batch: int, lock: timedelta) -> None:
        """`poll` bounds how late a new timer of another replica is found; `lock` is the most time a batch may take."""
        self._poll = poll
        self._failure: Exception | None = None
        self._halt = asyncio.Event()
        self._scheduler = Scheduler(
            Config(
                store=jobs.store,
                name=self.name,
                on_batch=jobs.handler,
                on_error=self._on_error,
                idle_delay=poll,
                lock_duration=lock,
                batch=batch,
                retry=_RETRY,
            )
        )

    def wake(self, ahead: timedelta) -> None:
        """Wakes the engine for a new timer due in `ahead`, unless the next poll comes before that."""
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
    """Returns the organization and id of the timer concerned: callers do not know jobkit's job id."""
    if not isinstance(error, JobError):
        return {}
    return {"organization_id": error.job.data["organization_id"], "timer_id": error.job.data["id"]}
