"""Putting schedules into a real database: what is stored, announced, refused and remembered."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from civil.weekly import WeeklySlot
from civil.zones import find_zone
from postflow.bus.v1 import bus_pb2
from postflow.schedule.v1.account_schedule_pb2 import AccountSchedule
from postflow.schedule.v1.schedule_events_pb2 import AccountScheduleChanged
from schedule_service.application.put_account_schedule import PutAccountSchedule
from schedule_service.domain.account_schedule import Timetable
from servicekit.faults import Conflict, InvalidField
from servicekit.ids import Uuid7Source
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.ledger import RequestKey, RequestLedger
from servicekit.pg.outbox import Outbox, OutboxRow

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
)
OTHER = replace(TIMETABLE, enabled=False)


class Announced:
    """Takes the place of the relay."""

    def __init__(self) -> None:
        self.subjects: list[str] = []
        self.schedules: list[AccountSchedule] = []

    def offer(self, rows: Sequence[OutboxRow]) -> None:
        for row in rows:
            (event,) = bus_pb2.Envelope.FromString(row.payload).events
            changed = AccountScheduleChanged.FromString(event.payload)
            assert event.type == AccountScheduleChanged.DESCRIPTOR.full_name
            assert event.organization_id == changed.organization_id
            assert event.aggregate_id == changed.account_schedule.social_account_id
            self.subjects.append(row.subject)
            self.schedules.append(changed.account_schedule)


class Puts:
    def __init__(self, database: Database, announced: Announced) -> None:
        outbox = Outbox(Uuid7Source(), announced.offer)
        self._put = PutAccountSchedule(database=database, clock=DatabaseClock(), ledger=RequestLedger(), outbox=outbox)

    async def __call__(
        self,
        timetable: Timetable = TIMETABLE,
        *,
        organization_id: str = "acme",
        etag: str = "",
        request_id: str = "",
        digest: bytes = b"",
    ) -> AccountSchedule:
        key = RequestKey(organization_id=organization_id, method="Put", request_id=request_id, request_digest=digest)
        return (await self._put(key, social_account_id="page", timetable=timetable, etag=etag)).account_schedule


@pytest.fixture
def announced() -> Announced:
    return Announced()


@pytest.fixture
def put(schedule_database: Database, announced: Announced) -> Puts:
    return Puts(schedule_database, announced)


async def test_a_new_schedule_is_stored_and_announced_as_a_whole(put: Puts, announced: Announced) -> None:
    schedule = await put()
    assert schedule.version == 1
    assert schedule.create_time == schedule.update_time
    assert (schedule.name, schedule.time_zone, schedule.max_posts_per_day) == ("Default queue", "America/New_York", 2)
    assert [(slot.day_of_week, slot.hour, slot.minute) for slot in schedule.weekly_slots] == [
        (7, 0, 0),
        (1, 9, 0),
        (6, 23, 59),
    ]
    assert announced.schedules == [schedule]
    assert announced.subjects == ["events.schedule.acme.account_schedule"]


async def test_a_replacement_keeps_its_beginning_and_grows_in_version(put: Puts, announced: Announced) -> None:
    first = await put()
    second = await put(OTHER)
    assert second.version == 2
    assert not second.enabled
    assert second.create_time == first.create_time
    assert second.update_time.ToNanoseconds() > first.update_time.ToNanoseconds()
    assert announced.schedules == [first, second]


async def test_what_is_there_already_is_neither_changed_nor_announced_again(put: Puts, announced: Announced) -> None:
    first = await put()
    assert await put() == first
    assert await put(etag=first.etag) == first
    assert announced.schedules == [first]


async def test_an_etag_guards_against_changes_since(put: Puts, announced: Announced) -> None:
    first = await put()
    second = await put(OTHER, etag=first.etag)
    with pytest.raises(Conflict) as refusal:
        await put(TIMETABLE, etag=first.etag)
    assert refusal.value.reason == "ETAG_MISMATCH"
    assert await put(OTHER) == second
    assert len(announced.schedules) == 2


async def test_an_etag_of_a_schedule_that_is_not_there_is_refused(put: Puts, announced: Announced) -> None:
    with pytest.raises(Conflict):
        await put(etag="0123456789abcdef")
    assert (await put()).version == 1
    assert len(announced.schedules) == 1


async def test_organizations_do_not_meet_even_with_the_same_account_id(put: Puts) -> None:
    ours = await put(organization_id="acme")
    theirs = await put(OTHER, organization_id="umbrella")
    assert theirs.version == 1
    assert await put(organization_id="acme") == ours


async def test_a_repeated_request_is_answered_as_the_first_time(put: Puts, announced: Announced) -> None:
    first = await put(request_id="r1", digest=b"one")
    await put(OTHER)
    assert await put(request_id="r1", digest=b"one") == first
    assert len(announced.schedules) == 2
    assert (await put(OTHER)).version == 2


async def test_a_request_id_is_good_for_one_request_only(put: Puts) -> None:
    await put(request_id="r1", digest=b"one")
    with pytest.raises(InvalidField) as refusal:
        await put(OTHER, request_id="r1", digest=b"another")
    assert refusal.value.reason == "REQUEST_ID_REUSED"


async def test_a_refusal_is_not_remembered(put: Puts) -> None:
    with pytest.raises(Conflict):
        await put(OTHER, etag="0123456789abcdef", request_id="r1")
    assert (await put(request_id="r1")).version == 1


async def test_puts_at_the_same_time_take_turns(put: Puts, announced: Announced) -> None:
    names = [f"queue {number}" for number in range(8)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(put(replace(TIMETABLE, name=name))) for name in names]
    assert sorted(task.result().version for task in tasks) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert sorted(schedule.version for schedule in announced.schedules) == [1, 2, 3, 4, 5, 6, 7, 8]
    last = max(announced.schedules, key=lambda schedule: schedule.version)
    assert await put(replace(TIMETABLE, name=last.name)) == last
