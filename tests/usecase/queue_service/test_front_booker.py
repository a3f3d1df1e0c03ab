"""AddToQueue at the front gives a draft the next slot time; the slots there shift."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from civil.weekly import WeeklySlot
from postflow.queue.v1.queue_events_pb2 import SLOT_MOVE_REASON_SHIFTED
from postflow.queue.v1.queue_service_pb2 import QUEUE_PLACE_END, QUEUE_PLACE_FRONT
from queue_service.domain.job import JobState
from servicekit.faults import InvalidField, NotFound, Refused
from servicekit.timestamps import moment
from testkit.clocks import START
from tests.usecase.queue_service.steps import drain

if TYPE_CHECKING:
    from postflow.queue.v1.queue_slot_pb2 import QueueSlot
    from tests.usecase.queue_service.conftest import Queue

DAILY = [WeeklySlot(day=day, hour=12, minute=0) for day in range(7)]
NEWS = [WeeklySlot(day=day, hour=18, minute=0) for day in range(7)]
NOON = START.replace(hour=12)
DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)


async def front(queue: "Queue", draft: str, *accounts: str, **fields: Any) -> "list[QueueSlot]":
    return await queue.add(draft, *accounts, place=QUEUE_PLACE_FRONT, **fields)


async def save(queue: "Queue", *drafts: str, accounts: tuple[str, ...] = ("page",), category: str = "") -> None:
    for draft in drafts:
        await queue.save_draft(draft, *accounts, category=category)


async def order(queue: "Queue", account: str = "page") -> str:
    """Returns the drafts in the order of their times, each with the days from the first noon on."""
    rows = await queue.rows(
        "select draft_id, schedule_time from slot where is_live and social_account_id = :account order by 2",
        account=account,
    )
    return " ".join(f"{row.draft_id}:{(row.schedule_time - NOON) / DAY:g}" for row in rows)


async def etag(queue: "Queue", account: str = "page") -> int:
    [row] = await queue.rows(
        "select arrangement from account_queue where social_account_id = :account", account=account
    )
    return int(row.arrangement)


async def test_a_free_slot_time_is_simply_taken(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await save(queue, "d1")
    [slot] = await front(queue, "d1")
    assert queue.time_of(slot) == NOON
    assert (slot.revision, slot.time_zone, slot.local_date, slot.local_time) == (1, "UTC", "2026-03-02", "12:00")
    assert await etag(queue) == 1
    assert await queue.moves() == []
    [announced] = await queue.announced()
    assert (announced.slot_id, announced.schedule_time) == (slot.id, slot.schedule_time)


async def test_slots_shift_and_are_announced_with_the_new_one(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await save(queue, "a", "b", "c", "n")
    for draft in ("a", "b"):
        await queue.add(draft)
    await queue.at("c", NOON + 3 * DAY)
    [new] = await front(queue, "n")
    assert queue.time_of(new) == NOON
    assert await order(queue) == "n:0 a:1 b:2 c:3"
    shifted = await queue.moves()
    assert [(each.draft_id, moment(each.previous_schedule_time), moment(each.schedule_time)) for each in shifted] == [
        ("a", NOON, NOON + DAY),
        ("b", NOON + DAY, NOON + 2 * DAY),
    ]
    assert {(each.reason, each.revision) for each in shifted} == {(SLOT_MOVE_REASON_SHIFTED, 2)}
    assert (await queue.announced())[-1].slot_id == new.id
    rows = await queue.rows("select not_after - schedule_time as late, next_emit_at - schedule_time as emit from slot")
    assert len({tuple(row) for row in rows}) == 1


async def test_each_call_changes_the_etag_once(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await save(queue, "a", "b", "c")
    for number, draft in enumerate("abc", start=1):
        await front(queue, draft)
        assert await etag(queue) == number


async def test_drafts_put_in_front_one_after_another_are_in_reverse_order(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    drafts = [f"d{number}" for number in range(6)]
    await save(queue, *drafts)
    for draft in drafts:
        await front(queue, draft)
    assert await order(queue) == "d5:0 d4:1 d3:2 d2:3 d1:4 d0:5"
    [row] = await queue.rows("select next_due_time from account_queue")
    assert row.next_due_time == NOON


async def test_a_draft_at_the_end_comes_behind_those_that_shifted(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await save(queue, "a", "b", "c", "d")
    await queue.add("a")
    await front(queue, "b")
    await queue.add("c")
    await front(queue, "d")
    assert await order(queue) == "d:0 b:1 a:2 c:3"


async def test_times_that_callers_chose_stay(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await save(queue, "a", "b", "p", "q", "n")
    await queue.at("p", NOON)
    await queue.add("a")
    await queue.at("q", NOON + 2 * DAY + MINUTE / 2)
    await queue.add("b")
    assert await order(queue) == f"p:0 a:1 q:{(2 * DAY + MINUTE / 2) / DAY:g} b:3"
    await front(queue, "n")
    assert await order(queue) == f"p:0 n:1 q:{(2 * DAY + MINUTE / 2) / DAY:g} a:3 b:4"


async def test_dispatched_slots_stay(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await save(queue, "a", "b", "n", "m")
    await queue.add("a")
    await queue.add("b")
    queue.now = NOON
    await drain(queue)
    assert await queue.states() == {"a": "DISPATCHED", "b": "SCHEDULED"}
    queue.now = START  # as if slots were dispatched a day ahead
    await front(queue, "n")
    await front(queue, "m")
    assert await order(queue) == "a:0 m:1 n:2 b:3"
    assert {each.draft_id for each in await queue.moves()} == {"b", "n"}


async def test_a_slot_time_nearer_than_the_notice_is_left_to_its_slot(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await save(queue, "a", "b", "n", "m")
    await queue.add("a")
    await queue.add("b")
    queue.now = NOON - timedelta(seconds=59)
    await front(queue, "n")
    assert await order(queue) == "a:0 n:1 b:2"
    queue.now = NOON - timedelta(seconds=60)
    await front(queue, "m")
    assert await order(queue) == "m:0 a:1 n:2 b:3"


async def test_the_cap_holds_for_all_slots(queue: "Queue") -> None:
    hourly = [WeeklySlot(day=day, hour=hour, minute=0) for day in range(7) for hour in (6, 12, 18)]
    await queue.put_schedule("page", *hourly, cap=2)
    await save(queue, *(f"d{number}" for number in range(7)))
    queue.now = NOON - timedelta(hours=1)
    await queue.add("d0")
    await queue.add("d1")
    queue.now = START
    for number in range(2, 7):
        await front(queue, f"d{number}")
    # 06:00 of the first day is free, but the day is full.
    assert await order(queue) == "d6:0 d5:0.25 d4:0.75 d3:1 d2:1.75 d0:2 d1:2.75"
    days = await queue.rows("select count(*) as n from slot group by local_date")
    assert max(row.n for row in days) == 2


async def test_what_was_sent_counts_towards_the_cap(queue: "Queue") -> None:
    twice = [WeeklySlot(day=day, hour=hour, minute=0) for day in range(7) for hour in (12, 18)]
    await queue.put_schedule("page", *twice, cap=1)
    await save(queue, "a", "b", "n")
    [slot] = await queue.add("a")
    await queue.add("b")
    queue.now = NOON
    await drain(queue)
    await queue.settle(queue.report_on(slot, JobState.PUBLISHED))
    await front(queue, "n")
    assert await order(queue) == "n:1 b:2"


async def test_a_skip_is_neither_used_nor_filled(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await save(queue, "a", "b", "c", "n", "m")
    await queue.skip("page")
    await queue.add("a")
    assert await order(queue) == "a:1"
    await queue.skip("page")
    await front(queue, "n")
    assert await order(queue) == "n:1 a:2"  # the skipped time stays empty
    [row] = await queue.rows("select skip_next, skipped_times from account_queue")
    assert (row.skip_next, row.skipped_times) == (True, [NOON])
    await queue.add("b")
    assert await order(queue) == "n:1 a:2 b:4"


async def test_a_category_shifts_within_its_line(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY, *NEWS)
    queue.schedule.kept = dict.fromkeys(NEWS, "news")
    await save(queue, "a", "b", "n")
    await save(queue, "x", "y", "z", category="news")
    for draft in ("a", "b", "x", "y"):
        await queue.add(draft)
    await front(queue, "z")
    assert await order(queue) == "a:0 z:0.25 b:1 x:1.25 y:2.25"
    await front(queue, "n")
    assert await order(queue) == "n:0 z:0.25 a:1 x:1.25 b:2 y:2.25"


async def test_a_category_without_slot_times_is_put_in_front_of_the_others(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await save(queue, "a", "b")
    await save(queue, "x", category="news")
    for draft in ("a", "b"):
        await queue.add(draft)
    await front(queue, "x")
    await save(queue, "n")
    await front(queue, "n")
    assert await order(queue) == "n:0 x:1 a:2 b:3"


async def test_a_deep_queue_shifts_as_a_whole(queue: "Queue") -> None:
    hourly = [WeeklySlot(day=day, hour=hour, minute=0) for day in range(7) for hour in range(24)]
    await queue.put_schedule("page", *hourly)
    first = START.replace(minute=0) + timedelta(hours=1)
    await queue.fill_weekly("page", first, timedelta(hours=1), 2500)
    await save(queue, "n")
    [slot] = await front(queue, "n")
    assert queue.time_of(slot) == first
    [row] = await queue.rows("select max(schedule_time) as last, count(*) as moved from slot where revision = 2")
    assert (row.last, row.moved) == (first + timedelta(hours=2500), 2500)
    assert queue.schedule.asked == 4  # a few times to begin with, then as many as there are slots


async def test_two_accounts_get_slots_together(queue: "Queue") -> None:
    for account in ("page", "shop"):
        await queue.put_schedule(account, *DAILY)
    await save(queue, "a", "n", accounts=("page", "shop"))
    await queue.add("a", "shop")
    slots = await front(queue, "n", "shop", "page")
    assert [(each.social_account_id, queue.time_of(each)) for each in slots] == [("shop", NOON), ("page", NOON)]
    assert (await order(queue, "shop"), await order(queue)) == ("n:0 a:1", "n:0")
    assert await etag(queue, "shop") == 2
    assert await etag(queue) == 1


@pytest.mark.parametrize("bad", ["page", "shop"])
async def test_nothing_is_stored_if_one_account_has_no_schedule(queue: "Queue", bad: str) -> None:
    good = "shop" if bad == "page" else "page"
    await queue.put_schedule(good, *DAILY)
    await save(queue, "a", accounts=(good,))
    await save(queue, "n", accounts=("page", "shop"))
    await queue.add("a")
    with pytest.raises(Refused) as refused:
        await front(queue, "n")
    assert (refused.value.reason, refused.value.metadata) == ("NO_SCHEDULE", {"social_account_id": bad})
    assert await order(queue, good) == "a:0"
    assert await queue.moves() == []
    assert await etag(queue, good) == 1


async def test_it_is_refused_for_the_reasons_of_the_end(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await queue.put_schedule("off", *DAILY, enabled=False)
    await queue.put_schedule("empty")
    await save(queue, "a", "b", accounts=("page", "off", "empty"))
    await front(queue, "a", "page")
    reasons = {"page": "ALREADY_QUEUED", "off": "SCHEDULE_DISABLED", "shop": "ACCOUNT_NOT_A_TARGET"}
    for account, reason in reasons.items():
        with pytest.raises(Refused) as refused:
            await front(queue, "a", account)
        assert refused.value.reason == reason
    with pytest.raises(Refused) as exhausted:
        await front(queue, "b", "empty")
    assert exhausted.value.reason == "HORIZON_EXHAUSTED"
    with pytest.raises(NotFound) as missing:
        await front(queue, "missing")
    assert missing.value.reason == "DRAFT_NOT_FOUND"


async def test_a_changed_schedule_is_read_again(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await save(queue, "a", "n")
    await queue.add("a")
    await queue.put_schedule("page", *NEWS, version=2, announce=False)
    await front(queue, "n")
    assert await order(queue) == "a:0 n:0.25"


async def test_a_repeat_gets_the_first_answer(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await save(queue, "a", "n")
    await queue.add("a")
    first = await front(queue, "n", request_id="r1")
    queue.drafts.drafts.clear()
    queue.schedule.slots.clear()
    assert await front(queue, "n", request_id="r1") == first
    assert await order(queue) == "n:0 a:1"
    with pytest.raises(InvalidField) as reused:
        await queue.add("n", request_id="r1", place=QUEUE_PLACE_END)
    assert reused.value.reason == "REQUEST_ID_REUSED"
