"""Slot times outside the send window of an account's schedule: no call gives them to a draft."""

from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING

import pytest

from civil.weekly import WeeklySlot
from civil.windows import SendWindow
from postflow.queue.v1.queue_service_pb2 import QUEUE_PLACE_FRONT
from queue_service.application.next_free_time import NextFreeTime
from queue_service.application.reslot_late import ReslotLate
from queue_service.application.times_on_demand import TimesOnDemand
from queue_service.domain.late_policy import LateAction, LatePolicy
from queue_service.domain.planned_change import PlannedAdditions, PlannedInFront, PlannedSchedule
from servicekit.faults import Refused
from tests.usecase.queue_service.explaining import explained, passed
from tests.usecase.queue_service.pausing import Pausing
from tests.usecase.queue_service.planning import HOURLY, hour, hours, plan
from tests.usecase.queue_service.rearranging import Rearranging

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

EVERY_DAY = frozenset(range(7))
# The clock starts at 9:00.
NOON_TO_TWO = SendWindow(days=EVERY_DAY, start=time(12), end=time(14))
NEVER = SendWindow(days=EVERY_DAY, start=time(12, 15), end=time(12, 45))


@pytest.fixture
async def windowed(queue: "Queue") -> "Queue":
    await queue.put_schedule("page", *HOURLY, window=NOON_TO_TWO)
    return queue


async def added(queue: "Queue", *drafts: str, **fields: int) -> list[datetime]:
    slots = []
    for draft in drafts:
        await queue.save_draft(draft, "page")
        slots += await queue.add(draft, **fields)  # type: ignore[arg-type]
    return [slot.schedule_time.ToDatetime(UTC) for slot in slots]


async def times(queue: "Queue") -> list[tuple[str, datetime]]:
    rows = await queue.rows("select draft_id, schedule_time from slot where is_live order by schedule_time")
    return [(row.draft_id, row.schedule_time) for row in rows]


async def next_free(queue: "Queue") -> datetime | None:
    find = NextFreeTime(database=queue.database, clock=queue.clock, read_times=queue.read_times, policy=queue.policy)
    return await find(("acme", "page"))


async def test_drafts_get_only_times_inside_the_window(windowed: "Queue") -> None:
    assert await next_free(windowed) == hour(3)
    assert await added(windowed, "a", "b", "c") == [hour(3), hour(4), hour(27)]
    assert await next_free(windowed) == hour(28)
    for draft in "de":
        await windowed.save_draft(draft, "page")
    await windowed.batch(("d", "page"), ("e", "page"))
    assert await times(windowed) == [("a", hour(3)), ("b", hour(4)), ("c", hour(27)), ("d", hour(28)), ("e", hour(51))]


async def test_a_draft_in_front_shifts_the_others_within_the_window(windowed: "Queue") -> None:
    await added(windowed, "a", "b")
    assert await added(windowed, "c", place=QUEUE_PLACE_FRONT) == [hour(3)]
    assert await times(windowed) == [("c", hour(3)), ("a", hour(4)), ("b", hour(27))]


async def test_a_slot_moves_to_the_bottom_inside_the_window(windowed: "Queue") -> None:
    await added(windowed, "a", "b")
    await windowed.save_draft("x", "page")
    [chosen] = await windowed.at("x", hour(9.5))
    await Rearranging(windowed).move(chosen.id, to_bottom=True)
    assert await times(windowed) == [("a", hour(3)), ("b", hour(4)), ("x", hour(27))]


async def test_overdue_slots_are_rescheduled_inside_the_window(windowed: "Queue") -> None:
    await Pausing(windowed).pause()
    await added(windowed, "a", "b", "c")
    windowed.now = hour(4.5)
    await Pausing(windowed).resume()
    assert await times(windowed) == [("c", hour(27)), ("a", hour(28)), ("b", hour(51))]


async def test_late_slots_move_to_free_times_inside_the_window(windowed: "Queue") -> None:
    await Pausing(windowed).update(late_policy=LatePolicy(grace=timedelta(minutes=10), action=LateAction.RESLOT))
    await added(windowed, "a", "b")
    windowed.now = hour(3.5)
    reslot_late = ReslotLate(
        database=windowed.database,
        clock=windowed.clock,
        policy=windowed.policy,
        arranger=windowed.arranger,
        times=TimesOnDemand(windowed.read_times),
    )
    await reslot_late()
    assert await times(windowed) == [("b", hour(4)), ("a", hour(27))]


async def test_times_that_callers_choose_may_lie_outside_the_window(windowed: "Queue") -> None:
    await windowed.save_draft("x", "page")
    [slot] = await windowed.at("x", hour(1))
    assert await times(windowed) == [("x", hour(1))]
    await Rearranging(windowed).move(slot.id, schedule_time=slot.schedule_time.ToDatetime(UTC) + timedelta(hours=1))
    assert await times(windowed) == [("x", hour(2))]


@pytest.mark.parametrize("announced", [True, False])
async def test_a_wider_window_gives_the_times_that_come_into_it(windowed: "Queue", announced: bool) -> None:
    await added(windowed, *"abcd")
    wider = SendWindow(days=EVERY_DAY, start=time(11), end=time(15))
    await windowed.put_schedule("page", *HOURLY, window=wider, version=2, announce=announced)
    assert await next_free(windowed) == hour(2)
    assert hours(await plan(windowed, PlannedAdditions(count=2))) == [("", None, 2), ("", None, 5)]
    assert await added(windowed, "e", "f", "g") == [hour(2), hour(5), hour(26)]


@pytest.mark.parametrize("announced", [True, False])
async def test_a_narrower_window_moves_no_slot(queue: "Queue", announced: bool) -> None:
    await queue.put_schedule("page", *HOURLY)
    assert await added(queue, "a", "b") == [hour(1), hour(2)]
    await queue.put_schedule("page", *HOURLY, window=NOON_TO_TWO, version=2, announce=announced)
    assert await added(queue, "c") == [hour(3)]
    await queue.put_schedule("page", *HOURLY, version=3, announce=announced)
    assert await added(queue, "d") == [hour(4)]
    assert await times(queue) == [(draft, hour(1 + place)) for place, draft in enumerate("abcd")]


async def test_a_window_in_which_no_weekly_slot_lies_is_named(queue: "Queue") -> None:
    await queue.put_schedule("page", *HOURLY, window=NEVER)
    for place in ({}, {"place": QUEUE_PLACE_FRONT}):
        with pytest.raises(Refused, match="no weekly slot of account page lies inside its send window") as refused:
            await added(queue, "a", **place)
        assert refused.value.reason == "HORIZON_EXHAUSTED"
    assert await next_free(queue) is None


async def test_a_slot_explains_the_times_outside_the_window(windowed: "Queue") -> None:
    await added(windowed, "a", "b")
    await windowed.save_draft("x", "page")
    await windowed.at("x", hour(2))
    [slot_id] = [row.id for row in await windowed.rows("select id from slot where draft_id = 'b'")]
    found = await explained(windowed, slot_id)
    # 9:00, 10:00, and 11:00, which another slot has.
    assert passed(found) == ["WINDOW", "WINDOW", "WINDOW", "FILLED"]
    assert "Of the 4 slot times before it, 1 is filled and 3 are outside the send window." in found.summary


async def test_plans_keep_to_the_window_of_the_schedule(windowed: "Queue") -> None:
    await added(windowed, "a", "b")
    assert hours(await plan(windowed, PlannedAdditions(count=2))) == [("", None, 27), ("", None, 28)]
    assert hours(await plan(windowed, PlannedInFront(count=1))) == [("", None, 3), ("a", 3, 4), ("b", 4, 27)]
    daily = {WeeklySlot(day=day, hour=hour, minute=30): "" for day in range(7) for hour in (10, 12, 15)}
    planned = await plan(windowed, PlannedSchedule(weekly_slots=daily))
    assert hours(planned) == [("a", 3, 3.5), ("b", 4, 27.5)]
    outside = {WeeklySlot(day=0, hour=20, minute=0): ""}
    with pytest.raises(Refused, match="inside its send window"):
        await plan(windowed, PlannedSchedule(weekly_slots=outside))
