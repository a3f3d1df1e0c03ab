"""Zone changes over the wire: a real server, a real stub, a real database, and a zone that has really changed."""

from collections.abc import AsyncIterator
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

import grpc
import pytest
from sqlalchemy import text

from civil.zones import tzdata_version
from postflow.bus.v1 import bus_pb2
from postflow.schedule.v1 import schedule_admin_service_pb2 as messages
from postflow.schedule.v1.account_schedule_pb2 import DAY_OF_WEEK_MONDAY, AccountSchedule, WeeklySlot
from postflow.schedule.v1.schedule_admin_service_pb2_grpc import (
    ScheduleAdminServiceStub,
    add_ScheduleAdminServiceServicer_to_server,
)
from postflow.schedule.v1.schedule_events_pb2 import AccountScheduleChanged, ScheduleRuleChanged
from postflow.schedule.v1.schedule_rule_pb2 import ScheduleRule
from postflow.schedule.v1.schedule_service_pb2 import (
    CreateScheduleRuleRequest,
    GetAccountScheduleRequest,
    PutAccountScheduleRequest,
)
from postflow.schedule.v1.schedule_service_pb2_grpc import ScheduleServiceStub, add_ScheduleServiceServicer_to_server
from postflow.schedule.v1.timer_pb2 import Timer
from postflow.schedule.v1.timer_service_pb2 import CreateTimerRequest, GetTimerRequest
from postflow.schedule.v1.timer_service_pb2_grpc import TimerServiceStub, add_TimerServiceServicer_to_server
from schedule_service.application.zone_changes.apply_zone_changes import AppliedZoneChanges
from schedule_service.entrypoints.admin_rpc import DEADLINES, ScheduleAdminServicer
from schedule_service.main import admin_servicer, schedule_servicer, timer_servicer
from servicekit.clock import SystemClock
from servicekit.faults import InvalidRequest
from servicekit.pg.database import Database
from servicekit.rpc import RpcServer, open_channel
from testkit.refusals import fault_of
from testkit.zones.compiled_zones import compiled_zone

if TYPE_CHECKING:
    from schedule_service.main import Parts

Stub: TypeAlias = "Any"

VANCOUVER = "America/Vancouver"
VANCOUVER_BEFORE = compiled_zone("PST8PDT,M3.2.0,M11.1.0", offset=timedelta(hours=-8))
NINE = WeeklySlot(day_of_week=DAY_OF_WEEK_MONDAY, hour=9)


class Stubs:
    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.admin: Stub = ScheduleAdminServiceStub(channel)
        self.schedules: Stub = ScheduleServiceStub(channel)
        self.timers: Stub = TimerServiceStub(channel)


@pytest.fixture
async def stubs(parts: "Parts") -> AsyncIterator[Stubs]:
    server = RpcServer(
        listen="127.0.0.1:0",
        servicers=[
            (add_ScheduleAdminServiceServicer_to_server, admin_servicer(parts, SystemClock())),
            (add_ScheduleServiceServicer_to_server, schedule_servicer(parts)),
            (add_TimerServiceServicer_to_server, timer_servicer(parts, lambda _ahead: None)),
        ],
        ids=parts.ids,
        deadlines=DEADLINES,
    )
    await server.start()
    await server.set_serving(serving=True)
    async with open_channel(f"127.0.0.1:{server.port}") as channel:
        yield Stubs(channel)
    await server.stop(0)


async def put(stubs: Stubs, account: str, organization: str = "acme", zone: str = VANCOUVER) -> AccountSchedule:
    schedule = AccountSchedule(social_account_id=account, time_zone=zone, weekly_slots=[NINE])
    request = PutAccountScheduleRequest(organization_id=organization, account_schedule=schedule)
    stored: AccountSchedule = (await stubs.schedules.PutAccountSchedule(request)).account_schedule
    return stored


async def went_back(database: Database) -> None:
    """Changes everything to what an older release, with other data of Vancouver, has announced."""
    async with database.transaction() as tx:
        for table in ("account_schedule", "schedule_rule", "timer"):
            await tx.connection.execute(text(f"update {table} set tzdata_version = '2024a'"))  # noqa: S608
        await tx.connection.execute(text("update zone_data set tzdata_version = '2024a'"))
        await tx.connection.execute(
            text("update zone_data set data = :data where time_zone = :zone"),
            {"data": VANCOUVER_BEFORE, "zone": VANCOUVER},
        )


def listing(**fields: Any) -> messages.ListZoneChangesRequest:
    return messages.ListZoneChangesRequest(**fields)


async def test_moved_times_are_listed_then_announced_until_none_is_left(
    stubs: Stubs, database: Database, announced: list[bus_pb2.Event]
) -> None:
    await put(stubs, "page")
    await put(stubs, "berlin", zone="Europe/Berlin")
    rule = ScheduleRule(brand_id="b", time_zone=VANCOUVER, weekly_slots=[NINE], channels=["facebook"])
    await stubs.schedules.CreateScheduleRule(
        CreateScheduleRuleRequest(organization_id="acme", schedule_rule=rule, schedule_rule_id="rule")
    )
    await went_back(database)

    found = await stubs.admin.ListZoneChanges(listing())
    assert [(change.organization_id, change.kind, change.id) for change in found.zone_changes] == [
        ("acme", messages.ZONE_CHANGE_KIND_ACCOUNT_SCHEDULE, "page"),
        ("acme", messages.ZONE_CHANGE_KIND_SCHEDULE_RULE, "rule"),
    ]
    assert (found.tzdata_version, found.next_page_token) == (tzdata_version(), "")
    change = found.zone_changes[0]
    assert (change.time_zone, change.announced_tzdata_version) == (VANCOUVER, "2024a")
    assert len(change.moved_times) == 10
    for moved in change.moved_times:
        assert moved.nominal_local_time.endswith("T09:00")
        assert moved.old_time.ToDatetime(UTC) - moved.new_time.ToDatetime(UTC) == timedelta(hours=1)
        assert moved.new_time.ToDatetime(UTC).hour == 16

    announced.clear()
    applied = await stubs.admin.ApplyZoneChanges(messages.ApplyZoneChangesRequest())
    assert applied == messages.ApplyZoneChangesResponse(
        account_schedules=1, schedule_rules=1, done=True, tzdata_version=tzdata_version()
    )
    schedule_event, rule_event = announced
    schedule = AccountScheduleChanged.FromString(schedule_event.payload).account_schedule
    assert (schedule.version, schedule.tzdata_version) == (2, tzdata_version())
    get = GetAccountScheduleRequest(organization_id="acme", social_account_id="page")
    assert (await stubs.schedules.GetAccountSchedule(get)).account_schedule == schedule
    assert ScheduleRuleChanged.FromString(rule_event.payload).schedule_rule.tzdata_version == tzdata_version()

    assert not (await stubs.admin.ListZoneChanges(listing())).zone_changes
    again = await stubs.admin.ApplyZoneChanges(messages.ApplyZoneChangesRequest())
    assert again == messages.ApplyZoneChangesResponse(done=True, tzdata_version=tzdata_version())
    assert len(announced) == 2


async def test_a_timer_fires_at_its_local_time_by_the_new_data(stubs: Stubs, database: Database) -> None:
    timer = Timer(topic="t", cron="0 9 * 1 *", time_zone=VANCOUVER)
    made = await stubs.timers.CreateTimer(CreateTimerRequest(organization_id="acme", timer=timer, timer_id="t"))
    await went_back(database)
    async with database.transaction() as tx:
        await tx.connection.execute(text("update timer set due_time = due_time + interval '1 hour'"))
    (change,) = (await stubs.admin.ListZoneChanges(listing())).zone_changes
    assert (change.kind, change.id) == (messages.ZONE_CHANGE_KIND_TIMER, "t")
    (moved,) = change.moved_times
    assert moved.nominal_local_time.endswith("T09:00")
    assert moved.new_time == made.timer.next_fire_time
    assert (await stubs.admin.ApplyZoneChanges(messages.ApplyZoneChangesRequest())).timers == 1
    now = (await stubs.timers.GetTimer(GetTimerRequest(organization_id="acme", timer_id="t"))).timer
    assert now == made.timer


async def test_pages_follow_tokens_and_one_tenant_can_be_listed(stubs: Stubs, database: Database) -> None:
    for organization in ("acme", "umbrella"):
        for number in range(3):
            await put(stubs, f"page-{number}", organization)
    await went_back(database)
    seen, request = [], listing(page_size=2)
    while True:
        page = await stubs.admin.ListZoneChanges(request)
        assert len(page.zone_changes) <= 2
        seen += [(change.organization_id, change.id) for change in page.zone_changes]
        if not page.next_page_token:
            break
        request.page_token = page.next_page_token
    assert seen == [(org, f"page-{number}") for org in ("acme", "umbrella") for number in range(3)]
    tenant = await stubs.admin.ListZoneChanges(listing(organization_id="umbrella", page_size=200))
    assert {change.organization_id for change in tenant.zone_changes} == {"umbrella"}
    assert len(tenant.zone_changes) == 3
    applied = await stubs.admin.ApplyZoneChanges(messages.ApplyZoneChangesRequest(organization_id="umbrella"))
    assert (applied.account_schedules, applied.done) == (3, True)
    left = await stubs.admin.ListZoneChanges(listing())
    assert {change.organization_id for change in left.zone_changes} == {"acme"}


@pytest.mark.parametrize("organization_id", ["no such/id", "x" * 65])
async def test_a_malformed_organization_is_refused(stubs: Stubs, organization_id: str) -> None:
    for call in (
        stubs.admin.ListZoneChanges(listing(organization_id=organization_id)),
        stubs.admin.ApplyZoneChanges(messages.ApplyZoneChangesRequest(organization_id=organization_id)),
    ):
        refused = await fault_of(call)
        assert isinstance(refused, InvalidRequest)
        assert [violation.field for violation in refused.violations] == ["organization_id"]


async def test_a_token_is_valid_only_for_its_own_request(stubs: Stubs, database: Database) -> None:
    for number in range(3):
        await put(stubs, f"page-{number}")
    await went_back(database)
    token = (await stubs.admin.ListZoneChanges(listing(page_size=1))).next_page_token
    tampered = ("B" if token[0] == "A" else "A") + token[1:]
    for request in (
        listing(organization_id="acme", page_token=token),
        listing(page_token=tampered),
        listing(page_token="made up"),
        listing(page_token="x" * 1025),
    ):
        refused = await fault_of(stubs.admin.ListZoneChanges(request))
        assert [violation.field for violation in refused.violations] == ["page_token"]
    refused = await fault_of(stubs.admin.ListZoneChanges(listing(page_size=-1)))
    assert [violation.field for violation in refused.violations] == ["page_size"]
    other_size = await stubs.admin.ListZoneChanges(listing(page_size=2, page_token=token))
    assert [change.id for change in other_size.zone_changes] == ["page-1", "page-2"]


async def test_a_call_continues_where_an_interrupted_one_stopped(stubs: Stubs, database: Database) -> None:
    await put(stubs, "page")
    async with database.transaction() as tx:
        await tx.connection.execute(
            text("""
                insert into account_schedule
                select (jsonb_populate_record(schedule, jsonb_build_object('social_account_id', 'page-' || n))).*
                from account_schedule as schedule, generate_series(1, 599) n
            """)
        )
        await tx.connection.execute(text("delete from outbox"))
    await went_back(database)
    seconds, done = 0.05, False
    while not done:
        seconds *= 1.5
        try:
            applied = await stubs.admin.ApplyZoneChanges(messages.ApplyZoneChangesRequest(), timeout=seconds)
            done = applied.done
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.DEADLINE_EXCEEDED:
                raise
    async with database.read() as connection:
        payloads = (await connection.execute(text("select payload from outbox"))).scalars().all()
    events = [event for payload in payloads for event in bus_pb2.Envelope.FromString(payload).events]
    ids = [AccountScheduleChanged.FromString(event.payload).account_schedule.social_account_id for event in events]
    assert len(ids) == len(set(ids)) == 600


class Apply:
    """Stands in for the use case."""

    def __init__(self) -> None:
        self.left = 0.0

    async def __call__(self, *, organization_id: str, patience: float) -> AppliedZoneChanges:
        assert organization_id == "acme"
        self.left = patience
        raise grpc.aio.UsageError("enough")


@pytest.mark.parametrize(("timeout", "most"), [(20.0, 20.0), (None, 60.0), (3600.0, 600.0)])
async def test_work_ends_well_before_the_deadline_of_the_call(
    parts: "Parts", timeout: float | None, most: float
) -> None:
    apply: Any = Apply()
    servicer = ScheduleAdminServicer(list_zone_changes=apply, apply_zone_changes=apply)
    servicers = [(add_ScheduleAdminServiceServicer_to_server, servicer)]
    server = RpcServer(listen="127.0.0.1:0", servicers=servicers, ids=parts.ids, deadlines=DEADLINES)
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        stub: Stub = ScheduleAdminServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError):
            await stub.ApplyZoneChanges(messages.ApplyZoneChangesRequest(organization_id="acme"), timeout=timeout)
    await server.stop(0)
    assert most / 2 < apply.left < most * 0.8
