"""PlanQueue: what is read for a plan, what is refused, and that a plan leaves no trace."""

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import text

from civil.weekly import WeeklySlot
from queue_service.domain.moving import Before, ToTime, ToTop
from queue_service.domain.planned_change import (
    PlannedAdditions,
    PlannedChange,
    PlannedClearing,
    PlannedInFront,
    PlannedMove,
    PlannedPause,
    PlannedRemoval,
    PlannedResumption,
    PlannedSchedule,
    PlannedShuffle,
)
from queue_service.domain.reordering import Order
from queue_service.domain.resuming import OverduePolicy
from servicekit.faults import Fault
from testkit.clocks import START
from tests.usecase.queue_service.pausing import Pausing
from tests.usecase.queue_service.planning import HOUR, HOURLY, hour, hours, plan
from tests.usecase.queue_service.rearranging import Rearranging

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

RESCHEDULE = OverduePolicy.RESCHEDULE
CHANGES: list[PlannedChange] = [
    PlannedAdditions(count=3),
    PlannedInFront(count=3),
    PlannedSchedule(max_posts_per_day=2),
    Order(draft_ids=("page-2", "page-1", "page-0")),
    PlannedClearing(),
    PlannedShuffle(seed=4),
    PlannedPause(until=hour(2.5), overdue=RESCHEDULE),
    PlannedResumption(overdue=RESCHEDULE),
    PlannedRemoval(slot_id="page-0", close_gap=True),
    PlannedMove(slot_id="page-2", destination=ToTop()),
]
TABLES = [
    "select xmin::text, t.* from account_queue t order by social_account_id",
    "select xmin::text, t.* from slot t order by id",
    "select xmin::text, t.* from slot_target t order by slot_id",
    "select xmin::text, t.* from outbox t order by position",
    "select xmin::text, t.* from request_ledger t order by request_id",
]
KINDS = [type(change).__name__ for change in CHANGES]


@pytest.fixture
async def hourly(queue: "Queue") -> "Queue":
    """Has slots at three hours in a row."""
    queue.now = START
    await queue.put_schedule("page", *HOURLY)
    await queue.fill_weekly("page", hour(1), HOUR, 3)
    return queue


async def refused(queue: "Queue", change: PlannedChange, account: str = "page") -> Fault:
    with pytest.raises(Fault) as fault:
        await plan(queue, change, account)
    return fault.value


async def test_additions_take_the_next_free_times_of_a_locked_queue(hourly: "Queue") -> None:
    assert hours(await plan(hourly, PlannedAdditions(count=2))) == [("", None, 4), ("", None, 5)]


async def test_additions_use_up_a_pending_skip(hourly: "Queue") -> None:
    await hourly.skip("page")
    planned = await plan(hourly, PlannedAdditions(count=2))
    assert hours(planned) == [("", None, 5), ("", None, 6)]
    assert planned.etag == "1"


async def test_additions_in_front_shift_the_slots_up_to_the_free_times(hourly: "Queue") -> None:
    await hourly.skip("page")
    planned = await plan(hourly, PlannedInFront(count=2))
    moved = [("page-0", 1, 3), ("page-1", 2, 4), ("page-2", 3, 5)]
    assert hours(planned) == [("", None, 1), ("", None, 2), *moved]
    assert planned.unchanged == 0
    assert len((await plan(hourly, PlannedInFront(count=1000))).slots) == 1003


async def test_a_thousand_additions_are_planned_with_the_times_that_they_need(hourly: "Queue") -> None:
    planned = await plan(hourly, PlannedAdditions(count=1000))
    assert [slot.seat.time for slot in planned.slots if slot.seat] == [hour(4 + place) for place in range(1000)]
    assert planned.unchanged == 3


async def test_another_schedule_moves_every_slot_with_a_slot_time(hourly: "Queue") -> None:
    await hourly.save_draft("chosen", "page")
    await hourly.at("chosen", hour(2.5))
    planned = await plan(hourly, PlannedSchedule(weekly_slots={each: "" for each in HOURLY if each.hour % 12 == 0}))
    first = 12 - START.hour % 12
    assert hours(planned) == [("page-0", 1, first), ("page-1", 2, first + 12), ("page-2", 3, first + 24)]
    assert planned.unchanged == 1


async def test_what_a_planned_schedule_leaves_out_comes_from_the_schedule(hourly: "Queue") -> None:
    planned = await plan(hourly, PlannedSchedule(max_posts_per_day=1))
    midnight = 24 - START.hour
    assert hours(planned) == [("page-1", 2, midnight), ("page-2", 3, midnight + 24)]
    moved = await plan(hourly, PlannedSchedule(time_zone="Asia/Kolkata"))
    assert hours(moved) == [("page-0", 1, 0.5), ("page-1", 2, 1.5), ("page-2", 3, 2.5)]
    assert {slot.seat.time_zone for slot in moved.slots if slot.seat} == {"Asia/Kolkata"}


async def test_a_pause_shows_what_becomes_of_the_slots_that_it_makes_overdue(hourly: "Queue") -> None:
    moved = [("page-0", 1, 4), ("page-1", 2, 5)]
    assert hours(await plan(hourly, PlannedPause(until=hour(2.5), overdue=RESCHEDULE))) == moved
    canceled = await plan(hourly, PlannedPause(until=hour(2.5), overdue=OverduePolicy.CANCEL))
    assert (hours(canceled), canceled.unchanged) == ([("page-0", 1, None), ("page-1", 2, None)], 1)


async def test_dispatched_slots_are_planned_as_if_publisher_gave_them_back(hourly: "Queue") -> None:
    hourly.now = hour(1)
    await hourly.hand_over.dispatch()
    assert hours(await plan(hourly, PlannedClearing()))[0] == ("page-0", 1, None)
    closing = PlannedRemoval(slot_id="page-0", close_gap=True)
    assert hours(await plan(hourly, closing)) == [("page-0", 1, None)]
    moved = await plan(hourly, PlannedMove(slot_id="page-0", destination=ToTime(hour(2.5))))
    assert hours(moved) == [("page-0", 1, 2.5)]
    paused = await plan(hourly, PlannedPause(until=hour(1.5), overdue=RESCHEDULE))
    assert hours(paused) == [("page-0", 1, 4)]


async def test_a_resumption_is_planned_for_a_paused_queue_only(hourly: "Queue") -> None:
    hourly.now = hour(2.5)
    change = PlannedResumption(overdue=RESCHEDULE)
    assert hours(await plan(hourly, change)) == []
    await Pausing(hourly).pause()
    assert hours(await plan(hourly, change)) == [("page-0", 1, 4), ("page-1", 2, 5)]


async def test_removing_a_canceled_slot_changes_nothing(hourly: "Queue") -> None:
    await hourly.rows("update slot set state = 'CANCELED', next_emit_at = null where id = 'page-0' returning 1")
    planned = await plan(hourly, PlannedRemoval(slot_id="page-0", close_gap=True))
    assert (planned.slots, planned.unchanged) == ((), 2)


async def test_changes_of_unknown_and_ended_slots_are_refused(hourly: "Queue") -> None:
    await hourly.rows("update slot set state = 'MISSED', next_emit_at = null where id = 'page-0' returning 1")
    cases: list[tuple[PlannedChange, str]] = [
        (PlannedRemoval(slot_id="page-0"), "SLOT_NOT_LIVE"),
        (PlannedRemoval(slot_id="nobody"), "SLOT_NOT_FOUND"),
        (PlannedMove(slot_id="page-0", destination=ToTop()), "SLOT_NOT_LIVE"),
        (PlannedMove(slot_id="nobody", destination=ToTop()), "SLOT_NOT_FOUND"),
        (PlannedMove(slot_id="page-1", destination=Before("nobody")), "SLOT_NOT_FOUND"),
        (PlannedMove(slot_id="page-1", destination=ToTime(hour(3))), "SLOT_TAKEN"),
        (Order(slot_ids=("page-0", "page-1", "page-2")), "SLOT_NOT_SCHEDULED"),
        (Order(slot_ids=("page-1",)), "REORDER_INCOMPLETE"),
        (Order(slot_ids=("page-1", "page-1", "page-2")), "REORDER_REPEATED"),
        (Order(slot_ids=("nobody",)), "SLOT_NOT_FOUND"),
        (Order(slot_ids=("page-1",), draft_ids=("page-2",)), "INVALID_FIELD"),
        (PlannedPause(until=START, overdue=RESCHEDULE), "INVALID_FIELD"),
        (PlannedPause(until=START + timedelta(days=731), overdue=RESCHEDULE), "INVALID_FIELD"),
    ]
    for change, reason in cases:
        assert (await refused(hourly, change)).reason == reason


@pytest.mark.parametrize(
    ("account", "change", "reason"),
    [
        ("bare", PlannedAdditions(count=1), "NO_SCHEDULE"),
        ("bare", PlannedSchedule(), "NO_SCHEDULE"),
        ("disabled", PlannedAdditions(count=1), "SCHEDULE_DISABLED"),
        ("rare", PlannedAdditions(count=1000), "HORIZON_EXHAUSTED"),
        ("gone", PlannedAdditions(count=1), "ACCOUNT_NOT_FOUND"),
        ("gone", PlannedClearing(), "ACCOUNT_NOT_FOUND"),
        ("gone", PlannedShuffle(seed=1), "ACCOUNT_NOT_FOUND"),
        ("gone", PlannedResumption(overdue=RESCHEDULE), "ACCOUNT_NOT_FOUND"),
        ("away", PlannedAdditions(count=1), "ACCOUNT_NOT_CONNECTED"),
        ("away", PlannedInFront(count=1), "ACCOUNT_NOT_CONNECTED"),
        ("bare", PlannedInFront(count=1), "NO_SCHEDULE"),
        ("rare", PlannedInFront(count=1000), "HORIZON_EXHAUSTED"),
    ],
)
async def test_a_plan_is_refused_for_the_reasons_of_the_change(
    queue: "Queue", account: str, change: PlannedChange, reason: str
) -> None:
    queue.now = START
    await queue.put_schedule("disabled", *HOURLY, enabled=False)
    await queue.put_schedule("rare", WeeklySlot(day=1, hour=9, minute=0))
    queue.accounts.missing.add("gone")
    queue.accounts.disconnected.add("away")
    assert (await refused(queue, change, account)).reason == reason


async def test_resuming_without_a_schedule_is_refused_when_slots_need_times(queue: "Queue") -> None:
    queue.now = START
    await queue.fill_weekly("page", hour(1), HOUR, 1)
    assert (await refused(queue, PlannedPause(until=hour(2), overdue=RESCHEDULE))).reason == "NO_SCHEDULE"


async def test_a_schedule_that_was_not_announced_is_planned_with(hourly: "Queue") -> None:
    await hourly.put_schedule("page", WeeklySlot(day=1, hour=9, minute=0), version=2, announce=False)
    planned = await plan(hourly, PlannedAdditions(count=1))
    assert [each.time() for slot in planned.slots if slot.seat and (each := slot.seat.time)] == [
        START.replace(hour=9, minute=0).time()
    ]


@pytest.mark.parametrize("change", CHANGES, ids=KINDS)
async def test_a_plan_waits_for_no_lock_and_leaves_no_trace(hourly: "Queue", change: PlannedChange) -> None:
    await Pausing(hourly).pause()
    hourly.now = hour(0.5)
    before = await _everything(hourly)
    async with hourly.database.transaction() as tx:
        await tx.connection.execute(text("select from account_queue for update"))
        await tx.connection.execute(text("select from slot for update"))
        async with asyncio.timeout(5):
            planned = await plan(hourly, change)
    assert await _everything(hourly) == before
    assert planned.time == hour(0.5)
    assert planned.etag == await Rearranging(hourly).etag()


async def test_a_plan_is_that_of_one_moment(hourly: "Queue") -> None:
    """Each draft that is added counts in the etag and is a slot: the two never differ, even if one comes in between."""
    drafts = [f"d{number}" for number in range(30)]
    for draft in drafts:
        await hourly.save_draft(draft, "page")

    async def add() -> None:
        for draft in drafts:
            await hourly.add(draft, "page")

    seen: set[int] = set()
    async with asyncio.TaskGroup() as group:
        adding = group.create_task(add())
        while not adding.done():
            planned = await plan(hourly, PlannedClearing())
            assert len(planned.slots) == 3 + int(planned.etag)
            seen.add(int(planned.etag))
    assert len(seen) > 5


async def _everything(queue: "Queue") -> list[Any]:
    """Returns all rows that a call could write, with the transactions that wrote them."""
    return [row for rows in TABLES for row in await queue.rows(rows)]
