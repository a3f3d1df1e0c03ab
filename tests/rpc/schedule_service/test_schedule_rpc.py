"""Schedule over the wire: a real server, a real stub, a real database."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, TypeAlias

import grpc
import pytest

from postflow.schedule.v1.account_schedule_pb2 import (
    DAY_OF_WEEK_MONDAY,
    DAY_OF_WEEK_SUNDAY,
    DAY_OF_WEEK_UNSPECIFIED,
    AccountSchedule,
    WeeklySlot,
)
from postflow.schedule.v1.schedule_service_pb2 import FindSlotTimesRequest, PutAccountScheduleRequest
from postflow.schedule.v1.schedule_service_pb2_grpc import ScheduleServiceStub, add_ScheduleServiceServicer_to_server
from schedule_service.main import Parts, schedule_servicer
from servicekit.faults import Conflict, Fault, InvalidRequest, NotFound
from servicekit.ids import Uuid7Source
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.ledger import RequestLedger
from servicekit.pg.outbox import Outbox
from servicekit.rpc import RpcServer, calling, open_channel

Stub: TypeAlias = "Any"

MONDAY = datetime(2026, 3, 2, 0, 0, tzinfo=UTC)
NINE = WeeklySlot(day_of_week=DAY_OF_WEEK_MONDAY, hour=9)


@pytest.fixture
async def stub(service_database: Callable[[str], Awaitable[str]]) -> AsyncIterator[Stub]:
    database = Database(await service_database("schedule"), application="test", pool_size=2)
    ids = Uuid7Source()
    parts = Parts(
        database=database, clock=DatabaseClock(), ids=ids, ledger=RequestLedger(), outbox=Outbox(ids, lambda _: None)
    )
    servicers = [(add_ScheduleServiceServicer_to_server, schedule_servicer(parts))]
    server = RpcServer(listen="127.0.0.1:0", servicers=servicers, ids=ids)
    await server.start()
    await server.set_serving(serving=True)
    async with open_channel(f"127.0.0.1:{server.port}") as channel:
        yield ScheduleServiceStub(channel)
    await server.stop(0)
    await database.dispose()


def put(request_id: str = "", **fields: Any) -> PutAccountScheduleRequest:
    given: dict[str, Any] = {"social_account_id": "page", "time_zone": "Europe/Berlin"} | fields
    return PutAccountScheduleRequest(
        organization_id="acme", account_schedule=AccountSchedule(**given), request_id=request_id
    )


def find(**fields: Any) -> FindSlotTimesRequest:
    given: dict[str, Any] = {"organization_id": "acme", "social_account_id": "page"} | fields
    return FindSlotTimesRequest(**given)


async def refusal(call: Awaitable[object]) -> Fault:
    with pytest.raises(Fault) as refused, calling():
        await call
    return refused.value


async def test_a_schedule_that_was_put_gives_its_times(stub: Stub) -> None:
    sunday = WeeklySlot(day_of_week=DAY_OF_WEEK_SUNDAY, hour=23, minute=30)
    answer = await stub.PutAccountSchedule(put(weekly_slots=[NINE, sunday], max_posts_per_day=3))
    assert list(answer.account_schedule.weekly_slots) == [sunday, NINE]
    found = await stub.FindSlotTimes(find(after=MONDAY, count=2))
    assert [time.time.ToDatetime(UTC).isoformat() for time in found.slot_times] == [
        "2026-03-02T08:00:00+00:00",
        "2026-03-08T22:30:00+00:00",
    ]
    assert [(time.local_date, time.local_time) for time in found.slot_times] == [
        ("2026-03-02", "09:00"),
        ("2026-03-08", "23:30"),
    ]


async def test_a_schedule_is_on_unless_it_is_switched_off(stub: Stub) -> None:
    on = await stub.PutAccountSchedule(put(weekly_slots=[NINE]))
    assert on.account_schedule.enabled
    off = await stub.PutAccountSchedule(put(weekly_slots=[NINE], enabled=False))
    assert not off.account_schedule.enabled
    assert list((await stub.FindSlotTimes(find())).slot_times) == []


async def test_ten_times_are_given_unless_told_otherwise(stub: Stub) -> None:
    await stub.PutAccountSchedule(put(weekly_slots=[NINE]))
    assert len((await stub.FindSlotTimes(find())).slot_times) == 10
    assert len((await stub.FindSlotTimes(find(count=1))).slot_times) == 1


async def test_the_largest_schedule_and_the_longest_answer_fit(stub: Stub) -> None:
    slots = [
        WeeklySlot(day_of_week=DAY_OF_WEEK_MONDAY, hour=hour, minute=minute)
        for hour in range(10)
        for minute in range(10, 60)
    ]
    await stub.PutAccountSchedule(put(weekly_slots=slots, name="x" * 200))
    assert len((await stub.FindSlotTimes(find(after=MONDAY, count=1000))).slot_times) == 1000


async def test_a_repeated_put_gets_the_same_answer(stub: Stub) -> None:
    first = await stub.PutAccountSchedule(put("r1"))
    await stub.PutAccountSchedule(put("r2", name="other"))
    assert await stub.PutAccountSchedule(put("r1")) == first
    assert (await refusal(stub.PutAccountSchedule(put("r1", name="third")))).reason == "REQUEST_ID_REUSED"


async def test_a_stale_etag_is_aborted(stub: Stub) -> None:
    first = (await stub.PutAccountSchedule(put())).account_schedule
    await stub.PutAccountSchedule(put(name="other", etag=first.etag))
    fault = await refusal(stub.PutAccountSchedule(put(name="third", etag=first.etag)))
    assert isinstance(fault, Conflict)
    assert fault.reason == "ETAG_MISMATCH"


async def test_what_is_output_only_is_not_taken_from_the_caller(stub: Stub) -> None:
    answer = await stub.PutAccountSchedule(put(version=41, create_time=MONDAY, update_time=MONDAY))
    assert answer.account_schedule.version == 1
    assert answer.account_schedule.create_time.ToDatetime(UTC) != MONDAY


async def test_an_account_without_a_schedule_is_not_found(stub: Stub) -> None:
    await stub.PutAccountSchedule(put())
    for request in (find(social_account_id="other"), find(organization_id="umbrella")):
        fault = await refusal(stub.FindSlotTimes(request))
        assert isinstance(fault, NotFound)
        assert fault.reason == "SCHEDULE_NOT_FOUND"


@pytest.mark.parametrize("zone", ["Europe/berlin", "localtime", "right/UTC", "../Europe/Berlin", "Factory"])
async def test_an_unknown_zone_is_named_with_its_field(stub: Stub, zone: str) -> None:
    fault = await refusal(stub.PutAccountSchedule(put(time_zone=zone)))
    assert isinstance(fault, InvalidRequest)
    assert fault.reason == "UNKNOWN_TIME_ZONE"
    assert [violation.field for violation in fault.violations] == ["account_schedule.time_zone"]
    assert zone in fault.message


async def test_a_misspelt_zone_is_answered_with_the_right_one(stub: Stub) -> None:
    assert "Europe/Berlin" in (await refusal(stub.PutAccountSchedule(put(time_zone="europe/berlin")))).message


@pytest.mark.parametrize(
    ("fields", "at_fault"),
    [
        ({"social_account_id": ""}, "account_schedule.social_account_id"),
        ({"social_account_id": "a/b"}, "account_schedule.social_account_id"),
        ({"time_zone": ""}, "account_schedule.time_zone"),
        ({"time_zone": "x" * 300}, "account_schedule.time_zone"),
        ({"name": "x" * 201}, "account_schedule.name"),
        ({"name": "a\0b"}, "account_schedule.name"),
        ({"max_posts_per_day": -1}, "account_schedule.max_posts_per_day"),
        ({"weekly_slots": [NINE, NINE]}, "account_schedule.weekly_slots[1]"),
        ({"weekly_slots": [NINE] * 501}, "account_schedule.weekly_slots"),
        (
            {"weekly_slots": [WeeklySlot(day_of_week=DAY_OF_WEEK_UNSPECIFIED)]},
            "account_schedule.weekly_slots[0].day_of_week",
        ),
        (
            {"weekly_slots": [WeeklySlot(day_of_week=8)]},  # type: ignore[arg-type]
            "account_schedule.weekly_slots[0].day_of_week",
        ),
        (
            {"weekly_slots": [WeeklySlot(day_of_week=DAY_OF_WEEK_MONDAY, hour=24)]},
            "account_schedule.weekly_slots[0].hour",
        ),
        (
            {"weekly_slots": [WeeklySlot(day_of_week=DAY_OF_WEEK_MONDAY, minute=-1)]},
            "account_schedule.weekly_slots[0].minute",
        ),
    ],
)
async def test_a_bad_schedule_is_refused_by_field(stub: Stub, fields: dict[str, Any], at_fault: str) -> None:
    fault = await refusal(stub.PutAccountSchedule(put(**fields)))
    assert isinstance(fault, InvalidRequest)
    assert at_fault in [violation.field for violation in fault.violations]


@pytest.mark.parametrize(
    ("fields", "at_fault"),
    [
        ({"organization_id": ""}, "organization_id"),
        ({"social_account_id": ""}, "social_account_id"),
        ({"count": -1}, "count"),
        ({"count": 1001}, "count"),
        ({"after": MONDAY, "before": MONDAY}, "before"),
        ({"after": datetime(1, 1, 1, tzinfo=UTC)}, "after"),
        ({"after": datetime(9999, 12, 31, tzinfo=UTC)}, "after"),
    ],
)
async def test_a_bad_search_is_refused_by_field(stub: Stub, fields: dict[str, Any], at_fault: str) -> None:
    await stub.PutAccountSchedule(put())
    fault = await refusal(stub.FindSlotTimes(find(**fields)))
    assert isinstance(fault, InvalidRequest)
    assert [violation.field for violation in fault.violations] == [at_fault]


async def test_a_put_without_a_schedule_is_refused(stub: Stub) -> None:
    fault = await refusal(stub.PutAccountSchedule(PutAccountScheduleRequest(organization_id="acme")))
    assert isinstance(fault, InvalidRequest)
    assert [violation.field for violation in fault.violations] == ["account_schedule"]


async def test_a_request_over_the_limit_is_refused(stub: Stub) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await stub.PutAccountSchedule(put(name="x" * 300_000))
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
