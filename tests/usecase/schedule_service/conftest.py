"""The use cases of account schedules on a real database, with a clock that the test sets."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime, time, timedelta

import pytest
from sqlalchemy.ext.asyncio import AsyncConnection

from civil.weekly import WeeklySlot
from civil.windows import SendWindow
from civil.zones import find_zone
from postflow.bus.v1 import bus_pb2
from postflow.schedule.v1.account_schedule_pb2 import AccountSchedule
from postflow.schedule.v1.schedule_events_pb2 import AccountScheduleChanged
from schedule_service.application.delete_account_schedule import DeleteAccountSchedule
from schedule_service.application.follow_slots import ForgetPastSlots, follow_slots
from schedule_service.application.get_account_schedule import GetAccountSchedule
from schedule_service.application.put_account_schedule import PutAccountSchedule
from schedule_service.domain.account_schedule import Timetable
from schedule_service.domain.upcoming_slot import UpcomingSlot
from servicekit.ids import Uuid7Source
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.ledger import RequestKey, RequestLedger
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
    """Takes the place of the relay."""

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
        return (await self._get(organization_id=organization_id, social_account_id=social_account_id)).account_schedule

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

    async def hear(self, *slots: UpcomingSlot) -> None:
        """One batch."""
        await self.database.run(lambda tx: follow_slots(tx, slots, self.clock.moment))


@pytest.fixture
async def schedule_database(service_database: Callable[[str], Awaitable[str]]) -> AsyncIterator[Database]:
    database = Database(await service_database("schedule"), application="test", pool_size=4)
    yield database
    await database.dispose()


@pytest.fixture
def schedules(schedule_database: Database) -> Schedules:
    return Schedules(schedule_database)


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
