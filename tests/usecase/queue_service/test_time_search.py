"""The search for free slot times in long queues."""

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from civil.weekly import WeeklySlot
from queue_service.domain.job import JobState
from queue_service.domain.listing import Filter, Position
from queue_service.wire.slots import queue_slot
from servicekit.faults import Refused
from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue, Statements

DAILY = [WeeklySlot(day=day, hour=12, minute=0) for day in range(7)]
NOON = START.replace(hour=12)
DAY = timedelta(days=1)


async def test_more_times_are_read_when_a_whole_page_is_taken(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    for index in range(12):
        await queue.save_draft(f"d{index}", "page")
        await queue.at(f"d{index}", NOON + index * DAY)
    await queue.save_draft("last", "page")
    queue.schedule.page = 5
    [slot] = await queue.add("last")
    assert queue.time_of(slot) == NOON + 12 * DAY
    assert queue.schedule.asked == 3


async def test_a_refused_search_keeps_what_it_has_learned(queue: "Queue") -> None:
    """Refuses at the last page, and does not search the pages before it again."""
    await queue.put_schedule("page", *DAILY)
    await queue.save_draft("d1", "page")
    queue.schedule.page = 300
    await queue.fill("page", NOON, DAY, 740)
    for _ in range(2):
        with pytest.raises(Refused) as refused:
            await queue.add("d1")
        assert refused.value.reason == "HORIZON_EXHAUSTED"
    # 64, 300, 300 and the last 66 times; then 64 and 2 of those.
    assert queue.schedule.asked == 4 + 2


async def test_a_long_queue_costs_no_more_than_a_short_one(queue: "Queue", statements: "Statements") -> None:
    hourly = [WeeklySlot(day=day, hour=hour, minute=0) for day in range(7) for hour in range(24)]
    await queue.put_schedule("page", *hourly, cap=24)
    for draft in ("d1", "d2", "d3", "d4", "d5"):
        await queue.save_draft(draft, "page")
    await queue.add("d1")
    statements.clear()
    await queue.add("d2")
    cost, elements, asked = len(statements.texts), statements.elements, queue.schedule.asked
    await queue.fill("page", START + timedelta(hours=3), timedelta(hours=1), 1998)
    [found] = await queue.add("d3")  # searches to the end, once
    assert queue.time_of(found) == START + timedelta(hours=2001)
    assert queue.schedule.asked == asked + 3
    statements.clear()
    await queue.add("d4")
    assert len(statements.texts) == cost
    assert statements.elements <= elements + 5  # the window may reach into a second day, which is five array elements
    assert queue.schedule.asked == asked + 4
    # Nor does a freed slot in the middle.
    [first] = (await queue.list(Filter(organization_id="acme"), after=Position(), size=1)).slots
    await queue.settle(queue.report_on(queue_slot(first), JobState.CANCELED))
    [again] = await queue.add("d5")
    assert queue.time_of(again) == first.schedule_time
    await queue.save_draft("d6", "page")
    statements.clear()
    [last] = await queue.add("d6")
    assert queue.time_of(last) == START + timedelta(hours=2003)
    assert len(statements.texts) <= 2 * cost
    assert statements.elements <= 5 * elements
