"""Timers that have come due become TimerFired events.

jobkit locks them, judges what is too late and says when each is due next. A timer fires in the very transaction that
writes this down: the event, the count and the next time are committed together, or not at all. So a process that dies
with timers in hand has fired none of them (another takes them over when the locks end), and one that lost its locks
fires none either.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from opentelemetry import metrics, trace
from opentelemetry.trace import SpanKind

from civil.cron import Dst
from civil.zones import Zone, find_zone, tzdata_version
from jobkit.job import Done, Job, JobUpdate, Lock, Misfire
from schedule_service.adapters.postgres import due_timers
from schedule_service.adapters.postgres.due_timers import Made, Settled
from schedule_service.adapters.postgres.zone_data import record_zones, recorded_zone
from schedule_service.domain.timers.timer import occurrence_key
from schedule_service.wire import timers as wire
from servicekit.failpoints import declare, failpoint
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.outbox import Outbox
from servicekit.run.telemetry import linked_trace
from servicekit.run.zeros import from_zero

_UTC = "UTC"

_log = logging.getLogger(__name__)

LOCKED = declare("schedule.timers.locked")
FIRED = declare("schedule.timers.fired")

_tracer = trace.get_tracer("schedule_service")
_meter = metrics.get_meter("schedule_service")
_lateness = _meter.create_histogram(
    "postflow.timer.lateness",
    unit="s",
    description="How long after its time a timer fired",
    explicit_bucket_boundaries_advisory=[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 300, 3600],
)
_fired = from_zero(_meter.create_counter("postflow.timer.fired", description="Timers that fired by their schedules"))


class FireDueTimers:
    """The store of jobkit's scheduler, and its handler: `on_batch` decides, `update` and `remove` fire."""

    def __init__(self, *, database: Database, clock: DatabaseClock, outbox: Outbox) -> None:
        self._database = database
        self._clock = clock
        self._outbox = outbox
        self._jobs = due_timers.timer_jobs(database, clock)
        self._due = due_timers.DueTimers(database, clock)
        self._made: dict[Lock, Made] = {}
        self._recorded: set[str] = set()
        self._laws: dict[tuple[str, str], Zone] = {}

    async def on_batch(self, jobs: Sequence[Job]) -> list[Done]:
        """There is one worker: it settles a batch before it takes the next.

        A batch that it has left, because it hung, may end at any time: it only adds what nobody asks for.
        """
        self._made.clear()
        await failpoint(LOCKED)
        made = {job.lock: await self._make(job) for job in jobs}
        self._made |= made
        return [Done()] * len(jobs)

    async def now(self) -> datetime:
        return await self._jobs.now()

    async def lock_next(self, now: datetime, lock_until: datetime, limit: int) -> list[Job]:
        return await self._due.lock_next(now, lock_until, limit)

    async def extend(self, locks: Sequence[Lock], lock_until: datetime) -> frozenset[Lock]:
        return await self._jobs.extend(locks, lock_until)

    async def next_due(self) -> datetime | None:
        return await self._jobs.next_due()

    async def update(self, changes: Sequence[tuple[Lock, JobUpdate]]) -> frozenset[Lock]:
        made = [self._made.get(lock) for lock, _ in changes]
        settling = [(lock, update, each) for (lock, update), each in zip(changes, made, strict=True)]

        async def settle(tx: Transaction) -> Settled:
            now = await self._clock.now(tx.connection)
            return await self._announce(tx, await due_timers.settle(tx.connection, settling, now=now), now)

        return await self._in_one_trace(settle, made)

    async def remove(self, locks: Sequence[Lock]) -> frozenset[Lock]:
        made = [self._made.get(lock) for lock in locks]
        removals = list(zip(locks, made, strict=True))

        async def remove(tx: Transaction) -> Settled:
            now = await self._clock.now(tx.connection)
            return await self._announce(tx, await due_timers.remove(tx.connection, removals, now=now), now)

        return await self._in_one_trace(remove, made)

    async def _in_one_trace(
        self, work: Callable[[Transaction], Awaitable[Settled]], made: Sequence[Made | None]
    ) -> frozenset[Lock]:
        origins = (each.traceparent for each in made if each and each.traceparent)
        with linked_trace(_tracer, "schedule fire timers", origins, kind=SpanKind.PRODUCER):
            settled = await self._database.run(work)
        if settled.fired:
            await failpoint(FIRED)
        return settled.locks

    async def _announce(self, tx: Transaction, settled: Settled, now: datetime) -> Settled:
        if new := settled.zones - self._recorded:
            await record_zones(tx.connection, map(find_zone, new))
        await self._outbox.append(tx, [wire.timer_fired(each) for each in settled.fired], now=now)
        tx.after_commit(lambda: self._count(settled))
        return settled

    def _count(self, settled: Settled) -> None:
        self._recorded |= settled.zones
        if settled.skipped:
            _log.info("timers: %d occurrences are left out, as is their policy: it is too late", settled.skipped)
        _fired.add(len(settled.fired))
        for each in settled.fired:
            _lateness.record(max((each.fire_time - each.due_time).total_seconds(), 0.0))

    async def _make(self, job: Job) -> Made:
        assert job.due_time is not None, "what is locked has an occurrence in hand"
        # Of one that fires once no zone is asked, whatever its row says.
        law = await self._law(job.data["tzdata_version"], job.time_zone if job.interval else _UTC)
        key = occurrence_key(job.interval, law, Dst(job.dst), job.due_time)
        # Under a new law an occurrence that fired under the old one may come up a second time.
        fired_before = key == job.data["last_occurrence_key"]
        return Made(
            due_time=job.due_time,
            occurrence_key=None if fired_before else key,
            not_after=_not_after(job),
            traceparent=job.data["traceparent"],
        )

    async def _law(self, release: str, time_zone: str) -> Zone:
        """The zone as it was when the times of a timer were computed."""
        if release == tzdata_version() or time_zone == _UTC:
            return find_zone(time_zone)
        if (release, time_zone) not in self._laws:
            async with self._database.read() as connection:
                self._laws[release, time_zone] = await recorded_zone(connection, release, time_zone)
        return self._laws[release, time_zone]


def _not_after(job: Job) -> datetime | None:
    """jobkit judges a first attempt before it: a worker may have died with the timer in hand, or have stood still."""
    if job.misfire != Misfire.SKIP or job.due_time is None or job.misfire_after is None:
        return None
    return job.due_time + job.misfire_after
