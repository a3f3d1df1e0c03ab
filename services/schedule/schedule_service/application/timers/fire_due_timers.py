"""Fires due timers: a settled occurrence becomes a TimerFired event.

The event, the count and the next time are committed in one transaction. A process that dies while it holds timers has
therefore fired none of them (another takes over when the locks expire), and a process that lost its locks fires none.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime

from opentelemetry import metrics, trace
from opentelemetry.trace import SpanKind

from civil.zones import find_zone
from jobkit.job import JobUpdate, Lock
from schedule_service.adapters.postgres.due_timers import SettledBatch, remove_timers, settle_timers
from schedule_service.adapters.postgres.zone_data import record_zones
from schedule_service.domain.timers.occurrence import Occurrence
from schedule_service.wire import timers as wire
from servicekit.failpoints import declare, failpoint
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.outbox import Outbox
from servicekit.run.histograms import Histogram
from servicekit.run.telemetry import linked_trace
from servicekit.run.zeros import from_zero

FIRED = declare("schedule.timers.fired")

_log = logging.getLogger(__name__)
_tracer = trace.get_tracer(__name__)
_meter = metrics.get_meter(__name__)
_lateness = Histogram(
    "postflow.timer.lateness",
    scope=__name__,
    unit="s",
    description="Time from the due time of a timer to its firing",
    bounds=[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 300, 3600],
)
_fired = from_zero(_meter.create_counter("postflow.timer.fired", description="Timers fired by their schedules"))


class FireDueTimers:
    def __init__(self, *, database: Database, clock: DatabaseClock, outbox: Outbox) -> None:
        self._database = database
        self._clock = clock
        self._outbox = outbox
        self._recorded: set[str] = set()
        """Zones whose current data is known to be recorded."""

    async def settle(self, changes: Sequence[tuple[Lock, JobUpdate, Occurrence | None]]) -> frozenset[Lock]:
        """Fires the given occurrences and writes when their timers fire next. Returns the locks that still held."""

        async def write(tx: Transaction, now: datetime) -> SettledBatch:
            return await settle_timers(tx.connection, changes, now=now)

        return await self._fire(write, (occurrence for _, _, occurrence in changes))

    async def remove(self, removals: Sequence[tuple[Lock, Occurrence | None]]) -> frozenset[Lock]:
        """Fires the given occurrences for the last time and deletes their timers. Returns the locks that still held."""

        async def write(tx: Transaction, now: datetime) -> SettledBatch:
            return await remove_timers(tx.connection, removals, now=now)

        return await self._fire(write, (occurrence for _, occurrence in removals))

    async def _fire(
        self,
        write: Callable[[Transaction, datetime], Awaitable[SettledBatch]],
        occurrences: Iterable[Occurrence | None],
    ) -> frozenset[Lock]:
        origins = (each.traceparent for each in occurrences if each and each.traceparent)
        with linked_trace(_tracer, "schedule fire timers", origins, kind=SpanKind.PRODUCER):
            settled = await self._database.run(lambda tx: self._write(tx, write))
        if settled.fired:
            await failpoint(FIRED)
        return settled.locks

    async def _write(
        self, tx: Transaction, write: Callable[[Transaction, datetime], Awaitable[SettledBatch]]
    ) -> SettledBatch:
        now = await self._clock.now(tx.connection)
        settled = await write(tx, now)
        if new := settled.zones - self._recorded:
            await record_zones(tx.connection, map(find_zone, new))
        await self._outbox.append(tx, [wire.timer_fired(each) for each in settled.fired], now=now)
        tx.after_commit(lambda: self._count(settled))
        return settled

    def _count(self, settled: SettledBatch) -> None:
        self._recorded |= settled.zones
        if settled.skipped:
            _log.info("timers: skipped %d occurrences that were too late under their policy", settled.skipped)
        _fired.add(len(settled.fired))
        for each in settled.fired:
            _lateness.record((each.fire_time - each.due_time).total_seconds())
