"""Schedule rules and their targets over the wire."""

from collections.abc import Awaitable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp

from channels import KNOWN
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
    ASSET_POLICY_REQUIRED,
    RuleTarget,
    ScheduleRule,
)
from postflow.schedule.v1.schedule_service_pb2 import (
    CreateScheduleRuleRequest,
    DeleteScheduleRuleRequest,
    GetScheduleRuleRequest,
    ListRuleTargetsRequest,
    ListRuleTargetsResponse,
    ListScheduleRulesRequest,
    ListScheduleRulesResponse,
    UpdateScheduleRuleRequest,
)
from servicekit.faults import AlreadyExists, Conflict, Fault, InvalidRequest, NotFound
from servicekit.rpc import calling

Stub: TypeAlias = "Any"

MONDAY = WeeklySlot(day_of_week=DAY_OF_WEEK_MONDAY, hour=9)
SUNDAY = WeeklySlot(day_of_week=DAY_OF_WEEK_SUNDAY, hour=2, minute=30)
MARCH = datetime(2026, 3, 1, 0, 0, tzinfo=UTC)
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


def create_request(rule_id: str = "r1", organization: str = "acme", request_id: str = "", **fields: Any) -> Any:
    """With what a rule needs, and without the fields that are None."""
    given = {"brand_id": "brand", "time_zone": "America/New_York", "channels": ["facebook"], "weekly_slots": [MONDAY]}
    rule = ScheduleRule(**{name: value for name, value in (given | fields).items() if value is not None})
    return CreateScheduleRuleRequest(
        organization_id=organization, schedule_rule=rule, schedule_rule_id=rule_id, request_id=request_id
    )


async def create(stub: Stub, rule_id: str = "r1", **fields: Any) -> ScheduleRule:
    created: ScheduleRule = (await stub.CreateScheduleRule(create_request(rule_id, **fields))).schedule_rule
    return created


def update_request(*paths: str, organization: str = "acme", request_id: str = "", **fields: Any) -> Any:
    return UpdateScheduleRuleRequest(
        organization_id=organization,
        schedule_rule=ScheduleRule(**({"id": "r1"} | fields)),
        update_mask=FieldMask(paths=paths or fields.keys() - {"id", "etag"}),
        request_id=request_id,
    )


def targets_request(**fields: Any) -> ListRuleTargetsRequest:
    given: dict[str, Any] = {"organization_id": "acme", "brand_id": "brand", "after": MARCH}
    return ListRuleTargetsRequest(**(given | fields))


async def get(stub: Stub, rule_id: str = "r1", organization: str = "acme") -> ScheduleRule:
    request = GetScheduleRuleRequest(organization_id=organization, schedule_rule_id=rule_id)
    stored: ScheduleRule = (await stub.GetScheduleRule(request)).schedule_rule
    return stored


async def refusal(call: Awaitable[object]) -> Fault:
    with pytest.raises(Fault) as refused, calling():
        await call
    return refused.value


def at_fault(fault: Fault) -> list[str]:
    return [violation.field for violation in fault.violations]


async def test_a_rule_that_was_created_is_read_and_listed(stub: Stub) -> None:
    created = await create(
        stub,
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
    assert await get(stub) == created
    listed = await stub.ListScheduleRules(ListScheduleRulesRequest(organization_id="acme"))
    assert list(listed.schedule_rules) == [created]


async def test_what_is_left_out_has_its_default(stub: Stub) -> None:
    created = await create(stub, rule_id="")
    assert len(created.id) == 36
    assert (created.asset_policy, created.enabled) == (ASSET_POLICY_OPTIONAL, True)
    assert (created.name, created.category_id, created.rrule) == ("", "", "")
    assert (created.start_date, created.end_date, created.HasField("start_time")) == ("", "", False)


async def test_an_rrule_is_returned_in_its_canonical_form_with_its_start(stub: Stub) -> None:
    created = await create(
        stub, weekly_slots=[], rrule="RRULE:byday=1tu;freq=monthly;interval=1", start_time=LocalTime(hour=9, minute=30)
    )
    assert created.rrule == "FREQ=MONTHLY;BYDAY=1TU"
    assert (created.start_time.hour, created.start_time.minute) == (9, 30)
    assert len(created.start_date) == len("2026-03-01")
    assert list(created.weekly_slots) == []


async def test_what_is_output_only_is_not_taken_from_the_caller(stub: Stub) -> None:
    created = await create(
        stub, id="mine", version=41, etag="e", create_time=MARCH, update_time=MARCH, tzdata_version="1999a"
    )
    assert (created.id, created.version) == ("r1", 1)
    assert created.create_time.ToDatetime(UTC) != MARCH
    assert created.tzdata_version != "1999a"


async def test_every_change_is_announced(stub: Stub, announced: list[Event]) -> None:
    await create(stub)
    await stub.UpdateScheduleRule(update_request(name="Other"))
    await stub.UpdateScheduleRule(update_request(name="Other"))
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
        ({"start_date": "٢٠٢٦-٠١-٠١"}, "schedule_rule.start_date"),  # noqa: RUF001 - digits, but not ours
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
async def test_a_bad_rule_is_refused_by_field(stub: Stub, fields: dict[str, Any], field: str) -> None:
    fault = await refusal(stub.CreateScheduleRule(create_request(**fields)))
    assert isinstance(fault, InvalidRequest)
    assert at_fault(fault) == [field]
    assert fault.metadata["field"] == field


async def test_a_rule_without_a_zone_is_told_that_it_needs_one(stub: Stub) -> None:
    fault = await refusal(stub.CreateScheduleRule(create_request(time_zone="")))
    assert fault.message == "schedule_rule.time_zone: is required"
    assert fault.reason == "INVALID_FIELD"


async def test_reasons_tell_a_zone_and_a_channel_that_are_unknown(stub: Stub) -> None:
    fault = await refusal(stub.CreateScheduleRule(create_request(time_zone="europe/berlin")))
    assert fault.reason == "UNKNOWN_TIME_ZONE"
    assert "Europe/Berlin" in fault.message
    fault = await refusal(stub.CreateScheduleRule(create_request(channels=["myspace"])))
    assert fault.reason == "UNKNOWN_CHANNEL"
    assert "linkedin_profile" in fault.message


async def test_a_create_without_a_rule_is_refused(stub: Stub) -> None:
    fault = await refusal(stub.CreateScheduleRule(CreateScheduleRuleRequest(organization_id="acme")))
    assert at_fault(fault) == ["schedule_rule"]


async def test_an_id_is_used_once_even_when_its_rule_is_deleted(stub: Stub) -> None:
    await create(stub)
    for _ in range(2):
        fault = await refusal(stub.CreateScheduleRule(create_request()))
        assert isinstance(fault, AlreadyExists)
        assert (fault.reason, fault.metadata) == ("SCHEDULE_RULE_EXISTS", {"schedule_rule_id": "r1"})
        await stub.DeleteScheduleRule(
            DeleteScheduleRuleRequest(organization_id="acme", schedule_rule_id="r1", request_id="q1")
        )
    await create(stub, organization="umbrella")


async def test_a_repeated_request_gets_the_first_answer(stub: Stub) -> None:
    created = await stub.CreateScheduleRule(create_request("", request_id="q1"))
    rule_id = created.schedule_rule.id
    renamed = update_request(id=rule_id, name="Other", request_id="q1")
    updated = await stub.UpdateScheduleRule(renamed)
    gone = DeleteScheduleRuleRequest(organization_id="acme", schedule_rule_id=rule_id, request_id="q1")
    await stub.DeleteScheduleRule(gone)
    assert await stub.CreateScheduleRule(create_request("", request_id="q1")) == created
    assert await stub.UpdateScheduleRule(renamed) == updated
    await stub.DeleteScheduleRule(gone)
    for call in (
        stub.CreateScheduleRule(create_request("", request_id="q1", name="third")),
        stub.UpdateScheduleRule(update_request(id=rule_id, name="third", request_id="q1")),
        stub.DeleteScheduleRule(
            DeleteScheduleRuleRequest(organization_id="acme", schedule_rule_id="other", request_id="q1")
        ),
    ):
        assert (await refusal(call)).reason == "REQUEST_ID_REUSED"


async def test_the_mask_says_what_changes_and_what_is_left_out_gets_its_default(stub: Stub) -> None:
    before = await create(
        stub,
        name="Monday",
        category_id="memes",
        asset_policy=ASSET_POLICY_REQUIRED,
        enabled=False,
        end_date="2026-12-31",
        excluded_dates=["2026-12-25"],
    )
    after = (
        await stub.UpdateScheduleRule(
            update_request("asset_policy", "enabled", "end_date", "excluded_dates", name="not named", etag=before.etag)
        )
    ).schedule_rule
    assert (after.asset_policy, after.enabled, after.end_date) == (ASSET_POLICY_OPTIONAL, True, "")
    assert list(after.excluded_dates) == []
    assert (after.name, after.category_id, after.version) == ("Monday", "memes", 2)
    assert await get(stub) == after


async def test_every_field_that_can_be_changed_is_changed(stub: Stub) -> None:
    await create(stub)
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
    after = (await stub.UpdateScheduleRule(update_request(*wanted, **wanted))).schedule_rule
    expected = ScheduleRule(**wanted)
    for name in wanted:
        assert getattr(after, name) == getattr(expected, name), name


@pytest.mark.parametrize("path", ["brand_id", "id", "etag", "version", "create_time", "tzdata_version"])
async def test_other_fields_cannot_be_changed(stub: Stub, path: str) -> None:
    before = await create(stub)
    fault = await refusal(stub.UpdateScheduleRule(update_request("name", path, brand_id="other", name="Other")))
    assert at_fault(fault) == ["update_mask"]
    assert ", ".join(CHANGEABLE) in fault.message
    assert await get(stub) == before


@pytest.mark.parametrize("paths", [["colour"], ["*"], ["start_time.hour"], ["weekly_slots.hour"], [""]])
async def test_a_mask_of_anything_else_is_refused(stub: Stub, paths: list[str]) -> None:
    await create(stub)
    assert at_fault(await refusal(stub.UpdateScheduleRule(update_request(*paths)))) == ["update_mask"]


async def test_a_mask_that_names_nothing_is_refused(stub: Stub) -> None:
    await create(stub)
    without = UpdateScheduleRuleRequest(organization_id="acme", schedule_rule=ScheduleRule(id="r1"))
    for request in (update_request(id="r1"), without):
        fault = await refusal(stub.UpdateScheduleRule(request))
        assert at_fault(fault) == ["update_mask"]
        assert ", ".join(CHANGEABLE) in fault.message


async def test_an_update_names_its_rule(stub: Stub) -> None:
    assert at_fault(await refusal(stub.UpdateScheduleRule(update_request("name", id="")))) == ["schedule_rule.id"]


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
async def test_a_change_that_makes_a_bad_rule_is_refused(stub: Stub, fields: dict[str, Any], field: str) -> None:
    before = await create(stub, end_date="2026-12-31")
    assert at_fault(await refusal(stub.UpdateScheduleRule(update_request(**fields)))) == [field]
    assert await get(stub) == before


async def test_a_stale_etag_is_aborted_and_changes_nothing(stub: Stub, announced: list[Event]) -> None:
    first = await create(stub)
    second = (await stub.UpdateScheduleRule(update_request(name="Other", etag=first.etag))).schedule_rule
    for call in (
        stub.UpdateScheduleRule(update_request(name="third", etag=first.etag)),
        stub.DeleteScheduleRule(
            DeleteScheduleRuleRequest(organization_id="acme", schedule_rule_id="r1", etag=first.etag)
        ),
    ):
        fault = await refusal(call)
        assert isinstance(fault, Conflict)
        assert (fault.reason, fault.metadata) == ("ETAG_MISMATCH", {"schedule_rule_id": "r1"})
    assert await get(stub) == second
    assert len(announced) == 2


async def test_a_rule_is_not_found_when_it_never_was_is_deleted_or_is_anothers(stub: Stub) -> None:
    await create(stub)
    await create(stub, "gone")
    await stub.DeleteScheduleRule(DeleteScheduleRuleRequest(organization_id="acme", schedule_rule_id="gone"))
    for organization, rule_id in (("acme", "never"), ("acme", "gone"), ("umbrella", "r1")):
        for call in (
            get(stub, rule_id, organization),
            stub.UpdateScheduleRule(update_request("name", organization=organization, id=rule_id)),
            stub.DeleteScheduleRule(DeleteScheduleRuleRequest(organization_id=organization, schedule_rule_id=rule_id)),
        ):
            fault = await refusal(call)
            assert isinstance(fault, NotFound)
            assert (fault.reason, fault.metadata) == ("SCHEDULE_RULE_NOT_FOUND", {"schedule_rule_id": rule_id})


async def rule_pages(stub: Stub, size: int, **fields: Any) -> list[list[str]]:
    found: list[list[str]] = []
    token = ""
    while token or not found:
        request = ListScheduleRulesRequest(organization_id="acme", page_size=size, page_token=token, **fields)
        page: ListScheduleRulesResponse = await stub.ListScheduleRules(request)
        found.append([rule.id for rule in page.schedule_rules])
        token = page.next_page_token
    return found


async def test_rules_are_listed_by_pages_of_all_brands_or_of_one(stub: Stub) -> None:
    for n in range(5):
        await create(stub, f"r{n}", brand_id="odd" if n % 2 else "even")
    await create(stub, "r9", organization="umbrella")
    assert await rule_pages(stub, 2) == [["r0", "r1"], ["r2", "r3"], ["r4"]]
    assert await rule_pages(stub, 3, brand_id="even") == [["r0", "r2", "r4"]]
    assert await rule_pages(stub, 200, brand_id="odd") == [["r1", "r3"]]
    assert await rule_pages(stub, 0, brand_id="none") == [[]]


async def test_a_page_of_the_largest_rules_is_as_long_as_fits(stub: Stub) -> None:
    slots = [
        WeeklySlot(day_of_week=DAY_OF_WEEK_MONDAY, hour=hour, minute=minute)
        for hour in range(10, 20)
        for minute in range(10, 60)
    ]
    days = [f"{MARCH + timedelta(days=n):%Y-%m-%d}" for n in range(1000)]
    for n in range(16):
        await create(stub, f"r{n:02}", name="ü" * 200, weekly_slots=slots, excluded_dates=days)
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
async def test_a_bad_listing_is_refused_by_field(stub: Stub, fields: dict[str, Any], field: str) -> None:
    rules = ListScheduleRulesRequest(**({"organization_id": "acme"} | fields))
    for call in (stub.ListScheduleRules(rules), stub.ListRuleTargets(targets_request(**fields))):
        assert at_fault(await refusal(call)) == [field]


async def test_a_token_is_good_for_the_request_that_it_was_given_for(stub: Stub) -> None:
    for rule_id in ("r1", "r2"):
        await create(stub, rule_id)
    page = await stub.ListScheduleRules(ListScheduleRulesRequest(organization_id="acme", page_size=1))
    targets = await stub.ListRuleTargets(targets_request(page_size=1))
    for call in (
        stub.ListScheduleRules(
            ListScheduleRulesRequest(organization_id="acme", brand_id="brand", page_token=page.next_page_token)
        ),
        stub.ListScheduleRules(ListScheduleRulesRequest(organization_id="acme", page_token=targets.next_page_token)),
        stub.ListRuleTargets(targets_request(page_token=page.next_page_token)),
        stub.ListRuleTargets(targets_request(page_token=targets.next_page_token, brand_id="other")),
        stub.ListRuleTargets(targets_request(page_token=targets.next_page_token, organization_id="umbrella")),
        stub.ListRuleTargets(targets_request(page_token=targets.next_page_token, after=MARCH + timedelta(hours=1))),
        stub.ListRuleTargets(targets_request(page_token=targets.next_page_token, horizon=Duration(seconds=60))),
    ):
        fault = await refusal(call)
        assert isinstance(fault, InvalidRequest)
        assert at_fault(fault) == ["page_token"]
    # The size may change on the way.
    assert (await stub.ListRuleTargets(targets_request(page_token=targets.next_page_token, page_size=9))).rule_targets


async def test_a_target_says_what_to_make(stub: Stub) -> None:
    rule = await create(
        stub,
        weekly_slots=[SUNDAY],
        channels=["instagram", "facebook"],
        category_id="memes",
        asset_policy=ASSET_POLICY_REQUIRED,
    )
    answer = await stub.ListRuleTargets(targets_request(horizon=Duration(seconds=14 * 86_400)))
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


async def test_targets_of_all_rules_of_a_brand_come_in_one_order_by_pages(stub: Stub) -> None:
    await create(stub, "b", time_zone="UTC")
    await create(stub, "a", time_zone="UTC")
    await create(stub, "c", time_zone="UTC", weekly_slots=[], rrule="FREQ=DAILY;BYHOUR=9;BYMINUTE=0")
    await create(stub, "other", brand_id="other")
    await create(stub, "off", enabled=False)
    request = targets_request(horizon=Duration(seconds=8 * 86_400), page_size=3)
    pages = [await stub.ListRuleTargets(request)]
    while pages[-1].next_page_token:
        request.page_token = pages[-1].next_page_token
        pages.append(await stub.ListRuleTargets(request))
    # The rule by RRULE begins on the date at which it was made.
    assert [[target.key for target in page.rule_targets] for page in pages] == [
        ["a/2026-03-02/09:00", "b/2026-03-02/09:00"]
    ]
    await stub.UpdateScheduleRule(update_request(id="c", start_date="2026-03-01"))
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


async def test_a_listing_from_now_on_has_one_end_for_all_its_pages(stub: Stub) -> None:
    every_minute = ",".join(map(str, range(60)))
    await create(stub, weekly_slots=[], rrule=f"FREQ=HOURLY;BYMINUTE={every_minute}", start_time=LocalTime())
    request = ListRuleTargetsRequest(organization_id="acme", brand_id="brand", page_size=100)
    request.horizon.seconds = 6 * 3600
    times: list[datetime] = []
    while not times or request.page_token:
        page: ListRuleTargetsResponse = await stub.ListRuleTargets(request)
        times += [target.time.ToDatetime(UTC) for target in page.rule_targets]
        request.page_token = page.next_page_token
    assert len(times) == 360
    assert times == [times[0] + timedelta(minutes=n) for n in range(360)]


async def test_the_largest_answer_fits(stub: Stub) -> None:
    every_minute = ",".join(map(str, range(60)))
    await create(
        stub,
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
        assert len((await stub.ListRuleTargets(targets_request(page_size=asked))).rule_targets) == shown


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
async def test_a_bad_span_is_refused_by_field(stub: Stub, fields: dict[str, Any], field: str) -> None:
    await create(stub)
    fault = await refusal(stub.ListRuleTargets(targets_request(**fields)))
    assert isinstance(fault, InvalidRequest)
    assert set(at_fault(fault)) == {field}


async def test_a_brand_without_rules_has_no_targets(stub: Stub) -> None:
    assert await stub.ListRuleTargets(targets_request()) == ListRuleTargetsResponse()
