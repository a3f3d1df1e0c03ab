"""Creating and reading schedule rules over the wire."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from postflow.bus.v1.bus_pb2 import Event
from postflow.schedule.v1.account_schedule_pb2 import (
    DAY_OF_WEEK_MONDAY,
    DAY_OF_WEEK_SUNDAY,
    LocalTime,
    WeeklySlot,
)
from postflow.schedule.v1.schedule_events_pb2 import ScheduleRuleChanged
from postflow.schedule.v1.schedule_rule_pb2 import (
    ASSET_POLICY_NONE,
    ASSET_POLICY_OPTIONAL,
)
from postflow.schedule.v1.schedule_service_pb2 import (
    CreateScheduleRuleRequest,
    DeleteScheduleRuleRequest,
    ListScheduleRulesRequest,
)
from servicekit.faults import AlreadyExists, InvalidRequest, NotFound
from testkit.refusals import fault_of, fields_at_fault

if TYPE_CHECKING:
    from tests.rpc.schedule_service.conftest import RuleCalls


Stub: TypeAlias = "Any"
MONDAY = WeeklySlot(day_of_week=DAY_OF_WEEK_MONDAY, hour=9)
SUNDAY = WeeklySlot(day_of_week=DAY_OF_WEEK_SUNDAY, hour=2, minute=30)
MARCH = datetime(2026, 3, 1, 0, 0, tzinfo=UTC)


async def test_a_created_rule_can_be_read_and_listed(stub: Stub, rules: "RuleCalls") -> None:
    created = await rules.create(
        name="Monday motivation",
        weekly_slots=[MONDAY, SUNDAY],
        start_date="2026-01-01",
        end_date="2026-12-31",
        excluded_dates=["2026-12-25", "2026-04-06", "2026-12-25"],
        channels=["instagram", "facebook", " Instagram "],
        category_id="memes",
        asset_policy=ASSET_POLICY_NONE,
    )
    assert list(created.weekly_slots) == [SUNDAY, MONDAY]
    assert list(created.excluded_dates) == ["2026-04-06", "2026-12-25"]
    assert list(created.channels) == ["instagram_feed", "facebook"]
    assert (created.id, created.brand_id, created.name, created.category_id) == (
        "r1",
        "brand",
        "Monday motivation",
        "memes",
    )
    assert (created.start_date, created.end_date, created.asset_policy) == (
        "2026-01-01",
        "2026-12-31",
        ASSET_POLICY_NONE,
    )
    assert created.create_time == created.update_time
    assert (created.version, created.enabled) == (1, True)
    assert created.tzdata_version
    assert created.etag
    assert await rules.get() == created
    listed = await stub.ListScheduleRules(ListScheduleRulesRequest(organization_id="acme"))
    assert list(listed.schedule_rules) == [created]


async def test_unset_fields_get_their_defaults(stub: Stub, rules: "RuleCalls") -> None:
    created = await rules.create(rule_id="")
    assert len(created.id) == 36
    assert (created.asset_policy, created.enabled) == (ASSET_POLICY_OPTIONAL, True)
    assert (created.name, created.category_id, created.rrule) == ("", "", "")
    assert (created.start_date, created.end_date, created.HasField("start_time")) == ("", "", False)


async def test_an_rrule_is_returned_in_its_canonical_form_with_its_start(stub: Stub, rules: "RuleCalls") -> None:
    created = await rules.create(
        weekly_slots=[], rrule="RRULE:byday=1tu;freq=monthly;interval=1", start_time=LocalTime(hour=9, minute=30)
    )
    assert created.rrule == "FREQ=MONTHLY;BYDAY=1TU"
    assert (created.start_time.hour, created.start_time.minute) == (9, 30)
    assert len(created.start_date) == len("2026-03-01")
    assert list(created.weekly_slots) == []


async def test_output_only_fields_are_ignored(stub: Stub, rules: "RuleCalls") -> None:
    created = await rules.create(
        id="mine", version=41, etag="e", create_time=MARCH, update_time=MARCH, tzdata_version="1999a"
    )
    assert (created.id, created.version) == ("r1", 1)
    assert created.create_time.ToDatetime(UTC) != MARCH
    assert created.tzdata_version != "1999a"


async def test_every_change_is_announced(stub: Stub, rules: "RuleCalls", announced: list[Event]) -> None:
    await rules.create()
    await stub.UpdateScheduleRule(rules.update_request(name="Other"))
    await stub.UpdateScheduleRule(rules.update_request(name="Other"))
    await stub.DeleteScheduleRule(DeleteScheduleRuleRequest(organization_id="acme", schedule_rule_id="r1"))
    changes = [ScheduleRuleChanged.FromString(event.payload) for event in announced]
    assert [(each.schedule_rule.version, each.schedule_rule.name, each.deleted) for each in changes] == [
        (1, "", False),
        (2, "Other", False),
        (3, "Other", True),
    ]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"brand_id": ""}, "schedule_rule.brand_id"),
        ({"brand_id": "a/b"}, "schedule_rule.brand_id"),
        ({"id": "a/b"}, "schedule_rule.id"),
        ({"rule_id": "a/b"}, "schedule_rule_id"),
        ({"organization": ""}, "organization_id"),
        ({"name": "x" * 201}, "schedule_rule.name"),
        ({"name": "a\0b"}, "schedule_rule.name"),
        ({"time_zone": ""}, "schedule_rule.time_zone"),
        ({"time_zone": "localtime"}, "schedule_rule.time_zone"),
        ({"time_zone": "Factory"}, "schedule_rule.time_zone"),
        ({"time_zone": "x" * 300}, "schedule_rule.time_zone"),
        ({"weekly_slots": []}, "schedule_rule.weekly_slots"),
        ({"weekly_slots": [MONDAY, MONDAY]}, "schedule_rule.weekly_slots[1]"),
        ({"weekly_slots": [WeeklySlot(hour=9)]}, "schedule_rule.weekly_slots[0].day_of_week"),
        (
            {"weekly_slots": [WeeklySlot(day_of_week=DAY_OF_WEEK_MONDAY, hour=24)]},
            "schedule_rule.weekly_slots[0].hour",
        ),
        (
            {"weekly_slots": [MONDAY, WeeklySlot(day_of_week=DAY_OF_WEEK_SUNDAY, category_id="news")]},
            "schedule_rule.weekly_slots[1].category_id",
        ),
        ({"weekly_slots": [MONDAY] * 501}, "schedule_rule.weekly_slots"),
        ({"rrule": "FREQ=DAILY"}, "schedule_rule.rrule"),
        ({"rrule": "FREQ=SECONDLY", "weekly_slots": []}, "schedule_rule.rrule"),
        ({"rrule": "every day", "weekly_slots": []}, "schedule_rule.rrule"),
        ({"rrule": "X" * 501, "weekly_slots": []}, "schedule_rule.rrule"),
        (
            {"rrule": "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "weekly_slots": [], "start_time": LocalTime(hour=9)},
            "schedule_rule.rrule",
        ),
        ({"rrule": "FREQ=DAILY", "weekly_slots": []}, "schedule_rule.start_time"),
        ({"start_time": LocalTime(hour=9)}, "schedule_rule.start_time"),
        ({"start_time": LocalTime(hour=24)}, "schedule_rule.start_time.hour"),
        ({"start_date": "2026-02-30"}, "schedule_rule.start_date"),
        ({"start_date": "20260201"}, "schedule_rule.start_date"),
        ({"start_date": "2026-W05"}, "schedule_rule.start_date"),
        ({"start_date": "2026-1-1"}, "schedule_rule.start_date"),
        ({"start_date": "٢٠٢٦-٠١-٠١"}, "schedule_rule.start_date"),  # noqa: RUF001 - digits, but not ASCII
        ({"end_date": "0000-01-01"}, "schedule_rule.end_date"),
        ({"end_date": "tomorrow"}, "schedule_rule.end_date"),
        ({"start_date": "2026-01-02", "end_date": "2026-01-01"}, "schedule_rule.end_date"),
        ({"excluded_dates": ["2026-01-01", "2026-13-01"]}, "schedule_rule.excluded_dates[1]"),
        ({"excluded_dates": [""]}, "schedule_rule.excluded_dates[0]"),
        ({"excluded_dates": ["2026-01-01"] * 1001}, "schedule_rule.excluded_dates"),
        ({"channels": []}, "schedule_rule.channels"),
        ({"channels": ["facebook", "fax"]}, "schedule_rule.channels[1]"),
        ({"channels": [""]}, "schedule_rule.channels[0]"),
        ({"channels": ["facebook"] * 51}, "schedule_rule.channels"),
        ({"category_id": "a b"}, "schedule_rule.category_id"),
        ({"asset_policy": 4}, "schedule_rule.asset_policy"),
        ({"request_id": "a b"}, "request_id"),
    ],
)
async def test_a_bad_rule_is_refused_by_field(
    stub: Stub, rules: "RuleCalls", fields: dict[str, Any], field: str
) -> None:
    fault = await fault_of(stub.CreateScheduleRule(rules.create_request(**fields)))
    assert isinstance(fault, InvalidRequest)
    assert fields_at_fault(fault) == [field]
    assert fault.metadata["field"] == field


async def test_a_rule_needs_a_time_zone(stub: Stub, rules: "RuleCalls") -> None:
    fault = await fault_of(stub.CreateScheduleRule(rules.create_request(time_zone="")))
    assert fault.message == "schedule_rule.time_zone: is required"
    assert fault.reason == "INVALID_FIELD"


async def test_an_unknown_zone_and_channel_have_their_own_reasons(stub: Stub, rules: "RuleCalls") -> None:
    fault = await fault_of(stub.CreateScheduleRule(rules.create_request(time_zone="europe/berlin")))
    assert fault.reason == "UNKNOWN_TIME_ZONE"
    assert "Europe/Berlin" in fault.message
    fault = await fault_of(stub.CreateScheduleRule(rules.create_request(channels=["myspace"])))
    assert fault.reason == "UNKNOWN_CHANNEL"
    assert "linkedin_profile" in fault.message


async def test_creating_without_a_rule_is_refused(stub: Stub) -> None:
    fault = await fault_of(stub.CreateScheduleRule(CreateScheduleRuleRequest(organization_id="acme")))
    assert fields_at_fault(fault) == ["schedule_rule"]


async def test_the_id_of_a_deleted_rule_cannot_be_used_again(stub: Stub, rules: "RuleCalls") -> None:
    await rules.create()
    for _ in range(2):
        fault = await fault_of(stub.CreateScheduleRule(rules.create_request()))
        assert isinstance(fault, AlreadyExists)
        assert (fault.reason, fault.metadata) == ("SCHEDULE_RULE_EXISTS", {"schedule_rule_id": "r1"})
        await stub.DeleteScheduleRule(
            DeleteScheduleRuleRequest(organization_id="acme", schedule_rule_id="r1", request_id="q1")
        )
    await rules.create(organization="umbrella")


async def test_a_repeated_request_gets_the_first_answer(stub: Stub, rules: "RuleCalls") -> None:
    created = await stub.CreateScheduleRule(rules.create_request("", request_id="q1"))
    rule_id = created.schedule_rule.id
    renamed = rules.update_request(id=rule_id, name="Other", request_id="q1")
    updated = await stub.UpdateScheduleRule(renamed)
    gone = DeleteScheduleRuleRequest(organization_id="acme", schedule_rule_id=rule_id, request_id="q1")
    await stub.DeleteScheduleRule(gone)
    assert await stub.CreateScheduleRule(rules.create_request("", request_id="q1")) == created
    assert await stub.UpdateScheduleRule(renamed) == updated
    await stub.DeleteScheduleRule(gone)
    for call in (
        stub.CreateScheduleRule(rules.create_request("", request_id="q1", name="third")),
        stub.UpdateScheduleRule(rules.update_request(id=rule_id, name="third", request_id="q1")),
        stub.DeleteScheduleRule(
            DeleteScheduleRuleRequest(organization_id="acme", schedule_rule_id="other", request_id="q1")
        ),
    ):
        assert (await fault_of(call)).reason == "REQUEST_ID_REUSED"


async def test_an_unknown_deleted_or_foreign_rule_is_not_found(stub: Stub, rules: "RuleCalls") -> None:
    await rules.create()
    await rules.create("gone")
    await stub.DeleteScheduleRule(DeleteScheduleRuleRequest(organization_id="acme", schedule_rule_id="gone"))
    for organization, rule_id in (("acme", "never"), ("acme", "gone"), ("umbrella", "r1")):
        for call in (
            rules.get(rule_id, organization),
            stub.UpdateScheduleRule(rules.update_request("name", organization=organization, id=rule_id)),
            stub.DeleteScheduleRule(DeleteScheduleRuleRequest(organization_id=organization, schedule_rule_id=rule_id)),
        ):
            fault = await fault_of(call)
            assert isinstance(fault, NotFound)
            assert (fault.reason, fault.metadata) == ("SCHEDULE_RULE_NOT_FOUND", {"schedule_rule_id": rule_id})
