"""Timers over the wire: a real server, a real stub, a real database."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from sqlalchemy import text

from postflow.bus.v1 import bus_pb2
from postflow.schedule.v1 import timer_pb2
from postflow.schedule.v1 import timer_service_pb2 as messages
from postflow.schedule.v1.schedule_events_pb2 import TimerFired
from postflow.schedule.v1.timer_service_pb2_grpc import TimerServiceStub, add_TimerServiceServicer_to_server
from schedule_service.main import timer_servicer
from servicekit.faults import AlreadyExists, Conflict, InvalidRequest, LimitReached, NotFound, Refused
from servicekit.rpc import RpcServer, open_channel
from testkit.refusals import fault_of

if TYPE_CHECKING:
    from schedule_service.main import Parts

Stub: TypeAlias = "Any"

FUTURE = datetime(2099, 3, 2, 9, 0, tzinfo=UTC)


@pytest.fixture
async def stub(parts: "Parts") -> AsyncIterator[Stub]:
    servicers = [(add_TimerServiceServicer_to_server, timer_servicer(parts, lambda _ahead: None))]
    server = RpcServer(listen="127.0.0.1:0", servicers=servicers, ids=parts.ids)
    await server.start()
    await server.set_serving(serving=True)
    async with open_channel(f"127.0.0.1:{server.port}") as channel:
        yield TimerServiceStub(channel)
    await server.stop(0)


def create(timer_id: str = "t", request_id: str = "", **fields: Any) -> messages.CreateTimerRequest:
    given: dict[str, Any] = {"topic": "drafts.generate"} | fields
    if not given.keys() & {"fire_time", "delay", "cron"}:
        given["cron"] = "@daily"
    return messages.CreateTimerRequest(
        organization_id="acme", timer_id=timer_id, timer=timer_pb2.Timer(**given), request_id=request_id
    )


def named(request_type: Any, timer_id: str = "t", **fields: Any) -> Any:
    return request_type(**({"organization_id": "acme", "timer_id": timer_id} | fields))


def listing(**fields: Any) -> messages.ListTimersRequest:
    return messages.ListTimersRequest(**({"organization_id": "acme"} | fields))


async def test_a_timer_lives_through_all_of_its_calls(stub: Stub, announced: list[bus_pb2.Event]) -> None:
    made = (await stub.CreateTimer(create(payload=b"p", time_zone="Europe/Berlin"))).timer
    assert (made.cron, made.time_zone, made.state) == ("@daily", "Europe/Berlin", timer_pb2.TIMER_STATE_ACTIVE)
    assert (await stub.GetTimer(named(messages.GetTimerRequest))).timer == made
    resting = (await stub.PauseTimer(named(messages.PauseTimerRequest, etag=made.etag))).timer
    assert resting.state == timer_pb2.TIMER_STATE_PAUSED
    going = (await stub.ResumeTimer(named(messages.ResumeTimerRequest, etag=resting.etag))).timer
    assert going.state == timer_pb2.TIMER_STATE_ACTIVE
    fired = await stub.FireTimer(named(messages.FireTimerRequest, request_id="r1"))
    assert (fired.occurrence_key, fired.timer.fire_count) == ("manual/r1", 1)
    (event,) = announced
    assert TimerFired.FromString(event.payload).occurrence_key == "manual/r1"
    assert (await stub.ListTimers(listing())).timers == [fired.timer]
    await stub.DeleteTimer(named(messages.DeleteTimerRequest, etag=fired.timer.etag))
    assert isinstance(await fault_of(stub.GetTimer(named(messages.GetTimerRequest))), NotFound)


async def test_a_one_time_timer_shows_no_zone(stub: Stub) -> None:
    made = (await stub.CreateTimer(create(delay=Duration(seconds=60)))).timer
    assert (made.time_zone, made.dst_policy, made.cron) == ("", timer_pb2.DST_POLICY_UNSPECIFIED, "")
    assert made.fire_time == made.next_fire_time
    assert made.misfire_policy == timer_pb2.MISFIRE_POLICY_FIRE_ONCE


async def test_default_policies_are_shown(stub: Stub) -> None:
    plain = (await stub.CreateTimer(create("plain"))).timer
    assert (plain.time_zone, plain.dst_policy) == ("UTC", timer_pb2.DST_POLICY_CRON)
    assert not plain.HasField("skip_after")
    assert not plain.HasField("catch_up_interval")
    skip = (await stub.CreateTimer(create("skip", misfire_policy=timer_pb2.MISFIRE_POLICY_SKIP))).timer
    assert skip.skip_after.ToTimedelta() == timedelta(seconds=60)
    every = (await stub.CreateTimer(create("all", misfire_policy=timer_pb2.MISFIRE_POLICY_FIRE_ALL))).timer
    assert every.catch_up_interval.ToTimedelta() == timedelta(seconds=1)


async def test_a_zone_in_the_expression_is_returned_as_a_field(stub: Stub) -> None:
    made = (await stub.CreateTimer(create(cron="CRON_TZ=Asia/Tokyo 0 9 * * *"))).timer
    assert (made.cron, made.time_zone) == ("0 9 * * *", "Asia/Tokyo")


async def test_output_only_fields_are_ignored(stub: Stub) -> None:
    given: dict[str, Any] = {
        "id": "other",
        "state": timer_pb2.TIMER_STATE_FINISHED,
        "next_fire_time": FUTURE,
        "last_fire_time": FUTURE,
        "last_occurrence_key": "k",
        "fire_count": 41,
        "etag": "e",
        "create_time": FUTURE,
        "update_time": FUTURE,
        "tzdata_version": "1999a",
    }
    made = (await stub.CreateTimer(create(**given))).timer
    assert (made.id, made.state, made.fire_count) == ("t", timer_pb2.TIMER_STATE_ACTIVE, 0)
    for field in ("next_fire_time", "create_time", "update_time"):
        assert getattr(made, field).ToDatetime(UTC) < FUTURE
    assert not made.HasField("last_fire_time")
    assert (made.last_occurrence_key, made.tzdata_version == "1999a", made.etag == "e") == ("", False, False)


async def test_a_repeated_request_gets_the_same_answer(stub: Stub) -> None:
    first = await stub.CreateTimer(create("", "r1"))
    await stub.PauseTimer(named(messages.PauseTimerRequest, first.timer.id))
    assert await stub.CreateTimer(create("", "r1")) == first
    assert (await fault_of(stub.CreateTimer(create("", "r1", topic="other")))).reason == "REQUEST_ID_REUSED"
    fire = named(messages.FireTimerRequest, first.timer.id, request_id="r2")
    assert await stub.FireTimer(fire) == await stub.FireTimer(fire)


async def test_an_id_in_use_is_refused(stub: Stub) -> None:
    await stub.CreateTimer(create())
    fault = await fault_of(stub.CreateTimer(create()))
    assert isinstance(fault, AlreadyExists)
    assert fault.reason == "TIMER_EXISTS"


async def test_an_organization_has_a_hundred_thousand_timers_at_most(stub: Stub, parts: "Parts") -> None:
    await stub.CreateTimer(create("first"))
    async with parts.database.statement() as connection:
        await connection.execute(_MANY, {"count": 99_998})
        await connection.execute(text("delete from timer_room"))
    await stub.CreateTimer(create("last"))
    fault = await fault_of(stub.CreateTimer(create("one-too-many")))
    assert isinstance(fault, LimitReached)
    assert (fault.reason, fault.metadata) == ("TIMERS_PER_ORGANIZATION", {"limit": "100000"})
    await stub.DeleteTimer(named(messages.DeleteTimerRequest, "first"))
    await stub.CreateTimer(create("one-too-many"))


_MANY = text("""
    insert into timer (organization_id, id, topic, payload, fire_time, cron, time_zone, dst_policy, misfire_policy,
        catch_up_interval, skip_after, auto_remove, paused, due_time, sleep_until, fence, attempts, fire_count,
        last_occurrence_key, tzdata_version, traceparent, version, create_time, update_time)
    select 'acme', 'many-' || n, 'many', '', now(), '', 'UTC', 'CRON', 'FIRE_ONCE', '1 second', '60 seconds', false,
        n % 2 = 0, now(), case when n % 2 = 1 then now() end, 0, 0, 0, '', '2026f', '', 1, now(), now()
    from generate_series(1, :count) n
""")


@pytest.mark.parametrize("method", ["Pause", "Resume", "Delete"])
async def test_a_stale_etag_is_aborted(stub: Stub, method: str) -> None:
    first = (await stub.CreateTimer(create())).timer
    current = (await stub.PauseTimer(named(messages.PauseTimerRequest))).timer
    request = named(getattr(messages, f"{method}TimerRequest"), etag=first.etag)
    fault = await fault_of(getattr(stub, f"{method}Timer")(request))
    assert isinstance(fault, Conflict)
    assert fault.reason == "ETAG_MISMATCH"
    assert (await stub.GetTimer(named(messages.GetTimerRequest))).timer == current


@pytest.mark.parametrize("method", ["Get", "Pause", "Resume", "Fire", "Delete"])
async def test_a_timer_of_another_organization_is_not_found(stub: Stub, method: str) -> None:
    await stub.CreateTimer(create())
    request_type = getattr(messages, f"{method}TimerRequest")
    for request in (named(request_type, organization_id="umbrella"), named(request_type, "other")):
        fault = await fault_of(getattr(stub, f"{method}Timer")(request))
        assert isinstance(fault, NotFound)
        assert (fault.reason, fault.metadata) == ("TIMER_NOT_FOUND", {"timer_id": request.timer_id})


def seconds(number: float) -> Duration:
    made = Duration()
    made.FromNanoseconds(int(number * 1e9))
    return made


@pytest.mark.parametrize(
    ("fields", "at_fault"),
    [
        ({"topic": ""}, "timer.topic"),
        ({"topic": "Drafts"}, "timer.topic"),
        ({"topic": "x" * 101}, "timer.topic"),
        ({"payload": b"x" * 65_537}, "timer.payload"),
        ({"delay": seconds(-1)}, "timer.delay"),
        ({"delay": seconds(315_576_001)}, "timer.delay"),
        ({"delay": Duration(seconds=1, nanos=-1)}, "timer.delay"),
        ({"fire_time": Timestamp(seconds=253_402_300_800)}, "timer.fire_time"),
        ({"fire_time": datetime(9999, 1, 1, tzinfo=UTC)}, "timer.fire_time"),
        ({"fire_time": datetime(1, 1, 1, tzinfo=UTC)}, "timer.fire_time"),
        ({"fire_time": FUTURE, "time_zone": "UTC"}, "timer.time_zone"),
        ({"fire_time": FUTURE, "dst_policy": timer_pb2.DST_POLICY_ONCE}, "timer.dst_policy"),
        ({"fire_time": FUTURE, "repeat_until": FUTURE}, "timer.repeat_until"),
        ({"cron": ""}, "timer.cron"),
        ({"cron": "* * * *"}, "timer.cron"),
        ({"cron": "0 0 0 1 * *"}, "timer.cron"),
        ({"cron": "60 * * * *"}, "timer.cron"),
        ({"cron": "*/0 * * * *"}, "timer.cron"),
        ({"cron": "@every -1h"}, "timer.cron"),
        ({"cron": "@reboot"}, "timer.cron"),
        ({"cron": "\u0661 * * * *"}, "timer.cron"),
        ({"cron": "1\0 * * * *"}, "timer.cron"),
        ({"cron": "1," * 128 + "1 * * * *"}, "timer.cron"),
        ({"cron": "0 0 31 2 *"}, "timer.cron"),
        ({"cron": "CRON_TZ=localtime @daily"}, "timer.cron"),
        ({"cron": "CRON_TZ=UTC @daily", "time_zone": "UTC"}, "timer.time_zone"),
        ({"time_zone": "localtime"}, "timer.time_zone"),
        ({"time_zone": "Factory"}, "timer.time_zone"),
        ({"time_zone": "../etc/passwd"}, "timer.time_zone"),
        ({"time_zone": "x" * 300}, "timer.time_zone"),
        ({"repeat_until": datetime(2020, 1, 1, tzinfo=UTC)}, "timer.repeat_until"),
        ({"dst_policy": 3}, "timer.dst_policy"),
        ({"misfire_policy": 4}, "timer.misfire_policy"),
        ({"misfire_policy": -1}, "timer.misfire_policy"),
        ({"state": 9}, "timer.state"),
        ({"catch_up_interval": seconds(1)}, "timer.catch_up_interval"),
        ({"catch_up_interval": seconds(-1), "misfire_policy": 3}, "timer.catch_up_interval"),
        ({"catch_up_interval": seconds(86_401), "misfire_policy": 3}, "timer.catch_up_interval"),
        ({"skip_after": seconds(1)}, "timer.skip_after"),
        ({"skip_after": seconds(0.999), "misfire_policy": 2}, "timer.skip_after"),
        ({"skip_after": seconds(86_401), "misfire_policy": 2}, "timer.skip_after"),
    ],
)
async def test_a_bad_timer_is_refused_by_field(stub: Stub, fields: dict[str, Any], at_fault: str) -> None:
    fault = await fault_of(stub.CreateTimer(create(**fields)))
    assert isinstance(fault, InvalidRequest)
    assert [violation.field for violation in fault.violations] == [at_fault]
    assert fault.metadata["field"] == at_fault
    assert len(fault.message) < 300
    assert isinstance(await fault_of(stub.GetTimer(named(messages.GetTimerRequest))), NotFound)


async def test_a_timer_says_when_it_fires(stub: Stub) -> None:
    request = create()
    request.timer.ClearField("schedule")
    fault = await fault_of(stub.CreateTimer(request))
    assert [violation.field for violation in fault.violations] == ["timer.schedule"]
    missing = await fault_of(stub.CreateTimer(messages.CreateTimerRequest(organization_id="acme")))
    assert [violation.field for violation in missing.violations] == ["timer"]


async def test_the_parser_error_reaches_the_caller(stub: Stub) -> None:
    assert "61 is above 59" in (await fault_of(stub.CreateTimer(create(cron="61 * * * *")))).message
    assert "Europe/Berlin" in (await fault_of(stub.CreateTimer(create(time_zone="europe/berlin")))).message


@pytest.mark.parametrize("field", ["organization_id", "timer_id", "request_id"])
@pytest.mark.parametrize("method", ["Create", "Pause", "Resume", "Fire", "Delete"])
async def test_malformed_ids_are_refused_by_field(stub: Stub, method: str, field: str) -> None:
    request = create() if method == "Create" else named(getattr(messages, f"{method}TimerRequest"))
    setattr(request, field, "a/b")
    fault = await fault_of(getattr(stub, f"{method}Timer")(request))
    assert [violation.field for violation in fault.violations] == [field]


# listing


async def ids(stub: Stub, **fields: Any) -> list[list[str]]:
    """Returns the ids of each page."""
    pages: list[list[str]] = []
    token = ""
    while True:
        answer = await stub.ListTimers(listing(**fields, page_token=token))
        pages.append([timer.id for timer in answer.timers])
        token = answer.next_page_token
        if not token:
            return pages


async def test_timers_are_listed_by_id_and_by_page(stub: Stub) -> None:
    for timer_id in ("d", "b", "a", "e", "c"):
        await stub.CreateTimer(create(timer_id))
    assert await ids(stub) == [["a", "b", "c", "d", "e"]]
    assert await ids(stub, page_size=2) == [["a", "b"], ["c", "d"], ["e"]]
    assert await ids(stub, page_size=5) == [["a", "b", "c", "d", "e"]]
    assert await ids(stub, organization_id="umbrella") == [[]]


async def test_a_listing_is_filtered_by_topic_and_state(stub: Stub, parts: "Parts") -> None:
    await stub.CreateTimer(create("a", topic="one"))
    await stub.CreateTimer(create("b", topic="two"))
    await stub.CreateTimer(create("c", topic="one"))
    await stub.CreateTimer(create("d", topic="two"))
    await stub.CreateTimer(create("e", topic="one"))
    for timer_id in "cd":
        await stub.PauseTimer(named(messages.PauseTimerRequest, timer_id))
    await finish(parts, "e")
    await stub.CreateTimer(create("f", topic="two"))
    await make_faulty(parts, "f")
    assert await ids(stub, topic="one", page_size=1) == [["a"], ["c"], ["e"]]
    assert await ids(stub, topic="none") == [[]]
    assert await ids(stub, state=timer_pb2.TIMER_STATE_ACTIVE) == [["a", "b"]]
    assert await ids(stub, state=timer_pb2.TIMER_STATE_PAUSED, page_size=1) == [["c"], ["d"]]
    assert await ids(stub, state=timer_pb2.TIMER_STATE_FINISHED) == [["e"]]
    assert await ids(stub, state=timer_pb2.TIMER_STATE_FAULTY) == [["f"]]
    assert await ids(stub, topic="two", state=timer_pb2.TIMER_STATE_FAULTY) == [["f"]]
    assert await ids(stub, topic="one", state=timer_pb2.TIMER_STATE_FAULTY) == [[]]
    assert await ids(stub, topic="one", state=timer_pb2.TIMER_STATE_PAUSED) == [["c"]]
    assert await ids(stub, topic="two", state=timer_pb2.TIMER_STATE_ACTIVE) == [["b"]]
    assert await ids(stub, topic="one", state=timer_pb2.TIMER_STATE_FINISHED) == [["e"]]


async def finish(parts: "Parts", timer_id: str) -> None:
    """Finishes the timer, as its last firing does."""
    async with parts.database.statement() as connection:
        await connection.execute(
            text("update timer set due_time = null, sleep_until = null, finish_time = now() where id = :id"),
            {"id": timer_id},
        )


async def make_faulty(parts: "Parts", timer_id: str) -> None:
    """Makes the timer faulty, as the engine does when tzdata has dropped its zone."""
    async with parts.database.statement() as connection:
        await connection.execute(
            text("update timer set time_zone = 'Atlantis/Poseidonis', sleep_until = null where id = :id"),
            {"id": timer_id},
        )


async def test_every_call_answers_for_a_faulty_timer(stub: Stub, parts: "Parts") -> None:
    await stub.CreateTimer(create("a"))
    await stub.CreateTimer(create("b"))
    await make_faulty(parts, "a")
    faulty = (await stub.GetTimer(named(messages.GetTimerRequest, "a"))).timer
    assert (faulty.state, faulty.time_zone) == (timer_pb2.TIMER_STATE_FAULTY, "Atlantis/Poseidonis")
    assert "Atlantis/Poseidonis" in faulty.fault
    assert await ids(stub) == [["a", "b"]]
    assert (await stub.FireTimer(named(messages.FireTimerRequest, "a"))).timer.fire_count == 1
    refused = await fault_of(stub.ResumeTimer(named(messages.ResumeTimerRequest, "a")))
    assert isinstance(refused, Refused)
    assert (refused.reason, refused.message) == ("TIMER_FAULTY", faulty.fault)
    resting = (await stub.PauseTimer(named(messages.PauseTimerRequest, "a", etag=faulty.etag))).timer
    assert (resting.state, resting.fault) == (timer_pb2.TIMER_STATE_PAUSED, faulty.fault)
    await stub.DeleteTimer(named(messages.DeleteTimerRequest, "a", etag=resting.etag))
    assert await ids(stub) == [["b"]]


async def test_a_page_of_large_timers_is_shorter_and_none_is_lost(stub: Stub) -> None:
    names = [f"t{number:02}" for number in range(14)]
    for number, timer_id in enumerate(names):
        await stub.CreateTimer(create(timer_id, payload=b"x" * (65_536 if number < 12 else 10)))
    pages = await ids(stub)
    assert [timer_id for page in pages for timer_id in page] == names
    assert len(pages) > 1
    assert all(pages)


@pytest.mark.parametrize(
    ("fields", "at_fault"),
    [
        ({"page_size": -1}, "page_size"),
        ({"page_token": "made up"}, "page_token"),
        ({"page_token": "x" * 1025}, "page_token"),
        ({"state": 9}, "state"),
        ({"topic": "x" * 101}, "topic"),
        ({"topic": "nul\0"}, "topic"),
        ({"organization_id": ""}, "organization_id"),
    ],
)
async def test_a_bad_listing_is_refused_by_field(stub: Stub, fields: dict[str, Any], at_fault: str) -> None:
    fault = await fault_of(stub.ListTimers(listing(**fields)))
    assert isinstance(fault, InvalidRequest)
    assert [violation.field for violation in fault.violations] == [at_fault]


async def test_a_page_token_is_valid_for_its_own_request(stub: Stub) -> None:
    for timer_id in "ab":
        await stub.CreateTimer(create(timer_id))
    token = (await stub.ListTimers(listing(page_size=1))).next_page_token
    for other in ({"topic": "drafts.generate"}, {"state": 1}, {"organization_id": "umbrella"}):
        fault = await fault_of(stub.ListTimers(listing(page_token=token, **other)))
        assert [violation.field for violation in fault.violations] == ["page_token"]
