"""The targets of schedule rules over the wire."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from channels import KNOWN
from postflow.schedule.v1.account_schedule_pb2 import (
    DAY_OF_WEEK_SUNDAY,
    LocalTime,
    WeeklySlot,
)
from postflow.schedule.v1.schedule_rule_pb2 import (
    ASSET_POLICY_REQUIRED,
    RuleTarget,
)
from postflow.schedule.v1.schedule_service_pb2 import (
    ListRuleTargetsRequest,
    ListRuleTargetsResponse,
)
from servicekit.faults import InvalidRequest
from testkit.refusals import fault_of, fields_at_fault

if TYPE_CHECKING:
    from tests.rpc.schedule_service.conftest import RuleCalls


Stub: TypeAlias = "Any"
SUNDAY = WeeklySlot(day_of_week=DAY_OF_WEEK_SUNDAY, hour=2, minute=30)


async def test_a_target_says_what_draft_to_make(stub: Stub, rules: "RuleCalls") -> None:
    rule = await rules.create(
        weekly_slots=[SUNDAY],
        channels=["instagram", "facebook"],
        category_id="memes",
        asset_policy=ASSET_POLICY_REQUIRED,
    )
    answer = await stub.ListRuleTargets(rules.targets_request(horizon=Duration(seconds=14 * 86_400)))
    in_winter, in_gap = answer.rule_targets
    assert (in_winter.key, in_winter.local_time, in_winter.shifted) == ("r1/2026-03-01/02:30", "02:30", False)
    assert in_gap == RuleTarget(
        key="r1/2026-03-08/02:30",
        schedule_rule_id="r1",
        time=datetime(2026, 3, 8, 7, 30, tzinfo=UTC),
        local_date="2026-03-08",
        local_time="03:30",
        utc_offset_seconds=-14_400,
        shifted=True,
        time_zone="America/New_York",
        channels=["instagram_feed", "facebook"],
        category_id="memes",
        asset_policy=ASSET_POLICY_REQUIRED,
        schedule_rule_version=rule.version,
    )


async def test_targets_of_all_rules_are_paged_in_one_order(stub: Stub, rules: "RuleCalls") -> None:
    await rules.create("b", time_zone="UTC")
    await rules.create("a", time_zone="UTC")
    await rules.create("c", time_zone="UTC", weekly_slots=[], rrule="FREQ=DAILY;BYHOUR=9;BYMINUTE=0")
    await rules.create("other", brand_id="other")
    await rules.create("off", enabled=False)
    request = rules.targets_request(horizon=Duration(seconds=8 * 86_400), page_size=3)
    pages = [await stub.ListRuleTargets(request)]
    while pages[-1].next_page_token:
        request.page_token = pages[-1].next_page_token
        pages.append(await stub.ListRuleTargets(request))
    # The rule with an RRULE begins on the date of its creation.
    assert [[target.key for target in page.rule_targets] for page in pages] == [
        ["a/2026-03-02/09:00", "b/2026-03-02/09:00"]
    ]
    await stub.UpdateScheduleRule(rules.update_request(id="c", start_date="2026-03-01"))
    request.page_token = ""
    pages = [await stub.ListRuleTargets(request)]
    while pages[-1].next_page_token:
        request.page_token = pages[-1].next_page_token
        pages.append(await stub.ListRuleTargets(request))
    assert [[target.key[:12] for target in page.rule_targets] for page in pages] == [
        ["c/2026-03-01", "a/2026-03-02", "b/2026-03-02"],
        ["c/2026-03-02", "c/2026-03-03", "c/2026-03-04"],
        ["c/2026-03-05", "c/2026-03-06", "c/2026-03-07"],
        ["c/2026-03-08"],
    ]


async def test_all_pages_of_a_listing_from_now_end_at_the_same_time(stub: Stub, rules: "RuleCalls") -> None:
    every_minute = ",".join(map(str, range(60)))
    await rules.create(weekly_slots=[], rrule=f"FREQ=HOURLY;BYMINUTE={every_minute}", start_time=LocalTime())
    request = ListRuleTargetsRequest(organization_id="acme", brand_id="brand", page_size=100)
    request.horizon.seconds = 6 * 3600
    times: list[datetime] = []
    while not times or request.page_token:
        page: ListRuleTargetsResponse = await stub.ListRuleTargets(request)
        times += [target.time.ToDatetime(UTC) for target in page.rule_targets]
        request.page_token = page.next_page_token
    assert len(times) == 360
    assert times == [times[0] + timedelta(minutes=n) for n in range(360)]


async def test_the_largest_response_fits(stub: Stub, rules: "RuleCalls") -> None:
    every_minute = ",".join(map(str, range(60)))
    await rules.create(
        "x" * 64,
        weekly_slots=[],
        rrule=f"FREQ=HOURLY;BYMINUTE={every_minute}",
        start_time=LocalTime(),
        start_date="2026-01-01",
        time_zone="America/Argentina/ComodRivadavia",
        channels=KNOWN,
        category_id="y" * 64,
    )
    for asked, shown in ((0, 50), (200, 200)):
        assert len((await stub.ListRuleTargets(rules.targets_request(page_size=asked))).rule_targets) == shown


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"brand_id": ""}, "brand_id"),
        ({"horizon": Duration()}, "horizon"),
        ({"horizon": Duration(nanos=999_999_999)}, "horizon"),
        ({"horizon": Duration(seconds=-1)}, "horizon"),
        ({"horizon": Duration(seconds=366 * 86_400, nanos=1)}, "horizon"),
        ({"horizon": Duration(seconds=2**62)}, "horizon"),
        ({"after": Timestamp(seconds=-62_135_596_800)}, "after"),
        ({"after": Timestamp(seconds=253_402_300_799)}, "after"),
        ({"after": Timestamp(seconds=2**62)}, "after"),
        ({"after": Timestamp(nanos=-1)}, "after"),
    ],
)
async def test_a_bad_span_is_refused_by_field(
    stub: Stub, rules: "RuleCalls", fields: dict[str, Any], field: str
) -> None:
    await rules.create()
    fault = await fault_of(stub.ListRuleTargets(rules.targets_request(**fields)))
    assert isinstance(fault, InvalidRequest)
    assert set(fields_at_fault(fault)) == {field}


async def test_a_brand_without_rules_has_no_targets(stub: Stub, rules: "RuleCalls") -> None:
    assert await stub.ListRuleTargets(rules.targets_request()) == ListRuleTargetsResponse()
