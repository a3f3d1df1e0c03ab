"""The use cases of timers and their engine, with a clock that the test sets."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from sqlalchemy import text

from jobkit.errors import SchedulerError
from jobkit.job import Done, Job, JobUpdate
from jobkit.scheduler import Config, Scheduler
from postflow.bus.v1 import bus_pb2
from postflow.schedule.v1 import timer_service_pb2 as messages
from postflow.schedule.v1.schedule_events_pb2 import TimerFired
from postflow.schedule.v1.timer_pb2 import Timer
from schedule_service.application.timers.create_timer import CreateTimer
from schedule_service.application.timers.delete_finished_timers import DeleteFinishedTimers
from schedule_service.application.timers.delete_timer import DeleteTimer
from schedule_service.application.timers.fire_timer import FireTimer
from schedule_service.application.timers.get_timer import GetTimer
from schedule_service.application.timers.pause_timer import PauseTimer, ResumeTimer
from schedule_service.domain.timers.timer import MOST_TIMERS
from schedule_service.domain.timers.timer_request import TimerRequest
from schedule_service.engine.timer_engine import TimerJobs, due_timer_jobs
from schedule_service.wire import timers as wire
from servicekit.ids import Uuid7Source
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.ledger import RequestLedger, mutation
from servicekit.pg.outbox import Outbox, OutboxRow
from testkit.clocks import START
from testkit.database_clocks import FrozenDatabaseClock


class Fired:
    """Stands in for the relay: keeps what timers announced."""

    def __init__(self) -> None:
        self.events: list[TimerFired] = []

    def offer(self, rows: Sequence[OutboxRow]) -> None:
        for row in rows:
            assert row.subject == "events.schedule.timer"
            for event in bus_pb2.Envelope.FromString(row.payload).events:
                fired = TimerFired.FromString(event.payload)
                assert event.type == TimerFired.DESCRIPTOR.full_name
                assert (event.organization_id, event.aggregate_id) == (fired.organization_id, fired.timer_id)
                self.events.append(fired)

    @property
    def keys(self) -> list[str]:
        return [event.occurrence_key for event in self.events]


class Timers:
    """The use cases of timers, and their engine, which runs when `fire_due` is called."""

    def __init__(self, database: Database, *, live: bool = False, most: int = MOST_TIMERS) -> None:
        """`live` uses the clock of the database instead of one that a test sets. `most` limits an organization."""
        self.database = database
        self.clock = FrozenDatabaseClock(tick=timedelta.resolution)
        self._clock = DatabaseClock() if live else self.clock
        self.fired = Fired()
        self.woken: list[timedelta] = []
        self.errors: list[SchedulerError] = []
        clock, ledger, ids = self._clock, RequestLedger(database, self._clock), Uuid7Source()
        outbox, wake = Outbox(ids, self.fired.offer), self.woken.append
        self._create = CreateTimer(ids=ids, ledger=ledger, wake=wake, most=most)
        self._get = GetTimer(database=database)
        self._pause = PauseTimer(ledger=ledger)
        self._resume = ResumeTimer(ledger=ledger, wake=wake)
        self._fire = FireTimer(ids=ids, ledger=ledger, outbox=outbox)
        self._delete = DeleteTimer(ledger=ledger)
        self.delete_finished = DeleteFinishedTimers(database=database, clock=clock)
        self.outbox = outbox

    async def create(
        self, timer_id: str = "t", *, organization_id: str = "acme", request_id: str = "", **fields: object
    ) -> Timer:
        request = TimerRequest(**({"topic": "drafts.generate"} | fields))  # type: ignore[arg-type]
        create = mutation(
            messages.CreateTimerRequest(organization_id=organization_id, request_id=request_id),
            messages.CreateTimerResponse,
            wire.create_timer_response,
        )
        return (await self._create(create, timer_id=timer_id, request=request)).timer

    async def get(self, timer_id: str = "t", *, organization_id: str = "acme") -> Timer:
        return wire.shown(await self._get(organization_id=organization_id, timer_id=timer_id))

    async def pause(
        self, timer_id: str = "t", *, organization_id: str = "acme", etag: str = "", request_id: str = ""
    ) -> Timer:
        pause = mutation(
            messages.PauseTimerRequest(organization_id=organization_id, request_id=request_id),
            messages.PauseTimerResponse,
            wire.pause_timer_response,
        )
        return (await self._pause(pause, timer_id=timer_id, etag=etag)).timer

    async def resume(
        self, timer_id: str = "t", *, organization_id: str = "acme", etag: str = "", request_id: str = ""
    ) -> Timer:
        resume = mutation(
            messages.ResumeTimerRequest(organization_id=organization_id, request_id=request_id),
            messages.ResumeTimerResponse,
            wire.resume_timer_response,
        )
        return (await self._resume(resume, timer_id=timer_id, etag=etag)).timer

    async def fire(
        self, timer_id: str = "t", *, organization_id: str = "acme", request_id: str = ""
    ) -> messages.FireTimerResponse:
        fire = mutation(
            messages.FireTimerRequest(organization_id=organization_id, request_id=request_id),
            messages.FireTimerResponse,
            wire.fire_timer_response,
        )
        return await self._fire(fire, timer_id=timer_id)

    async def delete(
        self, timer_id: str = "t", *, organization_id: str = "acme", etag: str = "", request_id: str = ""
    ) -> None:
        delete = mutation(
            messages.DeleteTimerRequest(organization_id=organization_id, request_id=request_id),
            messages.DeleteTimerResponse,
            wire.delete_timer_response,
        )
        await self._delete(delete, timer_id=timer_id, etag=etag)

    def jobs(self) -> TimerJobs:
        """Returns those of another replica each time."""
        return due_timer_jobs(database=self.database, clock=self._clock, outbox=self.outbox)

    async def lock_all(self, replica: TimerJobs) -> list[Job]:
        """Locks what is due for ten seconds, like a worker that then stalls."""
        now = self.clock.moment
        jobs = await replica.store.lock_next(now, now + timedelta(seconds=10), 100)
        assert await replica.handler(jobs) == [Done()] * len(jobs)
        return jobs

    async def settle(self, replica: TimerJobs, jobs: Sequence[Job]) -> set[object]:
        """Settles the jobs, like a worker that resumes; returns the ids of the timers that it could still write."""
        next_year = START + timedelta(days=365)
        update = JobUpdate(due_time=next_year, sleep_until=next_year, attempts=0, last_error=None)
        return {lock.id for lock in await replica.store.update([(job.lock, update) for job in jobs])}

    async def set_row(self, values: str) -> None:
        """Changes every row, so that this release reads what another release has written."""
        async with self.database.transaction() as tx:
            await tx.connection.execute(text(f"update timer set {values}"))  # noqa: S608 - constants

    async def use_older_zone(self, time_zone: str, data: bytes, due: datetime) -> None:
        """Changes every timer to one that tzdata 2020a, with this data of the zone, has computed."""
        async with self.database.transaction() as tx:
            await tx.connection.execute(
                text("insert into zone_data values ('2020a', :zone, :data)"), {"zone": time_zone, "data": data}
            )
            await tx.connection.execute(
                text("update timer set tzdata_version = '2020a', due_time = :due, sleep_until = :due"), {"due": due}
            )

    async def fire_due(self, jobs: TimerJobs | None = None, *, batch: int = 100) -> list[str]:
        """Runs until nothing is due; returns the keys of what fired, in order."""
        before = len(self.fired.keys)
        idle, stop = asyncio.Event(), asyncio.Event()

        async def done() -> None:
            idle.set()

        async def note(error: SchedulerError) -> None:
            self.errors.append(error)

        jobs = jobs or self.jobs()
        config = Config(
            store=jobs.store,
            on_batch=jobs.handler,
            on_idle=done,
            on_error=note,
            batch=batch,
            lock_duration=timedelta(seconds=10),
            # Time stands still: only the clock of the database counts.
            monotonic=lambda: 0.0,
        )
        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            group.create_task(Scheduler(config).run(stop))
            await idle.wait()
            stop.set()
        return self.fired.keys[before:]


@pytest.fixture
def timers(database: Database) -> Timers:
    return Timers(database)


@pytest.fixture
def three_timers(database: Database) -> Timers:
    """Timers of a service whose limit is three per organization."""
    return Timers(database, most=3)


@pytest.fixture
def live_timers(database: Database) -> Timers:
    return Timers(database, live=True)
