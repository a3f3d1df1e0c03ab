"""Reading, listing and deleting schedules, and asking for their windows, over the wire."""

from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from postflow.bus.v1.bus_pb2 import Event
from postflow.queue.v1.queue_events_pb2 import SlotScheduled
from postflow.schedule.v1.account_schedule_pb2 import (
    DAY_OF_WEEK_MONDAY,
    DAY_OF_WEEK_TUESDAY,
    AccountSchedule,
    LocalTime,
    SendWindow,
    WeeklySlot,
)
from postflow.schedule.v1.schedule_events_pb2 import AccountScheduleChanged
from postflow.schedule.v1.schedule_service_pb2 import (
    CheckSendWindowRequest,
    DeleteAccountScheduleRequest,
    FindSlotTimesRequest,
    GetAccountScheduleRequest,
    ListAccountSchedulesRequest,
    PutAccountScheduleRequest,
)
from schedule_service.entrypoints.events import routes
from servicekit.clock import SystemClock
from servicekit.faults import Conflict, InvalidRequest, NotFound, Refused
from servicekit.messaging.consumer import Received
from servicekit.pg.database import Database
from testkit.refusals import fault_of

Stub: TypeAlias = "Any"

OFFICE_HOURS = SendWindow(
    days_of_week=[DAY_OF_WEEK_MONDAY, DAY_OF_WEEK_TUESDAY], start=LocalTime(hour=9), end=LocalTime(hour=18)
)
MONDAY_NOON = datetime(2026, 3, 2, 11, 0, tzinfo=UTC)
"""A window in the time of Berlin."""


async def put(stub: Stub, account: str = "page", organization: str = "acme", **fields: Any) -> AccountSchedule:
    given: dict[str, Any] = {"social_account_id": account, "time_zone": "Europe/Berlin"} | fields
    request = PutAccountScheduleRequest(organization_id=organization, account_schedule=AccountSchedule(**given))
    stored: AccountSchedule = (await stub.PutAccountSchedule(request)).account_schedule
    return stored


def of(request: type, **fields: Any) -> Any:
    return request(**({"organization_id": "acme", "social_account_id": "page"} | fields))


def page_of(**fields: Any) -> ListAccountSchedulesRequest:
    return ListAccountSchedulesRequest(**({"organization_id": "acme"} | fields))


async def receive_slot(database: Database, account: str, schedule_time: datetime) -> None:
    """Stores a slot as Queue announces it."""
    slot = SlotScheduled(organization_id="acme", slot_id="s1", revision=1, social_account_id=account)
    slot.schedule_time.FromDatetime(schedule_time)
    route = next(each for each in routes() if each.message is SlotScheduled)
    await database.run(lambda tx: route.apply(tx, [Received.of(Event(), slot)], schedule_time))


async def pages(stub: Stub, size: int, **wanted: Any) -> list[list[str]]:
    """Returns the accounts of each page."""
    found: list[list[str]] = []
    token = ""
    while True:
        response = await stub.ListAccountSchedules(page_of(page_size=size, page_token=token, **wanted))
        found.append([schedule.social_account_id for schedule in response.account_schedules])
        token = response.next_page_token
        if not token:
            return found


# reading


async def test_a_schedule_is_read_as_it_was_answered(stub: Stub) -> None:
    stored = await put(stub, send_window=OFFICE_HOURS, name="Office")
    assert (await stub.GetAccountSchedule(of(GetAccountScheduleRequest))).account_schedule == stored


@pytest.mark.parametrize(
    ("method", "request_type"),
    [
        ("GetAccountSchedule", GetAccountScheduleRequest),
        ("DeleteAccountSchedule", DeleteAccountScheduleRequest),
        ("CheckSendWindow", CheckSendWindowRequest),
        ("FindSlotTimes", FindSlotTimesRequest),
    ],
)
@pytest.mark.parametrize("names", [{"social_account_id": "other"}, {"organization_id": "umbrella"}, {}])
async def test_a_missing_foreign_or_deleted_schedule_is_not_found(
    stub: Stub, method: str, request_type: type, names: dict[str, str]
) -> None:
    await put(stub)
    if not names:
        await stub.DeleteAccountSchedule(of(DeleteAccountScheduleRequest))
    fault = await fault_of(getattr(stub, method)(of(request_type, **names)))
    assert isinstance(fault, NotFound)
    assert fault.reason == "SCHEDULE_NOT_FOUND"
    assert fault.metadata == {"social_account_id": names.get("social_account_id", "page")}


# listing


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 200])
async def test_pages_list_every_schedule_once_in_order_of_accounts(stub: Stub, size: int) -> None:
    accounts = ["page-9", "Page", "page_1", "page-10", "a", "0", "page"]
    for account in accounts:
        await put(stub, account)
    await put(stub, "page-2", organization="umbrella")
    found = await pages(stub, size)
    assert [account for page in found for account in page] == sorted(accounts)
    assert all(len(page) == size for page in found[:-1])
    assert found[-1]


async def test_an_organization_without_schedules_has_one_empty_page(stub: Stub) -> None:
    await put(stub)
    assert await pages(stub, 10, organization_id="umbrella") == [[]]


async def test_deleted_schedules_are_not_listed(stub: Stub) -> None:
    for account in ("a", "b", "c"):
        await put(stub, account)
    await stub.DeleteAccountSchedule(of(DeleteAccountScheduleRequest, social_account_id="b"))
    assert await pages(stub, 1) == [["a"], ["c"]]
    await put(stub, "b")
    assert await pages(stub, 10) == [["a", "b", "c"]]


async def test_a_listing_tolerates_concurrent_puts_and_deletions(stub: Stub) -> None:
    for account in ("b", "d", "f"):
        await put(stub, account)
    first = await stub.ListAccountSchedules(page_of(page_size=2))
    await stub.DeleteAccountSchedule(of(DeleteAccountScheduleRequest, social_account_id="d"))
    await put(stub, "a")
    await put(stub, "e")
    second = await stub.ListAccountSchedules(page_of(page_size=2, page_token=first.next_page_token))
    assert [schedule.social_account_id for schedule in second.account_schedules] == ["e", "f"]
    assert second.next_page_token == ""


async def test_a_page_of_the_largest_schedules_fits_an_answer(stub: Stub) -> None:
    slots = [
        WeeklySlot(day_of_week=DAY_OF_WEEK_MONDAY, hour=hour, minute=minute)
        for hour in range(10)
        for minute in range(10, 60)
    ]
    accounts = [f"page-{number:02}" for number in range(70)]
    for account in accounts:
        await put(stub, account, weekly_slots=slots, name="ü" * 200)
    found = await pages(stub, 200)
    assert len(found) > 1
    assert [account for page in found for account in page] == accounts


async def test_a_page_has_fifty_by_default_and_two_hundred_at_most(stub: Stub) -> None:
    for number in range(201):
        await put(stub, f"page-{number:03}")
    assert [len(page) for page in await pages(stub, 0)] == [50, 50, 50, 50, 1]
    assert [len(page) for page in await pages(stub, 200)] == [200, 1]


@pytest.mark.parametrize(
    ("fields", "at_fault"),
    [
        ({"page_size": -1}, "page_size"),
        ({"page_size": 201}, "page_size"),
        ({"page_token": "made up"}, "page_token"),
        ({"page_token": "x" * 1025}, "page_token"),
        ({"organization_id": ""}, "organization_id"),
    ],
)
async def test_a_bad_listing_is_refused_by_field(stub: Stub, fields: dict[str, Any], at_fault: str) -> None:
    fault = await fault_of(stub.ListAccountSchedules(page_of(**fields)))
    assert isinstance(fault, InvalidRequest)
    assert [violation.field for violation in fault.violations] == [at_fault]


async def test_a_page_token_is_valid_only_for_its_own_request(stub: Stub) -> None:
    for organization in ("acme", "umbrella"):
        for account in ("a", "b"):
            await put(stub, account, organization)
    token = (await stub.ListAccountSchedules(page_of(page_size=1))).next_page_token
    other = page_of(organization_id="umbrella", page_size=1, page_token=token)
    fault = await fault_of(stub.ListAccountSchedules(other))
    assert isinstance(fault, InvalidRequest)
    assert [violation.field for violation in fault.violations] == ["page_token"]
    resized = await stub.ListAccountSchedules(page_of(page_size=5, page_token=token))
    assert [schedule.social_account_id for schedule in resized.account_schedules] == ["b"]


# deleting


async def test_a_repeated_deletion_is_announced_once(stub: Stub, announced: list[Event]) -> None:
    await put(stub)
    request = of(DeleteAccountScheduleRequest, request_id="r1")
    first = await stub.DeleteAccountSchedule(request)
    assert await stub.DeleteAccountSchedule(request) == first
    events = [AccountScheduleChanged.FromString(event.payload) for event in announced]
    assert [(each.deleted, each.account_schedule.version) for each in events] == [(False, 1), (True, 2)]
    fault = await fault_of(stub.DeleteAccountSchedule(of(DeleteAccountScheduleRequest, request_id="r1", force=True)))
    assert isinstance(fault, InvalidRequest)
    assert fault.reason == "REQUEST_ID_REUSED"


async def test_one_request_id_serves_two_methods(stub: Stub) -> None:
    schedule = AccountSchedule(social_account_id="page", time_zone="UTC")
    request = PutAccountScheduleRequest(organization_id="acme", account_schedule=schedule, request_id="r1")
    await stub.PutAccountSchedule(request)
    await stub.DeleteAccountSchedule(of(DeleteAccountScheduleRequest, request_id="r1"))
    assert await pages(stub, 10) == [[]]


async def test_a_stale_etag_is_aborted_and_deletes_nothing(stub: Stub, announced: list[Event]) -> None:
    first = await put(stub)
    second = await put(stub, name="other")
    fault = await fault_of(stub.DeleteAccountSchedule(of(DeleteAccountScheduleRequest, etag=first.etag)))
    assert isinstance(fault, Conflict)
    assert fault.reason == "ETAG_MISMATCH"
    assert (await stub.GetAccountSchedule(of(GetAccountScheduleRequest))).account_schedule == second
    assert len(announced) == 2
    await stub.DeleteAccountSchedule(of(DeleteAccountScheduleRequest, etag=second.etag))


async def test_upcoming_slots_keep_a_schedule_unless_forced(
    stub: Stub, database: Database, announced: list[Event]
) -> None:
    schedule = await put(stub)
    tomorrow = (SystemClock().now() + timedelta(days=1)).replace(microsecond=0)
    await receive_slot(database, "page", tomorrow)
    fault = await fault_of(stub.DeleteAccountSchedule(of(DeleteAccountScheduleRequest, etag=schedule.etag)))
    assert isinstance(fault, Refused)
    assert fault.reason == "SCHEDULE_HAS_SLOTS"
    assert fault.metadata == {
        "social_account_id": "page",
        "slot_count": "1",
        "latest_schedule_time": f"{tomorrow:%Y-%m-%dT%H:%M:%SZ}",
    }
    assert len(announced) == 1
    await stub.DeleteAccountSchedule(of(DeleteAccountScheduleRequest, etag=schedule.etag, force=True))
    assert len(announced) == 2


@pytest.mark.parametrize(
    ("fields", "at_fault"),
    [
        ({"organization_id": ""}, "organization_id"),
        ({"social_account_id": ""}, "social_account_id"),
        ({"social_account_id": "a/b"}, "social_account_id"),
        ({"etag": "x" * 65}, "etag"),
        ({"request_id": "a b"}, "request_id"),
    ],
)
async def test_a_bad_deletion_is_refused_by_field(stub: Stub, fields: dict[str, Any], at_fault: str) -> None:
    fault = await fault_of(stub.DeleteAccountSchedule(of(DeleteAccountScheduleRequest, **fields)))
    assert isinstance(fault, InvalidRequest)
    assert [violation.field for violation in fault.violations] == [at_fault]


# windows


async def test_an_open_window_tells_when_it_closes(stub: Stub) -> None:
    await put(stub, send_window=OFFICE_HOURS)
    answer = await stub.CheckSendWindow(of(CheckSendWindowRequest, time=MONDAY_NOON))
    assert answer.open
    assert answer.close_time.ToDatetime(UTC) == datetime(2026, 3, 2, 17, 0, tzinfo=UTC)
    assert not answer.HasField("open_time")
    assert answer.time.ToDatetime(UTC) == MONDAY_NOON
    assert (answer.time_zone, answer.schedule_version) == ("Europe/Berlin", 1)


async def test_a_closed_window_shows_when_it_opens(stub: Stub) -> None:
    await put(stub, send_window=OFFICE_HOURS)
    wednesday = MONDAY_NOON + timedelta(days=2)
    answer = await stub.CheckSendWindow(of(CheckSendWindowRequest, time=wednesday))
    assert not answer.open
    assert answer.open_time.ToDatetime(UTC) == datetime(2026, 3, 9, 8, 0, tzinfo=UTC)
    assert not answer.HasField("close_time")


async def test_without_a_window_posts_may_go_out_also_when_disabled(stub: Stub) -> None:
    await put(stub, enabled=False)
    answer = await stub.CheckSendWindow(of(CheckSendWindowRequest, time=MONDAY_NOON))
    assert answer.open
    assert not answer.HasField("close_time")
    assert not answer.HasField("open_time")


async def test_a_window_is_checked_now_by_default(stub: Stub) -> None:
    await put(stub)
    before = SystemClock().now()
    asked = (await stub.CheckSendWindow(of(CheckSendWindowRequest))).time.ToDatetime(UTC)
    assert before - timedelta(seconds=5) <= asked <= SystemClock().now() + timedelta(seconds=5)


@pytest.mark.parametrize("year", [3, 1890, 2500, 9995])
async def test_the_window_can_be_checked_at_any_instant(stub: Stub, year: int) -> None:
    await put(stub, send_window=OFFICE_HOURS)
    instant = datetime(year, 7, 1, tzinfo=UTC)
    answer = await stub.CheckSendWindow(of(CheckSendWindowRequest, time=instant))
    assert not answer.open
    assert timedelta() < answer.open_time.ToDatetime(UTC) - instant <= timedelta(days=7)


@pytest.mark.parametrize(
    ("fields", "at_fault"),
    [
        ({"time": datetime(2, 12, 31, tzinfo=UTC)}, "time"),
        ({"time": datetime(9999, 1, 1, tzinfo=UTC)}, "time"),
        ({"time": Timestamp(seconds=253_402_300_800)}, "time"),
        ({"time": Timestamp(nanos=1_000_000_000)}, "time"),
        ({"organization_id": "a b"}, "organization_id"),
        ({"social_account_id": ""}, "social_account_id"),
    ],
)
async def test_a_bad_window_check_is_refused_by_field(stub: Stub, fields: dict[str, Any], at_fault: str) -> None:
    await put(stub)
    fault = await fault_of(stub.CheckSendWindow(of(CheckSendWindowRequest, **fields)))
    assert isinstance(fault, InvalidRequest)
    assert [violation.field for violation in fault.violations] == [at_fault]
