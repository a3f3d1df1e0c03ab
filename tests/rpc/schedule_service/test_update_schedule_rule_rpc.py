"""Changing schedule rules over the wire."""

from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from postflow.bus.v1.bus_pb2 import Event
from postflow.schedule.v1.account_schedule_pb2 import (
    LocalTime,
)
from postflow.schedule.v1.schedule_rule_pb2 import (
    ASSET_POLICY_OPTIONAL,
    ASSET_POLICY_REQUIRED,
    ScheduleRule,
)
from postflow.schedule.v1.schedule_service_pb2 import (
    DeleteScheduleRuleRequest,
    UpdateScheduleRuleRequest,
)
from servicekit.faults import Conflict
from testkit.refusals import fault_of, fields_at_fault

if TYPE_CHECKING:
    from tests.rpc.schedule_service.conftest import RuleCalls


Stub: TypeAlias = "Any"
CHANGEABLE = [
    "name",
    "time_zone",
    "weekly_slots",
    "rrule",
    "start_time",
    "start_date",
    "end_date",
    "excluded_dates",
    "channels",
    "category_id",
    "asset_policy",
    "enabled",
]


async def test_the_mask_selects_fields_and_unset_ones_get_their_defaults(stub: Stub, rules: "RuleCalls") -> None:
    before = await rules.create(
        name="Monday",
        category_id="memes",
        asset_policy=ASSET_POLICY_REQUIRED,
        enabled=False,
        end_date="2026-12-31",
        excluded_dates=["2026-12-25"],
    )
    after = (
        await stub.UpdateScheduleRule(
            rules.update_request(
                "asset_policy", "enabled", "end_date", "excluded_dates", name="not named", etag=before.etag
            )
        )
    ).schedule_rule
    assert (after.asset_policy, after.enabled, after.end_date) == (ASSET_POLICY_OPTIONAL, True, "")
    assert list(after.excluded_dates) == []
    assert (after.name, after.category_id, after.version) == ("Monday", "memes", 2)
    assert await rules.get() == after


async def test_every_field_that_can_be_changed_is_changed(stub: Stub, rules: "RuleCalls") -> None:
    await rules.create()
    wanted: dict[str, Any] = {
        "name": "Other",
        "time_zone": "Asia/Tokyo",
        "weekly_slots": [],
        "rrule": "FREQ=DAILY",
        "start_time": LocalTime(hour=7),
        "start_date": "2026-05-01",
        "end_date": "2026-06-01",
        "excluded_dates": ["2026-05-02"],
        "channels": ["telegram"],
        "category_id": "news",
        "asset_policy": ASSET_POLICY_REQUIRED,
        "enabled": False,
    }
    assert list(wanted) == CHANGEABLE
    after = (await stub.UpdateScheduleRule(rules.update_request(*wanted, **wanted))).schedule_rule
    expected = ScheduleRule(**wanted)
    for name in wanted:
        assert getattr(after, name) == getattr(expected, name), name


@pytest.mark.parametrize("path", ["brand_id", "id", "etag", "version", "create_time", "tzdata_version"])
async def test_other_fields_cannot_be_changed(stub: Stub, rules: "RuleCalls", path: str) -> None:
    before = await rules.create()
    fault = await fault_of(stub.UpdateScheduleRule(rules.update_request("name", path, brand_id="other", name="Other")))
    assert fields_at_fault(fault) == ["update_mask"]
    assert ", ".join(CHANGEABLE) in fault.message
    assert await rules.get() == before


@pytest.mark.parametrize("paths", [["colour"], ["*"], ["start_time.hour"], ["weekly_slots.hour"], [""]])
async def test_a_mask_of_unknown_fields_is_refused(stub: Stub, rules: "RuleCalls", paths: list[str]) -> None:
    await rules.create()
    assert fields_at_fault(await fault_of(stub.UpdateScheduleRule(rules.update_request(*paths)))) == ["update_mask"]


async def test_a_mask_that_names_nothing_is_refused(stub: Stub, rules: "RuleCalls") -> None:
    await rules.create()
    without = UpdateScheduleRuleRequest(organization_id="acme", schedule_rule=ScheduleRule(id="r1"))
    for request in (rules.update_request(id="r1"), without):
        fault = await fault_of(stub.UpdateScheduleRule(request))
        assert fields_at_fault(fault) == ["update_mask"]
        assert ", ".join(CHANGEABLE) in fault.message


async def test_an_update_names_its_rule(stub: Stub, rules: "RuleCalls") -> None:
    assert fields_at_fault(await fault_of(stub.UpdateScheduleRule(rules.update_request("name", id="")))) == [
        "schedule_rule.id"
    ]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"time_zone": ""}, "schedule_rule.time_zone"),
        ({"channels": []}, "schedule_rule.channels"),
        ({"weekly_slots": []}, "schedule_rule.weekly_slots"),
        ({"rrule": "FREQ=DAILY"}, "schedule_rule.rrule"),
        ({"start_time": LocalTime(hour=9)}, "schedule_rule.start_time"),
        ({"start_date": "2027-01-01"}, "schedule_rule.end_date"),
        ({"excluded_dates": ["2026-02-29"]}, "schedule_rule.excluded_dates[0]"),
    ],
)
async def test_a_change_that_makes_a_bad_rule_is_refused(
    stub: Stub, rules: "RuleCalls", fields: dict[str, Any], field: str
) -> None:
    before = await rules.create(end_date="2026-12-31")
    assert fields_at_fault(await fault_of(stub.UpdateScheduleRule(rules.update_request(**fields)))) == [field]
    assert await rules.get() == before


async def test_a_stale_etag_is_aborted_and_changes_nothing(
    stub: Stub, rules: "RuleCalls", announced: list[Event]
) -> None:
    first = await rules.create()
    second = (await stub.UpdateScheduleRule(rules.update_request(name="Other", etag=first.etag))).schedule_rule
    for call in (
        stub.UpdateScheduleRule(rules.update_request(name="third", etag=first.etag)),
        stub.DeleteScheduleRule(
            DeleteScheduleRuleRequest(organization_id="acme", schedule_rule_id="r1", etag=first.etag)
        ),
    ):
        fault = await fault_of(call)
        assert isinstance(fault, Conflict)
        assert (fault.reason, fault.metadata) == ("ETAG_MISMATCH", {"schedule_rule_id": "r1"})
    assert await rules.get() == second
    assert len(announced) == 2
