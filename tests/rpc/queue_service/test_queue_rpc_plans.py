"""PlanQueue over the wire: each kind of change, its refusals, and the names of invalid fields."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from postflow.queue.v1.queue_service_pb2 import (
    AddToQueueRequest,
    PlanQueueRequest,
    PlanQueueResponse,
    ReorderQueueRequest,
)
from postflow.queue.v1.queue_slot_pb2 import QueueSlot
from postflow.schedule.v1.account_schedule_pb2 import DayOfWeek, WeeklySlot
from servicekit.clock import SystemClock
from servicekit.faults import Fault, Unavailable
from tests.rpc.queue_service.conftest import stamp

if TYPE_CHECKING:
    from google.protobuf.timestamp_pb2 import Timestamp

    from tests.rpc.queue_service.conftest import Rig

Refusal = Callable[[Awaitable[object]], Awaitable[Fault]]
NOW = SystemClock().now()
MIDNIGHT = NOW.replace(hour=0, minute=0, second=0, microsecond=0)
DAYS = [MIDNIGHT + timedelta(days=number, hours=12) for number in range(2, 500)]
PAGE: dict[str, Any] = {"organization_id": "acme", "social_account_id": "page"}
# In half a day, every day, in Tokyo.
SOON = NOW.replace(minute=30, second=0, microsecond=0) + timedelta(hours=12)
DAILY = [{"day_of_week": day, "hour": (SOON.hour + 9) % 24, "minute": 30} for day in range(1, 8)]


async def queued(rig: "Rig", count: int = 3) -> list[QueueSlot]:
    """Gives drafts d0, d1, ... the next slots of the account."""
    await rig.put_schedule(
        "page", *DAYS, weekly_slots=[WeeklySlot(day_of_week=day, hour=12) for day in DayOfWeek.keys()[1:]]
    )
    slots: list[QueueSlot] = []
    for number in range(count):
        rig.draft(f"d{number}", ("page", "facebook", ""))
        request = AddToQueueRequest(organization_id="acme", draft_id=f"d{number}")
        slots += (await rig.stub.AddToQueue(request)).queue_slots
    return slots


def changes(slots: list[QueueSlot]) -> dict[str, Any]:
    """Returns one change of each kind."""
    return {
        "add": {"count": 2},
        "schedule": {"weekly_slots": DAILY, "time_zone": "Asia/Tokyo", "max_posts_per_day": 1},
        "reorder": {"slot_ids": [slot.id for slot in reversed(slots)]},
        "clear": True,
        "shuffle": {"seed": 4},
        "pause": {"until": stamp(DAYS[1]), "overdue": "OVERDUE_POLICY_CANCEL"},
        "resume": "OVERDUE_POLICY_RESCHEDULE",
        "remove": {"slot_id": slots[0].id, "close_gap": True},
        "move": {"slot_id": slots[2].id, "to_top": True},
    }


def request(**change: Any) -> PlanQueueRequest:
    return PlanQueueRequest(**{**PAGE, **change})


def shown(plan: PlanQueueResponse) -> list[tuple[str, datetime | None, datetime | None]]:
    return [
        (
            slot.draft_id,
            _moment(slot.previous_time) if slot.HasField("previous_time") else None,
            _moment(slot.schedule_time) if slot.HasField("schedule_time") else None,
        )
        for slot in plan.slots
    ]


def _moment(time: "Timestamp") -> datetime:
    return time.ToDatetime(UTC)


async def test_each_kind_of_change_is_planned(rig: "Rig") -> None:
    slots = await queued(rig)
    one, two, three = DAYS[:3]
    tokyo = [SOON + timedelta(days=number) for number in range(3)]
    plans = {kind: await rig.stub.PlanQueue(request(**{kind: each})) for kind, each in changes(slots).items()}
    assert {kind: shown(each) for kind, each in plans.items() if kind != "shuffle"} == {
        "add": [("", None, DAYS[3]), ("", None, DAYS[4])],
        "schedule": [("d0", one, tokyo[0]), ("d1", two, tokyo[1]), ("d2", three, tokyo[2])],
        "reorder": [("d2", three, one), ("d0", one, three)],
        "clear": [("d0", one, None), ("d1", two, None), ("d2", three, None)],
        "pause": [("d0", one, None), ("d1", two, None)],
        "resume": [],
        "remove": [("d1", two, one), ("d2", three, two), ("d0", one, None)],
        "move": [("d2", three, one), ("d0", one, two), ("d1", two, three)],
    }
    assert {kind: each.unchanged_slots for kind, each in plans.items()} == {
        "add": 3, "schedule": 0, "reorder": 1, "clear": 0, "shuffle": 3 - len(plans["shuffle"].slots), "pause": 1,
        "resume": 3, "remove": 0, "move": 0,
    }  # fmt: skip
    assert {each.etag for each in plans.values()} == {"3"}


async def test_drafts_are_added_at_the_end_or_at_the_front(rig: "Rig") -> None:
    await queued(rig)
    for place, times in [("UNSPECIFIED", DAYS[3:5]), ("END", DAYS[3:5]), ("FRONT", DAYS[:2])]:
        plan = await rig.stub.PlanQueue(request(add={"count": 2, "place": f"QUEUE_PLACE_{place}"}))
        assert [after for draft, _, after in shown(plan) if not draft] == times


async def test_a_planned_slot_says_which_slot_it_is_and_its_local_time(rig: "Rig") -> None:
    slots = await queued(rig)
    before = SystemClock().now()
    plan = await rig.stub.PlanQueue(request(reorder={"draft_ids": ["d2", "d1", "d0"]}))
    assert [(each.slot_id, each.local_time) for each in plan.slots] == [
        (slots[2].id, f"{DAYS[0]:%Y-%m-%d}T12:00"),
        (slots[0].id, f"{DAYS[2]:%Y-%m-%d}T12:00"),
    ]
    assert abs(_moment(plan.plan_time) - before) < timedelta(minutes=1)
    schedule = changes(slots)["schedule"]
    assert {each.local_time[-6:] for each in (await rig.stub.PlanQueue(request(schedule=schedule))).slots} == {
        f"T{DAILY[0]['hour']:02}:30"
    }
    assert {each.local_time for each in (await rig.stub.PlanQueue(request(clear=True))).slots} == {""}


async def test_the_change_itself_can_be_made_with_the_etag_of_the_plan(rig: "Rig") -> None:
    slots = await queued(rig)
    order = changes(slots)["reorder"]
    plan = await rig.stub.PlanQueue(request(reorder=order))
    done = await rig.stub.ReorderQueue(ReorderQueueRequest(**PAGE, **order, etag=plan.etag))
    assert [(slot.draft_id, _moment(slot.schedule_time)) for slot in done.moved_slots] == [
        (draft, after) for draft, _, after in shown(plan)
    ]


async def test_what_a_planned_schedule_leaves_out_is_asked_of_schedule(rig: "Rig") -> None:
    await queued(rig)
    plan = await rig.stub.PlanQueue(request(schedule={"time_zone": "Asia/Tokyo"}))
    assert {each.schedule_time.ToDatetime(UTC).hour for each in plan.slots} == {3}


async def test_a_resumption_shows_what_becomes_of_overdue_slots(rig: "Rig") -> None:
    await queued(rig)
    await rig.rows("""
        update account_queue set pause_time = clock_timestamp(), hold_revision = 1, hold_stored_revision = 1 returning 1
    """)
    await rig.rows(
        "update slot set schedule_time = schedule_time - interval '9 days' where draft_id = 'd0' returning 1"
    )
    plan = await rig.stub.PlanQueue(request(resume="OVERDUE_POLICY_UNSPECIFIED"))
    assert [(draft, after) for draft, _, after in shown(plan)] == [("d0", DAYS[0])]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({}, "change"),
        ({"clear": False}, "change"),
        ({"add": {"count": 0}}, "add.count"),
        ({"add": {"count": 1001}}, "add.count"),
        ({"schedule": {"time_zone": "Mars/Olympus"}}, "schedule.time_zone"),
        ({"schedule": {"weekly_slots": [DAILY[0], DAILY[0]]}}, "schedule.weekly_slots[1]"),
        ({"schedule": {"weekly_slots": [{"hour": 9}]}}, "schedule.weekly_slots[0].day_of_week"),
        ({"schedule": {"max_posts_per_day": -1}}, "schedule.max_posts_per_day"),
        ({"reorder": {"slot_ids": ["a"], "draft_ids": ["b"]}}, "reorder.draft_ids"),
        ({"shuffle": {"seed": 0}}, "shuffle.seed"),
        ({"pause": {}}, "pause.until"),
        ({"pause": {"until": stamp(MIDNIGHT - timedelta(days=1))}}, "pause.until"),
        ({"pause": {"until": stamp(MIDNIGHT + timedelta(days=732))}}, "pause.until"),
        ({"remove": {}}, "remove.slot_id"),
        ({"move": {"slot_id": "a"}}, "move.destination"),
        ({"move": {"to_top": True}}, "move.slot_id"),
    ],
)
async def test_an_invalid_field_is_named(rig: "Rig", refusal: Refusal, change: dict[str, Any], field: str) -> None:
    refused = await refusal(rig.stub.PlanQueue(request(**change)))
    assert (refused.code, refused.metadata["field"]) == ("INVALID_ARGUMENT", field)


async def test_a_moved_slot_is_named_in_its_own_message(rig: "Rig", refusal: Refusal) -> None:
    slots = await queued(rig)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"before_slot_id": slots[0].id}, "move.before_slot_id"),
        ({"schedule_time": stamp(MIDNIGHT - timedelta(days=1))}, "move.schedule_time"),
    ]
    for destination, field in cases:
        refused = await refusal(rig.stub.PlanQueue(request(move={"slot_id": slots[0].id, **destination})))
        assert (refused.code, refused.metadata["field"]) == ("INVALID_ARGUMENT", field)


async def test_a_plan_is_refused_as_the_change_would_be(rig: "Rig", refusal: Refusal) -> None:
    slots = await queued(rig)
    first, second, third = (slot.id for slot in slots)
    rig.publisher.missing.add("nobody")
    rig.publisher.disconnected.add("away")
    cases: list[tuple[dict[str, Any], str, str]] = [
        ({"reorder": {"slot_ids": [first, second]}}, "INVALID_ARGUMENT", "REORDER_INCOMPLETE"),
        ({"reorder": {"slot_ids": [first, first, third]}}, "INVALID_ARGUMENT", "REORDER_REPEATED"),
        ({"reorder": {"slot_ids": [first, "unknown"]}}, "NOT_FOUND", "SLOT_NOT_FOUND"),
        ({"remove": {"slot_id": "unknown"}}, "NOT_FOUND", "SLOT_NOT_FOUND"),
        ({"move": {"slot_id": "unknown", "to_top": True}}, "NOT_FOUND", "SLOT_NOT_FOUND"),
        ({"move": {"slot_id": first, "schedule_time": stamp(DAYS[1])}}, "FAILED_PRECONDITION", "SLOT_TAKEN"),
        ({"add": {"count": 1000}}, "FAILED_PRECONDITION", "HORIZON_EXHAUSTED"),
        ({"add": {"count": 1}, "social_account_id": "bare"}, "FAILED_PRECONDITION", "NO_SCHEDULE"),
        ({"schedule": {}, "social_account_id": "bare"}, "FAILED_PRECONDITION", "NO_SCHEDULE"),
        ({"add": {"count": 1}, "social_account_id": "away"}, "FAILED_PRECONDITION", "ACCOUNT_NOT_CONNECTED"),
        ({"add": {"count": 1}, "social_account_id": "nobody"}, "NOT_FOUND", "ACCOUNT_NOT_FOUND"),
        ({"clear": True, "social_account_id": "nobody"}, "NOT_FOUND", "ACCOUNT_NOT_FOUND"),
        ({"resume": 1, "social_account_id": "nobody"}, "NOT_FOUND", "ACCOUNT_NOT_FOUND"),
        ({"remove": {"slot_id": first}, "organization_id": "other"}, "NOT_FOUND", "SLOT_NOT_FOUND"),
    ]
    for change, code, reason in cases:
        refused = await refusal(rig.stub.PlanQueue(request(**change)))
        assert (refused.code, refused.reason) == (code, reason)


async def test_ended_slots_and_a_disabled_schedule_are_refused(rig: "Rig", refusal: Refusal) -> None:
    slots = await queued(rig)
    await rig.rows("update slot set state = 'MISSED', next_emit_at = null where draft_id = 'd0' returning 1")
    cases: list[tuple[dict[str, Any], str]] = [
        ({"remove": {"slot_id": slots[0].id}}, "SLOT_NOT_LIVE"),
        ({"move": {"slot_id": slots[0].id, "to_top": True}}, "SLOT_NOT_LIVE"),
        ({"reorder": {"slot_ids": [slot.id for slot in slots]}}, "SLOT_NOT_SCHEDULED"),
    ]
    for change, reason in cases:
        refused = await refusal(rig.stub.PlanQueue(request(**change)))
        assert (refused.code, refused.reason) == ("FAILED_PRECONDITION", reason)
    await rig.put_schedule("page", *DAYS, version=2, enabled=False, announce=False)
    for planned in (request(add={"count": 1}), request(schedule={})):
        assert (await refusal(rig.stub.PlanQueue(planned))).reason == "SCHEDULE_DISABLED"


async def test_only_changes_that_need_schedule_fail_while_it_is_down(rig: "Rig", refusal: Refusal) -> None:
    await queued(rig)
    rig.schedule.fault = Unavailable("UNAVAILABLE", "down")
    assert (await refusal(rig.stub.PlanQueue(request(schedule={})))).code == "UNAVAILABLE"
    assert len((await rig.stub.PlanQueue(request(clear=True))).slots) == 3
