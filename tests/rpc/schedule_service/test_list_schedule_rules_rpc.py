"""Listing schedule rules over the wire."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from google.protobuf.duration_pb2 import Duration

from postflow.schedule.v1.account_schedule_pb2 import (
    DAY_OF_WEEK_MONDAY,
    WeeklySlot,
)
from postflow.schedule.v1.schedule_service_pb2 import (
    ListScheduleRulesRequest,
    ListScheduleRulesResponse,
)
from servicekit.faults import InvalidRequest
from testkit.refusals import fault_of, fields_at_fault

if TYPE_CHECKING:
    from tests.rpc.schedule_service.conftest import RuleCalls


Stub: TypeAlias = "Any"
MARCH = datetime(2026, 3, 1, 0, 0, tzinfo=UTC)


async def rule_pages(stub: Stub, size: int, **fields: Any) -> list[list[str]]:
    found: list[list[str]] = []
    token = ""
    while token or not found:
        request = ListScheduleRulesRequest(organization_id="acme", page_size=size, page_token=token, **fields)
        page: ListScheduleRulesResponse = await stub.ListScheduleRules(request)
        found.append([rule.id for rule in page.schedule_rules])
        token = page.next_page_token
    return found


async def test_rules_are_paged_for_one_or_all_brands(stub: Stub, rules: "RuleCalls") -> None:
    for n in range(5):
        await rules.create(f"r{n}", brand_id="odd" if n % 2 else "even")
    await rules.create("r9", organization="umbrella")
    assert await rule_pages(stub, 2) == [["r0", "r1"], ["r2", "r3"], ["r4"]]
    assert await rule_pages(stub, 3, brand_id="even") == [["r0", "r2", "r4"]]
    assert await rule_pages(stub, 200, brand_id="odd") == [["r1", "r3"]]
    assert await rule_pages(stub, 0, brand_id="none") == [[]]


async def test_a_page_of_the_largest_rules_is_as_long_as_fits(stub: Stub, rules: "RuleCalls") -> None:
    slots = [
        WeeklySlot(day_of_week=DAY_OF_WEEK_MONDAY, hour=hour, minute=minute)
        for hour in range(10, 20)
        for minute in range(10, 60)
    ]
    days = [f"{MARCH + timedelta(days=n):%Y-%m-%d}" for n in range(1000)]
    for n in range(16):
        await rules.create(f"r{n:02}", name="ü" * 200, weekly_slots=slots, excluded_dates=days)
    pages = await rule_pages(stub, 200)
    assert len(pages) > 1
    assert [rule_id for page in pages for rule_id in page] == [f"r{n:02}" for n in range(16)]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"page_size": -1}, "page_size"),
        ({"page_size": 201}, "page_size"),
        ({"page_token": "made up"}, "page_token"),
        ({"brand_id": "a/b"}, "brand_id"),
        ({"organization_id": ""}, "organization_id"),
    ],
)
async def test_a_bad_listing_is_refused_by_field(
    stub: Stub, rules: "RuleCalls", fields: dict[str, Any], field: str
) -> None:
    listing = ListScheduleRulesRequest(**({"organization_id": "acme"} | fields))
    for call in (stub.ListScheduleRules(listing), stub.ListRuleTargets(rules.targets_request(**fields))):
        assert fields_at_fault(await fault_of(call)) == [field]


async def test_a_token_is_valid_only_for_the_request_it_was_issued_for(stub: Stub, rules: "RuleCalls") -> None:
    for rule_id in ("r1", "r2"):
        await rules.create(rule_id)
    page = await stub.ListScheduleRules(ListScheduleRulesRequest(organization_id="acme", page_size=1))
    targets = await stub.ListRuleTargets(rules.targets_request(page_size=1))
    for call in (
        stub.ListScheduleRules(
            ListScheduleRulesRequest(organization_id="acme", brand_id="brand", page_token=page.next_page_token)
        ),
        stub.ListScheduleRules(ListScheduleRulesRequest(organization_id="acme", page_token=targets.next_page_token)),
        stub.ListRuleTargets(rules.targets_request(page_token=page.next_page_token)),
        stub.ListRuleTargets(rules.targets_request(page_token=targets.next_page_token, brand_id="other")),
        stub.ListRuleTargets(rules.targets_request(page_token=targets.next_page_token, organization_id="umbrella")),
        stub.ListRuleTargets(
            rules.targets_request(page_token=targets.next_page_token, after=MARCH + timedelta(hours=1))
        ),
        stub.ListRuleTargets(rules.targets_request(page_token=targets.next_page_token, horizon=Duration(seconds=60))),
    ):
        fault = await fault_of(call)
        assert isinstance(fault, InvalidRequest)
        assert fields_at_fault(fault) == ["page_token"]
    # The size may change on the way.
    assert (
        await stub.ListRuleTargets(rules.targets_request(page_token=targets.next_page_token, page_size=9))
    ).rule_targets
