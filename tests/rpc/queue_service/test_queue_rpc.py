"""QueueService over the wire: codes, reasons, details, replays, pages."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from sqlalchemy import text

from civil.zones import tzdata_version
from postflow.publisher.v1.publisher_events_pb2 import SocialAccountConnected
from postflow.publisher.v1.social_account_pb2 import SocialAccount
from postflow.queue.v1.queue_service_pb2 import AddToQueueRequest, ListQueueSlotsRequest, ScheduleAtRequest
from postflow.queue.v1.queue_slot_pb2 import (
    QUEUE_SLOT_ORIGIN_EXACT,
    QUEUE_SLOT_ORIGIN_QUEUE,
    QUEUE_SLOT_STATE_CANCELED,
    QUEUE_SLOT_STATE_SCHEDULED,
    QUEUE_SLOT_STATE_UNSPECIFIED,
    QueueSlot,
)
from servicekit.clock import SystemClock
from servicekit.faults import Fault, InvalidRequest, NotFound, Refused, Unavailable
from servicekit.pg.database import Database
from servicekit.rpc import calling
from testkit.eventually import eventually

if TYPE_CHECKING:
    from tests.rpc.queue_service.conftest import Rig

Refusal = Callable[[Awaitable[object]], Awaitable[Fault]]
NOW = SystemClock().now()
MIDNIGHT = NOW.replace(hour=0, minute=0, second=0, microsecond=0)
DAYS = [MIDNIGHT + timedelta(days=number, hours=12) for number in range(2, 500)]
FEED = ("page", "facebook", "")


def add(draft_id: str, *accounts: str, request_id: str = "") -> AddToQueueRequest:
    return AddToQueueRequest(
        organization_id="acme", draft_id=draft_id, social_account_ids=accounts, request_id=request_id
    )


def at(draft_id: str, moment: datetime, *accounts: str, request_id: str = "") -> ScheduleAtRequest:
    request = ScheduleAtRequest(
        organization_id="acme", draft_id=draft_id, social_account_ids=accounts, request_id=request_id
    )
    request.schedule_time.FromDatetime(moment)
    return request


def listed(**fields: Any) -> ListQueueSlotsRequest:
    return ListQueueSlotsRequest(**{"organization_id": "acme"} | fields)


async def test_a_draft_gets_the_next_slots_of_its_accounts(rig: "Rig") -> None:
    await rig.put_schedule("page", *DAYS, max_posts_per_day=3)
    await rig.put_schedule("group", *DAYS[5:])
    rig.draft("d1", FEED, ("page", "instagram_feed", "42"), ("group", "facebook", ""))
    group, page = (await rig.stub.AddToQueue(add("d1"))).queue_slots
    assert (group.social_account_id, page.social_account_id) == ("group", "page")
    assert page.schedule_time.ToDatetime(UTC) == DAYS[0]
    assert group.schedule_time.ToDatetime(UTC) == DAYS[5]
    assert (page.time_zone, page.local_date, page.local_time) == ("UTC", DAYS[0].date().isoformat(), "12:00")
    assert (page.state, page.origin) == (QUEUE_SLOT_STATE_SCHEDULED, QUEUE_SLOT_ORIGIN_QUEUE)
    assert page.not_after.ToDatetime(UTC) == DAYS[0] + timedelta(days=1)
    assert [(each.target.channel, each.target.destination) for each in page.targets] == [
        ("facebook", ""),
        ("instagram_feed", "42"),
    ]


async def test_a_dropped_zone_is_named_and_stops_no_other_account(rig: "Rig", refusal: Refusal) -> None:
    await rig.put_schedule("page", *DAYS, announce=False)
    await rig.put_schedule("group", *DAYS, announce=False)
    rig.draft("d1", FEED, ("group", "facebook", ""))
    rig.draft("d2", FEED, ("group", "facebook", ""))
    await rig.stub.AddToQueue(add("d1"))
    rig.schedule.schedules["page"].time_zone = "Europe/Atlantis"
    database = Database(rig.database_url, application="test", pool_size=1)
    async with database.transaction() as tx:
        statement = text("update account_queue set time_zone = 'Europe/Atlantis' where social_account_id = 'page'")
        await tx.connection.execute(statement)
    await database.dispose()
    refused = await refusal(rig.stub.AddToQueue(add("d2")))
    assert isinstance(refused, Refused)
    assert (refused.reason, refused.metadata["time_zone"]) == ("UNKNOWN_TIME_ZONE", "Europe/Atlantis")
    [page] = (await rig.stub.ScheduleAt(at("d2", DAYS[0] + timedelta(hours=1), "page"))).queue_slots
    assert (page.time_zone, page.local_date) == ("", "")
    [group] = (await rig.stub.AddToQueue(add("d2", "group"))).queue_slots
    assert group.schedule_time.ToDatetime(UTC) == DAYS[1]


async def test_a_refusal_by_schedule_is_passed_on(rig: "Rig", refusal: Refusal) -> None:
    rig.schedule.fault = Refused("UNKNOWN_TIME_ZONE", "no such zone", metadata={"time_zone": "Europe/Atlantis"})
    rig.draft("d1", FEED)
    refused = await refusal(rig.stub.AddToQueue(add("d1")))
    assert (type(refused), refused.reason, refused.message) == (Refused, "UNKNOWN_TIME_ZONE", "no such zone")
    assert refused.metadata["time_zone"] == "Europe/Atlantis"


async def test_a_schedule_counts_before_its_announcement(rig: "Rig", refusal: Refusal) -> None:
    twice_a_day = [time for day in DAYS for time in (day, day + timedelta(hours=1))]
    await rig.put_schedule("page", *twice_a_day, max_posts_per_day=1, time_zone="Asia/Tokyo", announce=False)
    await rig.put_schedule("off", enabled=False, announce=False)
    rig.draft("d1", FEED)
    rig.draft("d2", FEED, ("off", "x", ""))
    [first] = (await rig.stub.AddToQueue(add("d1"))).queue_slots
    [second] = (await rig.stub.AddToQueue(add("d2", "page"))).queue_slots
    assert [slot.schedule_time.ToDatetime(UTC) for slot in (first, second)] == DAYS[:2]
    assert (first.time_zone, first.local_time) == ("Asia/Tokyo", "21:00")
    assert (await refusal(rig.stub.AddToQueue(add("d2", "off")))).reason == "SCHEDULE_DISABLED"


async def test_with_schedule_of_the_release_before_the_caller_has_to_wait(rig: "Rig", refusal: Refusal) -> None:
    await rig.put_schedule("page", *DAYS, tzdata_version="", announce=False)
    rig.draft("d1", FEED)
    fault = await refusal(rig.stub.AddToQueue(add("d1")))
    assert isinstance(fault, Unavailable)
    assert (fault.reason, fault.retry_after) == ("SCHEDULE_CHANGING", timedelta(seconds=1))
    await rig.put_schedule("page", *DAYS, tzdata_version="")

    async def added() -> bool:
        try:
            return bool((await rig.stub.AddToQueue(add("d1"))).queue_slots)
        except grpc.aio.AioRpcError:
            return False

    await eventually(added)


async def test_slot_times_are_sent_once_and_cached(rig: "Rig") -> None:
    await rig.put_schedule("page", *DAYS, announce=False)
    for number in range(5):
        rig.draft(f"d{number}", FEED)
        await rig.stub.AddToQueue(add(f"d{number}"))
    assert rig.schedule.times_sent == 64
    first, *rest = rig.schedule.asked
    assert (first.count, first.known_schedule_version, first.known_tzdata_version) == (64, 0, "")
    assert {(each.known_schedule_version, each.known_tzdata_version) for each in rest} == {(1, tzdata_version())}
    assert first.after.ToDatetime(UTC) - NOW >= timedelta(seconds=60)
    assert first.before.ToDatetime(UTC) - first.after.ToDatetime(UTC) <= timedelta(days=730)


async def test_a_change_of_schedule_counts_before_its_announcement(rig: "Rig", refusal: Refusal) -> None:
    await rig.put_schedule("page", *DAYS)
    for number in range(4):
        rig.draft(f"d{number}", FEED)
    await rig.stub.AddToQueue(add("d0"))
    evenings = [day + timedelta(hours=7) for day in DAYS]
    await rig.put_schedule("page", *evenings, version=2, announce=False)
    [slot] = (await rig.stub.AddToQueue(add("d1"))).queue_slots
    assert slot.schedule_time.ToDatetime(UTC) == evenings[0]
    await rig.put_schedule("page", version=3, enabled=False, announce=False)
    assert (await refusal(rig.stub.AddToQueue(add("d2")))).reason == "SCHEDULE_DISABLED"
    del rig.schedule.times["page"]
    assert (await refusal(rig.stub.AddToQueue(add("d2")))).reason == "NO_SCHEDULE"
    await rig.put_schedule("page", *DAYS, version=5, announce=False)
    [slot] = (await rig.stub.AddToQueue(add("d3"))).queue_slots
    assert slot.schedule_time.ToDatetime(UTC) == DAYS[1]


@pytest.mark.parametrize("is_frozen", [False, True])
async def test_cached_slot_times_serve_while_schedule_is_down(rig: "Rig", refusal: Refusal, is_frozen: bool) -> None:
    await rig.put_schedule("page", *DAYS, announce=False)
    rig.draft("d0", FEED)
    rig.draft("d1", FEED, ("group", "facebook", ""))
    await rig.stub.AddToQueue(add("d0"))
    rig.schedule.is_frozen = is_frozen
    rig.schedule.fault = Unavailable("AWAY", "away", retry_after=timedelta(minutes=1))
    [slot] = (await rig.stub.AddToQueue(add("d1", "page"))).queue_slots
    assert slot.schedule_time.ToDatetime(UTC) == DAYS[1]
    rig.schedule.is_frozen = False
    assert (await refusal(rig.stub.AddToQueue(add("d1", "group")))).reason == "AWAY"


async def test_a_draft_gets_the_time_that_the_caller_chooses(rig: "Rig") -> None:
    rig.draft("d1", FEED)
    moment = NOW.replace(microsecond=5) + timedelta(hours=3)
    [slot] = (await rig.stub.ScheduleAt(at("d1", moment))).queue_slots
    assert slot.schedule_time.ToDatetime(UTC) == moment
    assert (slot.origin, slot.time_zone, slot.local_date) == (QUEUE_SLOT_ORIGIN_EXACT, "", "")


async def test_every_reason_has_its_code_and_names_the_account(rig: "Rig", refusal: Refusal) -> None:
    await rig.put_schedule("page", *DAYS)
    await rig.put_schedule("off", enabled=False)
    await rig.put_schedule("empty")
    rig.draft("d1", FEED, ("off", "x", ""), ("empty", "x", ""), ("none", "x", ""))
    rig.draft("d2", FEED)
    [slot] = (await rig.stub.AddToQueue(add("d1", "page"))).queue_slots
    taken = slot.schedule_time.ToDatetime(UTC)
    in_the_way = {
        "social_account_id": "page",
        "queue_slot_id": slot.id,
        "schedule_time": taken.isoformat().replace("+00:00", "Z"),
    }
    cases: list[tuple[Awaitable[object], type[Fault], str, dict[str, str]]] = [
        (rig.stub.AddToQueue(add("d9")), NotFound, "DRAFT_NOT_FOUND", {}),
        (rig.stub.ScheduleAt(at("d9", taken)), NotFound, "DRAFT_NOT_FOUND", {}),
        (
            rig.stub.AddToQueue(add("d1", "other")),
            Refused,
            "ACCOUNT_NOT_A_TARGET",
            {"social_account_id": "other", "draft_id": "d1"},
        ),
        (
            rig.stub.ScheduleAt(at("d1", taken, "other")),
            Refused,
            "ACCOUNT_NOT_A_TARGET",
            {"social_account_id": "other", "draft_id": "d1"},
        ),
        (rig.stub.AddToQueue(add("d1", "page")), Refused, "ALREADY_QUEUED", in_the_way),
        (rig.stub.ScheduleAt(at("d1", DAYS[9], "page")), Refused, "ALREADY_QUEUED", in_the_way),
        (rig.stub.AddToQueue(add("d1", "none")), Refused, "NO_SCHEDULE", {"social_account_id": "none"}),
        (rig.stub.AddToQueue(add("d1", "off")), Refused, "SCHEDULE_DISABLED", {"social_account_id": "off"}),
        (rig.stub.AddToQueue(add("d1", "empty")), Refused, "HORIZON_EXHAUSTED", {"social_account_id": "empty"}),
        (rig.stub.ScheduleAt(at("d2", taken + timedelta(seconds=59))), Refused, "SLOT_TAKEN", in_the_way),
    ]
    for call, kind, reason, metadata in cases:
        fault = await refusal(call)
        assert type(fault) is kind, reason
        assert fault.reason == reason
        assert fault.metadata == metadata


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (AddToQueueRequest(draft_id="d1"), "organization_id"),
        (AddToQueueRequest(organization_id="acme"), "draft_id"),
        (add("no such id!"), "draft_id"),
        (add("d1", "ok", "not ok"), "social_account_ids[1]"),
        (add("d1", *map(str, range(26))), "social_account_ids"),
        (add("d1", request_id="*"), "request_id"),
        (ScheduleAtRequest(organization_id="acme", draft_id="d1"), "schedule_time"),
        (at("d1", NOW - timedelta(minutes=2)), "schedule_time"),
        (at("d1", NOW + timedelta(days=731)), "schedule_time"),
        (
            ScheduleAtRequest(organization_id="acme", draft_id="d1", schedule_time=Timestamp(seconds=10**15)),
            "schedule_time",
        ),
        (listed(page_size=201), "page_size"),
        (listed(states=[QUEUE_SLOT_STATE_UNSPECIFIED]), "states[0]"),
        (listed(page_token="nonsense"), "page_token"),
        (listed(states=[99]), "states[0]"),
    ],
)
async def test_a_field_at_fault_is_named(rig: "Rig", refusal: Refusal, request_: Any, field: str) -> None:
    rig.draft("d1", FEED)
    method = getattr(rig.stub, type(request_).__name__.removesuffix("Request"))
    fault = await refusal(method(request_))
    assert isinstance(fault, InvalidRequest)
    assert fault.reason == "INVALID_FIELD"
    assert [violation.field for violation in fault.violations] == [field]


async def test_unreadable_and_oversize_requests_are_refused(rig: "Rig") -> None:
    async with grpc.aio.insecure_channel(rig.address) as channel:
        call: Any = channel.unary_unary("/postflow.queue.v1.QueueService/AddToQueue")
        with pytest.raises(grpc.aio.AioRpcError) as garbage:
            await call(b"\xff\xff")
        assert garbage.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    with pytest.raises(grpc.aio.AioRpcError) as large:
        await rig.stub.AddToQueue(add("d1", request_id="x" * 300_000))
    assert large.value.code() is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize("method", ["AddToQueue", "ScheduleAt"])
async def test_a_repeated_request_gets_the_same_answer(rig: "Rig", refusal: Refusal, method: str) -> None:
    await rig.put_schedule("page", *DAYS)
    rig.draft("d1", FEED)
    moment = NOW + timedelta(days=1)
    request = add("d1", request_id="r1") if method == "AddToQueue" else at("d1", moment, request_id="r1")
    other = add("d1", "page", request_id="r1") if method == "AddToQueue" else at("d1", DAYS[0], request_id="r1")
    call = getattr(rig.stub, method)
    first = await call(request)
    rig.drafts.drafts.clear()
    rig.schedule.times.clear()
    assert await call(request) == first
    assert len((await rig.stub.ListQueueSlots(listed())).queue_slots) == 1
    fault = await refusal(call(other))
    assert isinstance(fault, InvalidRequest)
    assert fault.reason == "REQUEST_ID_REUSED"


async def test_a_refusal_is_not_remembered(rig: "Rig", refusal: Refusal) -> None:
    await refusal(rig.stub.AddToQueue(add("d1", request_id="r1")))
    await rig.put_schedule("page", *DAYS)
    rig.draft("d1", FEED)
    assert (await rig.stub.AddToQueue(add("d1", request_id="r1"))).queue_slots


@pytest.mark.parametrize("away", ["schedule", "drafts"])
async def test_a_neighbour_that_is_down_makes_the_call_unavailable(rig: "Rig", refusal: Refusal, away: str) -> None:
    await rig.put_schedule("page", *DAYS)
    rig.draft("d1", FEED)
    getattr(rig, away).fault = Unavailable("TIRED", "come back later", retry_after=timedelta(seconds=7))
    fault = await refusal(rig.stub.AddToQueue(add("d1")))
    assert isinstance(fault, Unavailable)
    assert fault.reason == "TIRED"
    assert fault.retry_after == timedelta(seconds=7)
    getattr(rig, away).fault = None
    await rig.stub.AddToQueue(add("d1"))


async def test_the_text_of_a_neighbours_defect_is_not_shown(rig: "Rig") -> None:
    rig.draft("d1", FEED)
    rig.schedule.times["page"] = [None]  # type: ignore[list-item]
    with pytest.raises(grpc.aio.AioRpcError) as failed, calling():
        await rig.stub.AddToQueue(add("d1"))
    assert failed.value.code() is grpc.StatusCode.INTERNAL
    assert (failed.value.details() or "").startswith("internal error; request id ")


async def test_pages_make_up_the_list(rig: "Rig", refusal: Refusal) -> None:
    for number in range(7):
        rig.draft(f"d{number}", (f"a{number % 2}", "facebook", ""))
        await rig.stub.ScheduleAt(at(f"d{number}", DAYS[0] + timedelta(hours=1 + (number * 3) % 7)))
    whole = list((await rig.stub.ListQueueSlots(listed())).queue_slots)
    times = [slot.schedule_time.ToDatetime(UTC) for slot in whole]
    assert times == sorted(times)
    assert len(times) == 7
    found: list[QueueSlot] = []
    token = ""
    while not found or token:
        page = await rig.stub.ListQueueSlots(listed(page_size=3, page_token=token))
        assert len(page.queue_slots) <= 3
        found += page.queue_slots
        token = page.next_page_token
    assert found == whole
    first = await rig.stub.ListQueueSlots(listed(page_size=3))
    stolen = listed(social_account_id="a1", page_token=first.next_page_token)
    assert (await refusal(rig.stub.ListQueueSlots(stolen))).reason == "INVALID_FIELD"


async def test_filters_choose(rig: "Rig") -> None:
    for number in range(4):
        rig.draft(f"d{number}", (f"a{number % 2}", "facebook", ""))
        await rig.stub.ScheduleAt(at(f"d{number}", DAYS[0] + timedelta(hours=number + 1)))

    async def drafts(**fields: Any) -> list[str]:
        return [slot.draft_id for slot in (await rig.stub.ListQueueSlots(listed(**fields))).queue_slots]

    assert await drafts() == ["d0", "d1", "d2", "d3"]
    assert await drafts(social_account_id="a1") == ["d1", "d3"]
    assert await drafts(draft_id="d2") == ["d2"]
    assert await drafts(states=[QUEUE_SLOT_STATE_CANCELED]) == []
    assert await drafts(states=[QUEUE_SLOT_STATE_CANCELED, QUEUE_SLOT_STATE_SCHEDULED]) == ["d0", "d1", "d2", "d3"]
    assert await drafts(organization_id="umbrella") == []


async def test_another_organization_finds_nothing(rig: "Rig", refusal: Refusal) -> None:
    rig.draft("d1", FEED)
    rig.drafts.drafts.clear()
    foreign = AddToQueueRequest(organization_id="umbrella", draft_id="d1")
    absent = AddToQueueRequest(organization_id="umbrella", draft_id="d9")
    faults = [await refusal(rig.stub.AddToQueue(request)) for request in (foreign, absent)]
    assert {fault.reason for fault in faults} == {"DRAFT_NOT_FOUND"}


async def test_accounts_that_cannot_post_are_refused(rig: "Rig", refusal: Refusal) -> None:
    rig.draft("d1", FEED, ("pgae", "facebook", ""))
    rig.publisher.missing, rig.publisher.disconnected = {"pgae"}, {"page"}
    moment = NOW + timedelta(hours=1)
    for account, reason in (("pgae", "ACCOUNT_NOT_FOUND"), ("page", "ACCOUNT_NOT_CONNECTED")):
        for call in (rig.stub.ScheduleAt(at("d1", moment, account)), rig.stub.AddToQueue(add("d1", account))):
            fault = await refusal(call)
            assert isinstance(fault, Refused)
            assert (fault.reason, dict(fault.metadata)) == (reason, {"social_account_id": account})


async def test_an_announced_account_gets_slots(rig: "Rig") -> None:
    account = SocialAccount(id="page", version=3)
    await rig.announce("publisher", SocialAccountConnected(organization_id="acme", social_account=account), "page")
    await eventually(lambda: rig.rows("select 1 from social_account where is_connected"))
    rig.publisher.missing = {"page"}
    rig.draft("d1", FEED)
    assert len((await rig.stub.ScheduleAt(at("d1", NOW + timedelta(hours=1)))).queue_slots) == 1
