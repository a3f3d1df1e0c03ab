"""The use cases of account schedules and timers on a real database, with a clock that the test sets."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime, time, timedelta

import pytest
from sqlalchemy.ext.asyncio import AsyncConnection

from civil.weekly import WeeklySlot
from civil.windows import SendWindow
from civil.zones import find_zone
from jobkit.errors import SchedulerError
from jobkit.scheduler import Config, Scheduler
from postflow.bus.v1 import bus_pb2
from postflow.schedule.v1.account_schedule_pb2 import AccountSchedule
from postflow.schedule.v1.schedule_events_pb2 import AccountScheduleChanged, TimerFired
from postflow.schedule.v1.timer_pb2 import Timer
from postflow.schedule.v1.timer_service_pb2 import FireTimerResponse
from schedule_service.application.calendars.delete_account_schedule import DeleteAccountSchedule
from schedule_service.application.calendars.follow_slots import ForgetPastSlots, follow_slots
from schedule_service.application.calendars.get_account_schedule import GetAccountSchedule
from schedule_service.application.calendars.put_account_schedule import PutAccountSchedule
from schedule_service.application.timers.create_timer import CreateTimer
from schedule_service.application.timers.delete_finished_timers import DeleteFinishedTimers
from schedule_service.application.timers.delete_timer import DeleteTimer
from schedule_service.application.timers.fire_timer import FireTimer
from schedule_service.application.timers.get_timer import GetTimer
from schedule_service.application.timers.pause_timer import PauseTimer, ResumeTimer
from schedule_service.domain.calendars.account_schedule import Timetable
from schedule_service.domain.calendars.upcoming_slot import UpcomingSlot
from schedule_service.domain.timers.timer import MOST_TIMERS
from schedule_service.domain.timers.timer_request import TimerRequest
from schedule_service.engine.timer_engine import TimerJobs, due_timer_jobs
from schedule_service.wire import account_schedules
from schedule_service.wire import timers as wire_timers
from servicekit.ids import Uuid7Source
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.ledger_by_hand import RequestKey, RequestLedger
from servicekit.pg.outbox import Outbox, OutboxRow
from testkit.clocks import START

TIMETABLE = Timetable(
    name="Default queue",
    zone=find_zone("America/New_York"),
    weekly_slots=(
        WeeklySlot(day=0, hour=0, minute=0),
        WeeklySlot(day=1, hour=9, minute=0),
        WeeklySlot(day=6, hour=23, minute=59),
    ),
    max_posts_per_day=2,
    enabled=True,
    send_window=SendWindow(days=frozenset({0, 1, 6}), start=time(8, 30), end=None),
    min_spacing=timedelta(minutes=6),
)


class SetClock(DatabaseClock):
    """The database's clock, as a test sets it; a microsecond later each time it is read."""

    def __init__(self) -> None:
        self.moment = START

    async def now(self, connection: AsyncConnection) -> datetime:
        self.moment += timedelta.resolution
        return self.moment


class Announced:
    """Stands in for the relay."""

    def __init__(self) -> None:
        self.subjects: list[str] = []
        self.events: list[AccountScheduleChanged] = []

    def offer(self, rows: Sequence[OutboxRow]) -> None:
        for row in rows:
            (event,) = bus_pb2.Envelope.FromString(row.payload).events
            changed = AccountScheduleChanged.FromString(event.payload)
            assert event.type == AccountScheduleChanged.DESCRIPTOR.full_name
            assert event.organization_id == changed.organization_id
            assert event.aggregate_id == changed.account_schedule.social_account_id
            self.subjects.append(row.subject)
            self.events.append(changed)

    @property
    def schedules(self) -> list[AccountSchedule]:
        return [changed.account_schedule for changed in self.events]


class Schedules:
    def __init__(self, database: Database) -> None:
        self.database = database
        self.clock = SetClock()
        self.announced = Announced()
        self.timetable = TIMETABLE
        ledger, outbox = RequestLedger(), Outbox(Uuid7Source(), self.announced.offer)
        self._put = PutAccountSchedule(database=database, clock=self.clock, ledger=ledger, outbox=outbox)
        self._get = GetAccountSchedule(database)
        self._delete = DeleteAccountSchedule(database=database, clock=self.clock, ledger=ledger, outbox=outbox)
        self.forget = ForgetPastSlots(database=database, clock=self.clock)

    async def put(
        self,
        timetable: Timetable = TIMETABLE,
        *,
        organization_id: str = "acme",
        social_account_id: str = "page",
        etag: str = "",
        request_id: str = "",
        digest: bytes = b"",
    ) -> AccountSchedule:
        key = RequestKey(organization_id=organization_id, method="Put", request_id=request_id, request_digest=digest)
        return (
            await self._put(key, social_account_id=social_account_id, timetable=timetable, etag=etag)
        ).account_schedule

    async def get(self, *, organization_id: str = "acme", social_account_id: str = "page") -> AccountSchedule:
        return account_schedules.shown(
            await self._get(organization_id=organization_id, social_account_id=social_account_id)
        )

    async def delete(
        self,
        *,
        organization_id: str = "acme",
        etag: str = "",
        force: bool = False,
        request_id: str = "",
        digest: bytes = b"",
    ) -> None:
        key = RequestKey(organization_id=organization_id, method="Delete", request_id=request_id, request_digest=digest)
        await self._delete(key, social_account_id="page", etag=etag, force=force)

    async def receive(self, *slots: UpcomingSlot) -> None:
        """Applies one batch of Queue's events."""
        await self.database.run(lambda tx: follow_slots(tx, slots, self.clock.moment))


class Fired:
    """Stands in for the relay: keeps what timers announced."""

    def __init__(self) -> None:
        self.events: list[TimerFired] = []

    def offer(self, rows: Sequence[OutboxRow]) -> None:
        for row in rows:
            (event,) = bus_pb2.Envelope.FromString(row.payload).events
            fired = TimerFired.FromString(event.payload)
            assert event.type == TimerFired.DESCRIPTOR.full_name
            assert row.subject == f"events.schedule.{fired.organization_id}.timer"
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
        self.clock = SetClock()
        self._clock = DatabaseClock() if live else self.clock
        self.fired = Fired()
        self.woken: list[timedelta] = []
        self.errors: list[SchedulerError] = []
        clock, ledger, ids = self._clock, RequestLedger(), Uuid7Source()
        outbox, wake = Outbox(ids, self.fired.offer), self.woken.append
        self._create = CreateTimer(database=database, clock=clock, ids=ids, ledger=ledger, wake=wake, most=most)
        self._get = GetTimer(database=database)
        self._pause = PauseTimer(database=database, clock=clock, ledger=ledger)
        self._resume = ResumeTimer(database=database, clock=clock, ledger=ledger, wake=wake)
        self._fire = FireTimer(database=database, clock=clock, ids=ids, ledger=ledger, outbox=outbox)
        self._delete = DeleteTimer(database=database, clock=clock, ledger=ledger)
        self.delete_finished = DeleteFinishedTimers(database=database, clock=clock)
        self.outbox = outbox

    async def create(
        self, timer_id: str = "t", *, organization_id: str = "acme", request_id: str = "", **fields: object
    ) -> Timer:
        request = TimerRequest(**({"topic": "drafts.generate"} | fields))  # type: ignore[arg-type]
        answer = await self._create(_key(organization_id, "Create", request_id), timer_id=timer_id, request=request)
        return answer.timer

    async def get(self, timer_id: str = "t", *, organization_id: str = "acme") -> Timer:
        return wire_timers.shown(await self._get(organization_id=organization_id, timer_id=timer_id))

    async def pause(
        self, timer_id: str = "t", *, organization_id: str = "acme", etag: str = "", request_id: str = ""
    ) -> Timer:
        key = _key(organization_id, "Pause", request_id)
        return (await self._pause(key, timer_id=timer_id, etag=etag)).timer

    async def resume(
        self, timer_id: str = "t", *, organization_id: str = "acme", etag: str = "", request_id: str = ""
    ) -> Timer:
        key = _key(organization_id, "Resume", request_id)
        return (await self._resume(key, timer_id=timer_id, etag=etag)).timer

    async def fire(
        self, timer_id: str = "t", *, organization_id: str = "acme", request_id: str = ""
    ) -> FireTimerResponse:
        return await self._fire(_key(organization_id, "Fire", request_id), timer_id=timer_id)

    async def delete(
        self, timer_id: str = "t", *, organization_id: str = "acme", etag: str = "", request_id: str = ""
    ) -> None:
        await self._delete(_key(organization_id, "Delete", request_id), timer_id=timer_id, etag=etag)

    def jobs(self) -> TimerJobs:
        """Returns those of another replica each time."""
        return due_timer_jobs(database=self.database, clock=self._clock, outbox=self.outbox)

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


def _key(organization_id: str, method: str, request_id: str) -> RequestKey:
    return RequestKey(organization_id=organization_id, method=method, request_id=request_id, request_digest=b"")


@pytest.fixture
async def schedule_database(service_database: Callable[[str], Awaitable[str]]) -> AsyncIterator[Database]:
    database = Database(await service_database("schedule"), application="test", pool_size=4)
    yield database
    await database.dispose()


@pytest.fixture
def schedules(schedule_database: Database) -> Schedules:
    return Schedules(schedule_database)


@pytest.fixture
def timers(schedule_database: Database) -> Timers:
    return Timers(schedule_database)


@pytest.fixture
def three_timers(schedule_database: Database) -> Timers:
    """Timers of a service whose limit is three per organization."""
    return Timers(schedule_database, most=3)


@pytest.fixture
def live_timers(schedule_database: Database) -> Timers:
    return Timers(schedule_database, live=True)


@pytest.fixture
def a_slot() -> Callable[..., UpcomingSlot]:
    """A slot of "page" an hour from now."""
    given = UpcomingSlot(
        organization_id="acme",
        slot_id="s1",
        social_account_id="page",
        revision=1,
        schedule_time=START + timedelta(hours=1),
    )

    def make(**changes: object) -> UpcomingSlot:
        return replace(given, **changes)  # type: ignore[arg-type]

    return make
