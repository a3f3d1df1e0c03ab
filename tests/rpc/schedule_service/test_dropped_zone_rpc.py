"""Zones that tzdata has dropped, over the wire: schedules and rules in them are shown, replaced and deleted."""

from datetime import UTC, datetime
from typing import Any, TypeAlias

from google.protobuf.field_mask_pb2 import FieldMask
from sqlalchemy import text

from civil.zones import tzdata_version
from postflow.bus.v1.bus_pb2 import Event
from postflow.schedule.v1.account_schedule_pb2 import DAY_OF_WEEK_MONDAY, AccountSchedule, SendWindow, WeeklySlot
from postflow.schedule.v1.schedule_events_pb2 import AccountScheduleChanged, ScheduleRuleChanged
from postflow.schedule.v1.schedule_rule_pb2 import ScheduleRule, SkippedRule
from postflow.schedule.v1.schedule_service_pb2 import (
    CheckSendWindowRequest,
    CreateScheduleRuleRequest,
    DeleteAccountScheduleRequest,
    DeleteScheduleRuleRequest,
    FindSlotTimesRequest,
    GetAccountScheduleRequest,
    GetScheduleRuleRequest,
    ListAccountSchedulesRequest,
    ListRuleTargetsRequest,
    ListRuleTargetsResponse,
    ListScheduleRulesRequest,
    PutAccountScheduleRequest,
    UpdateScheduleRuleRequest,
)
from servicekit.faults import Conflict, Fault, Refused
from servicekit.pg.database import Database
from testkit.refusals import fault_of

Stub: TypeAlias = "Any"

GONE = "Europe/Atlantis"
NINE = WeeklySlot(day_of_week=DAY_OF_WEEK_MONDAY, hour=9)
MARCH = datetime(2026, 3, 1, tzinfo=UTC)


async def put(stub: Stub, account: str = "page", **fields: Any) -> AccountSchedule:
    given = {"social_account_id": account, "time_zone": "Europe/Berlin", "weekly_slots": [NINE]}
    request = PutAccountScheduleRequest(organization_id="acme", account_schedule=AccountSchedule(**(given | fields)))
    stored: AccountSchedule = (await stub.PutAccountSchedule(request)).account_schedule
    return stored


async def create(stub: Stub, rule_id: str = "rule", **fields: Any) -> ScheduleRule:
    given = {"brand_id": "brand", "time_zone": "Europe/Berlin", "weekly_slots": [NINE], "channels": ["facebook"]}
    rule = ScheduleRule(**(given | fields))
    request = CreateScheduleRuleRequest(organization_id="acme", schedule_rule=rule, schedule_rule_id=rule_id)
    stored: ScheduleRule = (await stub.CreateScheduleRule(request)).schedule_rule
    return stored


async def drop(database: Database, table: str, key: str, value: str) -> None:
    """Changes the zone of one row."""
    statement = text(f"update {table} set time_zone = :zone where {key} = :value")  # noqa: S608
    async with database.transaction() as tx:
        await tx.connection.execute(statement, {"zone": GONE, "value": value})


async def drop_schedule(database: Database, account: str = "page") -> None:
    await drop(database, "account_schedule", "social_account_id", account)


async def drop_rule(database: Database, rule_id: str = "rule") -> None:
    await drop(database, "schedule_rule", "id", rule_id)


async def get(stub: Stub, account: str = "page") -> AccountSchedule:
    request = GetAccountScheduleRequest(organization_id="acme", social_account_id=account)
    stored: AccountSchedule = (await stub.GetAccountSchedule(request)).account_schedule
    return stored


async def get_rule(stub: Stub, rule_id: str = "rule") -> ScheduleRule:
    request = GetScheduleRuleRequest(organization_id="acme", schedule_rule_id=rule_id)
    stored: ScheduleRule = (await stub.GetScheduleRule(request)).schedule_rule
    return stored


async def targets(stub: Stub, **fields: Any) -> ListRuleTargetsResponse:
    given: dict[str, Any] = {"organization_id": "acme", "brand_id": "brand", "after": MARCH}
    request = ListRuleTargetsRequest(**(given | fields))
    found: ListRuleTargetsResponse = await stub.ListRuleTargets(request)
    return found


def update_request(*paths: str, **fields: Any) -> UpdateScheduleRuleRequest:
    rule = ScheduleRule(id="rule", **fields)
    return UpdateScheduleRuleRequest(
        organization_id="acme", schedule_rule=rule, update_mask=FieldMask(paths=paths or list(fields))
    )


def require_names_the_zone(refused: Fault, **names: str) -> None:
    assert isinstance(refused, Refused)
    assert refused.reason == "UNKNOWN_TIME_ZONE"
    assert refused.metadata == {"time_zone": GONE, "tzdata_version": tzdata_version()} | names
    assert GONE in refused.message
    assert "time_zone" in refused.message


# Account schedules


async def test_a_schedule_is_shown_as_it_is_stored_and_hides_no_other(stub: Stub, database: Database) -> None:
    accounts = ["page-1", "page-2", "page-3"]
    stored = {account: await put(stub, account) for account in accounts}
    await drop_schedule(database, "page-2")
    stored["page-2"].time_zone = GONE
    assert await get(stub, "page-2") == stored["page-2"]
    listed = await stub.ListAccountSchedules(ListAccountSchedulesRequest(organization_id="acme"))
    assert list(listed.account_schedules) == list(stored.values())


async def test_a_schedule_in_a_dropped_zone_has_no_times(stub: Stub, database: Database) -> None:
    window = SendWindow(days_of_week=[DAY_OF_WEEK_MONDAY])
    await put(stub, send_window=window)
    await drop_schedule(database)
    for call in (
        stub.FindSlotTimes(FindSlotTimesRequest(organization_id="acme", social_account_id="page")),
        stub.CheckSendWindow(CheckSendWindowRequest(organization_id="acme", social_account_id="page")),
    ):
        require_names_the_zone(await fault_of(call), social_account_id="page")


async def test_without_a_window_a_dropped_zone_does_not_matter(stub: Stub, database: Database) -> None:
    await put(stub)
    await drop_schedule(database)
    checked = await stub.CheckSendWindow(CheckSendWindowRequest(organization_id="acme", social_account_id="page"))
    assert (checked.open, checked.time_zone) == (True, GONE)


async def test_a_schedule_in_a_dropped_zone_can_be_replaced(
    stub: Stub, database: Database, announced: list[Event]
) -> None:
    before = await put(stub)
    await drop_schedule(database)
    assert isinstance(await fault_of(put(stub, etag="stale")), Conflict)
    after = await put(stub, etag=(await get(stub)).etag)
    assert (after.time_zone, after.version) == ("Europe/Berlin", before.version + 1)
    assert AccountScheduleChanged.FromString(announced[-1].payload).account_schedule == after
    found = await stub.FindSlotTimes(FindSlotTimesRequest(organization_id="acme", social_account_id="page", count=1))
    assert len(found.slot_times) == 1


async def test_a_schedule_in_a_dropped_zone_can_be_deleted_and_put_again(
    stub: Stub, database: Database, announced: list[Event]
) -> None:
    await put(stub)
    await drop_schedule(database)
    await stub.DeleteAccountSchedule(DeleteAccountScheduleRequest(organization_id="acme", social_account_id="page"))
    event = AccountScheduleChanged.FromString(announced[-1].payload)
    assert (event.deleted, event.account_schedule.time_zone) == (True, GONE)
    assert (await put(stub)).version == 3


# Schedule rules


async def test_a_rule_is_shown_as_it_is_stored_and_hides_no_other(stub: Stub, database: Database) -> None:
    stored = {rule_id: await create(stub, rule_id) for rule_id in ("r1", "r2", "r3")}
    await drop_rule(database, "r2")
    stored["r2"].time_zone = GONE
    assert await get_rule(stub, "r2") == stored["r2"]
    for brand in ("", "brand"):
        listed = await stub.ListScheduleRules(ListScheduleRulesRequest(organization_id="acme", brand_id=brand))
        assert list(listed.schedule_rules) == list(stored.values())


async def test_a_rule_in_a_dropped_zone_is_listed_as_skipped(stub: Stub, database: Database) -> None:
    for rule_id in ("r1", "r2", "r3", "r4"):
        await create(stub, rule_id, enabled=rule_id != "r4")
    for rule_id in ("r1", "r3", "r4"):
        await drop_rule(database, rule_id)
    skipped = [
        SkippedRule(schedule_rule_id=rule_id, reason="UNKNOWN_TIME_ZONE", time_zone=GONE) for rule_id in ("r1", "r3")
    ]
    first = await targets(stub, page_size=2)
    second = await targets(stub, page_size=2, page_token=first.next_page_token)
    for page in (first, second):
        assert {target.schedule_rule_id for target in page.rule_targets} == {"r2"}
        assert list(page.skipped_rules) == skipped
    assert first.rule_targets[0].key == "r2/2026-03-02/09:00"


async def test_no_rule_is_skipped_when_all_zones_are_known(stub: Stub) -> None:
    await create(stub)
    assert not (await targets(stub)).skipped_rules


async def test_a_change_that_keeps_a_dropped_zone_is_refused(
    stub: Stub, database: Database, announced: list[Event]
) -> None:
    await create(stub, rrule="FREQ=DAILY", start_time={"hour": 9}, weekly_slots=[])
    await drop_rule(database)
    before = await get_rule(stub)
    for request in (update_request(name="new"), update_request("start_date"), update_request("enabled", enabled=False)):
        require_names_the_zone(await fault_of(stub.UpdateScheduleRule(request)), schedule_rule_id="rule")
    assert await get_rule(stub) == before
    assert len(announced) == 1


async def test_a_rule_in_a_dropped_zone_can_get_another_zone(
    stub: Stub, database: Database, announced: list[Event]
) -> None:
    daily: dict[str, Any] = {
        "rrule": "FREQ=DAILY",
        "start_time": {"hour": 9},
        "start_date": "2026-03-01",
        "weekly_slots": [],
    }
    before = await create(stub, **daily)
    await drop_rule(database)
    after = (await stub.UpdateScheduleRule(update_request(time_zone="Europe/Lisbon"))).schedule_rule
    assert (after.time_zone, after.version, after.start_date) == (
        "Europe/Lisbon",
        before.version + 1,
        before.start_date,
    )
    assert ScheduleRuleChanged.FromString(announced[-1].payload).schedule_rule == after
    assert (await targets(stub)).rule_targets[0].key == "rule/2026-03-01/09:00"


async def test_a_rule_in_a_dropped_zone_can_be_deleted(stub: Stub, database: Database, announced: list[Event]) -> None:
    await create(stub)
    await drop_rule(database)
    await stub.DeleteScheduleRule(DeleteScheduleRuleRequest(organization_id="acme", schedule_rule_id="rule"))
    event = ScheduleRuleChanged.FromString(announced[-1].payload)
    assert (event.deleted, event.schedule_rule.time_zone) == (True, GONE)
    assert not (await targets(stub)).skipped_rules
