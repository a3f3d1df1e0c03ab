"""The slot time that the next draft would get is the one that AddToQueue gives."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from civil.weekly import WeeklySlot
from queue_service.application.next_free_time import NextFreeTime
from servicekit.faults import Unavailable
from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

DAILY = [WeeklySlot(day=day, hour=12, minute=0) for day in range(7)]
TWICE = [*DAILY, *(WeeklySlot(day=day, hour=18, minute=0) for day in range(7))]
NOON = START.replace(hour=12)
DAY = timedelta(days=1)


async def found(queue: "Queue", account: str = "page") -> datetime | None:
    find = NextFreeTime(database=queue.database, clock=queue.clock, read_times=queue.read_times, policy=queue.policy)
    return await find(("acme", account))


async def check(queue: "Queue", draft_id: str) -> datetime:
    """Asserts that the time found, twice, is the one that the next draft gets; returns it."""
    first, second = await found(queue), await found(queue)
    await queue.save_draft(draft_id, "page")
    [slot] = await queue.add(draft_id)
    assert first == second == queue.time_of(slot)
    return slot.schedule_time.ToDatetime(UTC)


async def test_each_next_draft_gets_the_time_that_was_shown(queue: "Queue") -> None:
    await queue.put_schedule("page", *TWICE, cap=1)
    assert [await check(queue, f"d{number}") for number in range(3)] == [NOON, NOON + DAY, NOON + 2 * DAY]


async def test_a_pending_skip_is_taken_into_account_and_stays(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await queue.skip("page")
    assert await check(queue, "d0") == NOON + DAY
    assert await check(queue, "d1") == NOON + 2 * DAY


async def test_times_kept_for_a_category_are_passed_over(queue: "Queue") -> None:
    queue.schedule.kept = dict.fromkeys(DAILY, "news")
    await queue.put_schedule("page", *TWICE)
    assert await check(queue, "d0") == NOON + timedelta(hours=6)


async def test_a_long_stretch_of_filled_times_is_searched(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await queue.fill("page", NOON, DAY, 200)
    assert await check(queue, "d0") == NOON + 200 * DAY


async def test_a_schedule_that_was_not_announced_yet_counts(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY, announce=False)
    assert await found(queue) == NOON
    await queue.announce_schedule("page")
    await queue.put_schedule("page", *DAILY, version=2, enabled=False, announce=False)
    assert await found(queue) is None


async def test_a_schedule_that_was_not_announced_yet_is_searched_from_now_on(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    assert [await check(queue, f"d{number}") for number in range(3)] == [NOON, NOON + DAY, NOON + 2 * DAY]
    await queue.put_schedule("page", *TWICE, version=2, announce=False)
    assert await check(queue, "d3") == NOON + timedelta(hours=6)


async def test_there_is_none_without_an_enabled_schedule(queue: "Queue") -> None:
    assert await found(queue) is None
    await queue.put_schedule("page", *DAILY, enabled=False)
    assert await found(queue) is None


async def test_there_is_none_if_nothing_is_free(queue: "Queue") -> None:
    await queue.put_schedule("page")
    assert await found(queue) is None


async def test_there_is_none_while_schedule_is_down(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    queue.schedule.fault = Unavailable("DOWN", "no")
    assert await found(queue) is None


async def test_nothing_is_stored(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await queue.skip("page")
    before = await queue.rows("select * from account_queue")
    assert await found(queue) == NOON + DAY
    assert await queue.rows("select * from account_queue") == before
