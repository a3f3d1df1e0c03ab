"""Drafts get the times of their category first."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from civil.weekly import WeeklySlot
from queue_service.application.add_to_queue import QueueOrder
from queue_service.application.slot_booker import Unread
from queue_service.domain.job import JobState
from queue_service.domain.schedule_check import ReadAgain
from servicekit.faults import Refused
from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

NOON = START.replace(hour=12)
DAY = timedelta(days=1)
DAILY = [WeeklySlot(day=day, hour=12, minute=0) for day in range(7)]
# The second and the fourth noon.
KEPT = [DAILY[(NOON + DAY).isoweekday() % 7], DAILY[(NOON + 3 * DAY).isoweekday() % 7]]


async def with_categories(queue: "Queue", *kept: WeeklySlot) -> None:
    queue.schedule.kept = dict.fromkeys(kept or KEPT, "news")
    await queue.put_schedule("page", *DAILY)


async def save(queue: "Queue", draft_id: str, category: str) -> None:
    draft = await queue.save_draft(draft_id, "page")
    queue.drafts.drafts[draft_id] = replace(draft, category_id=category)


async def added(queue: "Queue", *drafts: str) -> list[int]:
    """Adds drafts, whose names begin with their category; returns the days that they got."""
    days = []
    for draft in drafts:
        category = draft.split("-")[0]
        await save(queue, draft, "" if category == "any" else category)
        [slot] = await queue.add(draft)
        days.append((queue.time_of(slot) - NOON) // DAY)
    return days


async def test_times_that_a_category_keeps_go_to_its_drafts(queue: "Queue") -> None:
    await with_categories(queue)
    assert await added(queue, "any-1", "any-2", "news-1", "any-3", "news-2", "news-3") == [0, 2, 1, 4, 3, 8]
    [row] = await queue.rows("select category_frontiers from account_queue")
    assert set(row.category_frontiers) == {"news"}


async def test_a_category_without_times_of_its_own_takes_others(queue: "Queue") -> None:
    await with_categories(queue)
    assert await added(queue, "sport-1", "any-1", "sport-2") == [0, 2, 4]
    [row] = await queue.rows("select category_frontiers from account_queue")
    assert row.category_frontiers == {}


async def test_a_category_whose_times_are_filled_takes_others(queue: "Queue") -> None:
    await with_categories(queue, KEPT[0])
    await queue.fill("page", NOON + DAY, timedelta(weeks=1), 105)
    assert await added(queue, "news-1", "news-2") == [0, 2]


async def test_a_canceled_slot_of_a_category_is_given_out_again(queue: "Queue") -> None:
    await with_categories(queue)
    await save(queue, "news-0", "news")
    [slot] = await queue.add("news-0")
    assert await added(queue, "news-1", "any-1") == [3, 0]
    await queue.settle(queue.report_on(slot, JobState.CANCELED))
    assert await added(queue, "any-2", "news-2", "news-3") == [2, 1, 8]


async def test_a_new_schedule_forgets_how_far_categories_are_filled(queue: "Queue") -> None:
    await with_categories(queue)
    assert await added(queue, "news-1") == [1]
    queue.schedule.kept = dict.fromkeys(DAILY, "news")
    await queue.put_schedule("page", *DAILY, version=2)
    assert await added(queue, "news-2") == [0]


async def test_a_frontier_that_an_older_process_has_left_behind_is_ignored(queue: "Queue") -> None:
    """The previous release saves a new schedule without forgetting the frontiers of categories."""
    await with_categories(queue)
    assert await added(queue, "news-1", "news-2") == [1, 3]
    await queue.rows("update account_queue set schedule_version = 2 returning 1")
    queue.schedule.schedules["page"] = replace(queue.schedule.schedules["page"], version=2)
    queue.schedule.kept = dict.fromkeys(DAILY, "news")
    assert await added(queue, "news-3") == [0]


async def test_new_time_zone_data_forgets_how_far_categories_are_filled(queue: "Queue") -> None:
    await with_categories(queue)
    assert await added(queue, "news-1", "any-1") == [1, 0]
    await queue.outdate("page", timedelta(hours=1))
    await queue.announce_schedule("page")
    await queue.catch_up()
    [row] = await queue.rows("select category_frontiers from account_queue")
    assert row.category_frontiers == {}


async def test_the_cap_counts_all_categories(queue: "Queue") -> None:
    morning = WeeklySlot(day=KEPT[0].day, hour=11, minute=0)
    queue.schedule.kept = {morning: "news"}
    await queue.put_schedule("page", *DAILY, morning, cap=1)
    await save(queue, "news-1", "news")
    [slot] = await queue.add("news-1")
    assert queue.time_of(slot) == NOON + DAY - timedelta(hours=1)
    assert await added(queue, "any-1", "any-2") == [0, 2]


async def test_a_category_that_changes_meanwhile_is_read_again(queue: "Queue") -> None:
    await with_categories(queue)
    await queue.save_draft("d1", "page")
    order = QueueOrder(organization_id="acme", draft_id="d1", social_account_ids=("page",))
    reading = await queue.add_to_queue.read(order)
    draft = await queue.save_draft("d1", "page", revision=2, version=2)
    await queue.rows("update draft set category_id = 'news' returning 1")
    [again] = await queue.ledger.once_each([(queue.call_add("d1"), reading)], queue.add_to_queue.book)
    assert isinstance(again, ReadAgain)
    assert not again.needs_more
    queue.drafts.drafts["d1"] = replace(draft, category_id="news")
    [slot] = await queue.add("d1", "page")
    assert queue.time_of(slot) == NOON + DAY


async def test_a_draft_that_was_not_read_is_refused_with_its_fault(queue: "Queue") -> None:
    unread: Any = Unread(fault=Refused("NO", "no"))
    [refused] = await queue.ledger.once_each([(queue.call_add("d1"), unread)], queue.add_to_queue.book)
    assert isinstance(refused, Refused)
    assert refused.reason == "NO"


async def test_a_slot_time_is_not_given_out_twice_while_its_slot_is_dispatched(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await added(queue, "any-0")
    queue.now = NOON - timedelta(seconds=20)
    await save(queue, "any-1", "")
    async with asyncio.TaskGroup() as group:
        group.create_task(queue.hand_over.dispatch())
        adding = group.create_task(queue.add("any-1"))
    assert queue.time_of(adding.result()[0]) == NOON + DAY
    assert [each.draft_id for each in queue.stream.taken()] == ["any-0"]
