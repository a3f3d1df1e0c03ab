"""The slot times before a slot that it did not get."""

from datetime import timedelta
from typing import TYPE_CHECKING

from civil.weekly import WeeklySlot
from testkit.clocks import START
from tests.usecase.queue_service.explaining import explained, passed

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

DAILY = [WeeklySlot(day=day, hour=12, minute=0) for day in range(7)]
TWICE = [*DAILY, *(WeeklySlot(day=day, hour=18, minute=0) for day in range(7))]
NOON = START.replace(hour=12)
DAY = timedelta(days=1)


async def added(queue: "Queue", draft_id: str, category: str = "") -> str:
    await queue.save_draft(draft_id, "page", category=category)
    [slot] = await queue.add(draft_id)
    return slot.id


async def test_times_before_a_slot_are_filled_by_others(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    slots = [await added(queue, f"d{number}") for number in range(3)]
    found = await explained(queue, slots[2])
    assert found.time_reason == "NEXT_FREE"
    assert [(each.time, each.reason, each.slot_id, each.draft_id) for each in found.passed_times] == [
        (NOON, "FILLED", slots[0], "d0"),
        (NOON + DAY, "FILLED", slots[1], "d1"),
    ]
    assert "AddToQueue gave it this time: the next free slot time" in found.summary
    assert "The 2 slot times before it are filled." in found.summary
    assert "on account page at 2026-03-04 12:00:00 UTC." in found.summary


async def test_a_skipped_time_is_shown_as_such(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await queue.skip("page")
    assert passed(await explained(queue, await added(queue, "d0"))) == ["SKIPPED"]


async def test_the_daily_cap_counts_other_slots_only(queue: "Queue") -> None:
    await queue.put_schedule("page", *TWICE, cap=1)
    await added(queue, "d0")
    slot_id = await added(queue, "d1")
    assert passed(await explained(queue, slot_id)) == ["FILLED", "CAPPED"]
    await queue.save_draft("d2", "page")
    [at_six] = await queue.at("d2", NOON + DAY + timedelta(hours=6))
    assert passed(await explained(queue, at_six.id)) == ["FILLED", "CAPPED", "FILLED"]


async def test_a_slot_alone_on_its_day_could_have_an_earlier_time(queue: "Queue") -> None:
    await queue.put_schedule("page", *TWICE, cap=1)
    await queue.save_draft("d1", "page")
    [slot] = await queue.at("d1", NOON + timedelta(hours=6))
    assert passed(await explained(queue, slot.id)) == ["GAP"]


async def test_times_kept_for_another_category_are_not_for_the_draft(queue: "Queue") -> None:
    queue.schedule.kept = dict.fromkeys(DAILY, "news")
    await queue.put_schedule("page", *TWICE)
    plain = await added(queue, "d0")
    assert passed(await explained(queue, plain)) == ["CATEGORY"]
    news = [await added(queue, f"n{number}", category="news") for number in range(2)]
    assert passed(await explained(queue, news[1])) == ["FILLED", "CATEGORY"]


async def test_a_time_that_is_free_again_is_a_gap_unless_it_is_too_near(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    queue.now = NOON - timedelta(seconds=30)
    slot_id = await added(queue, "d0")
    assert passed(await explained(queue, slot_id)) == ["NOTICE"]
    queue.now = NOON - timedelta(seconds=61)
    assert passed(await explained(queue, slot_id)) == ["GAP"]
    queue.now = NOON + timedelta(seconds=1)
    assert passed(await explained(queue, slot_id)) == []


async def test_only_the_latest_fifty_times_are_explained(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await queue.fill("page", NOON, DAY, 100)
    slot_id = await added(queue, "d0")
    queue.schedule.asked = 0
    found = await explained(queue, slot_id)
    assert [each.time for each in found.passed_times] == [NOON + number * DAY for number in range(50, 100)]
    assert set(passed(found)) == {"FILLED"}
    assert "The latest 50 slot times before it are filled." in found.summary
    assert queue.schedule.asked == 2


async def test_an_account_whose_schedule_is_gone_has_no_earlier_times(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await added(queue, "d0")
    slot_id = await added(queue, "d1")
    await queue.delete_schedule("page", version=2)
    assert passed(await explained(queue, slot_id)) == []


async def test_a_slot_whose_time_has_passed_has_no_earlier_times(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    slot_id = await added(queue, "d0")
    queue.now, queue.schedule.asked = NOON + DAY, 0
    assert passed(await explained(queue, slot_id)) == []
    assert queue.schedule.asked == 0


async def test_a_slot_does_not_fill_a_time_that_it_could_have_had(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await queue.save_draft("d0", "page")
    [slot] = await queue.at("d0", NOON + timedelta(seconds=30))
    assert passed(await explained(queue, slot.id)) == ["GAP"]
