"""SkipNextSlot leaves a slot time empty, once."""

from datetime import UTC, timedelta
from typing import TYPE_CHECKING

import pytest

from civil.weekly import WeeklySlot
from queue_service.domain.job import JobState
from servicekit.faults import NotFound, Refused
from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

DAILY = [WeeklySlot(day=day, hour=12, minute=0) for day in range(7)]
NOON = START.replace(hour=12)
DAY = timedelta(days=1)


async def added(queue: "Queue", *drafts: str) -> list[int]:
    """Adds drafts; returns the days from the first noon on that they got."""
    days = []
    for draft in drafts:
        await queue.save_draft(draft, "page")
        [slot] = await queue.add(draft)
        days.append((queue.time_of(slot) - NOON) // DAY)
    return days


async def test_the_next_draft_leaves_a_time_empty_and_those_after_it_do_not(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    assert await added(queue, "d0") == [0]
    shown = await queue.skip("page")
    assert shown.skip_next
    assert await added(queue, "d1", "d2") == [2, 3]
    [row] = await queue.rows("select skip_next, skipped_times from account_queue")
    assert tuple(row) == (False, [NOON + DAY])


async def test_a_skipped_time_stays_empty_when_the_search_begins_again(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await queue.skip("page")
    await added(queue, "d0", "d1")
    await queue.put_schedule("page", *DAILY, version=2)
    assert await added(queue, "d2") == [3]


async def test_an_undo_before_the_next_draft_skips_nothing(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await queue.skip("page")
    assert not (await queue.skip("page", undo=True)).skip_next
    assert await added(queue, "d0") == [0]


async def test_an_undo_after_the_next_draft_frees_the_time(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await queue.skip("page")
    assert await added(queue, "d0") == [1]
    shown = await queue.skip("page", undo=True)
    assert not shown.skipped_times
    assert await added(queue, "d1", "d2") == [0, 2]
    with pytest.raises(Refused) as refused:
        await queue.skip("page", undo=True)
    assert refused.value.reason == "NOTHING_SKIPPED"


async def test_the_skipped_time_is_one_that_would_have_been_used(queue: "Queue") -> None:
    """Skips the first free one under the cap, and not one that is filled."""
    await queue.put_schedule("page", *DAILY, cap=1)
    await queue.save_draft("exact", "page")
    await queue.at("exact", NOON - timedelta(hours=1))
    await queue.skip("page")
    assert await added(queue, "d1") == [2]
    shown = await queue.skip("page")
    assert [time.ToDatetime(UTC) for time in shown.skipped_times] == [NOON + DAY]


async def test_a_chosen_time_does_not_use_the_skip(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await queue.skip("page")
    await queue.save_draft("exact", "page")
    await queue.at("exact", NOON)
    assert await added(queue, "d1") == [2]


async def test_a_draft_that_gets_no_time_does_not_use_the_skip(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await queue.fill("page", NOON, DAY, 729)
    await queue.skip("page")
    await queue.save_draft("d1", "page")
    with pytest.raises(Refused) as refused:
        await queue.add("d1")
    assert refused.value.reason == "HORIZON_EXHAUSTED"
    assert (await queue.skip("page")).skip_next
    await queue.skip("page", undo=True)
    [slot] = await queue.add("d1")
    assert queue.time_of(slot) == NOON + 729 * DAY


async def test_an_account_may_skip_before_it_has_a_schedule(queue: "Queue") -> None:
    await queue.skip("page")
    await queue.put_schedule("page", *DAILY)
    assert await added(queue, "d0") == [1]


async def test_skips_raise_the_etag_once(queue: "Queue") -> None:
    etags = [(await queue.skip("page")).etag for _ in range(2)]
    assert etags == ["1", "1"]
    assert (await queue.skip("page", undo=True)).etag == "2"


async def test_a_repeat_skips_nothing_more(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    first = await queue.skip("page", request_id="s1")
    assert await added(queue, "d0") == [1]
    assert await queue.skip("page", request_id="s1") == first
    assert await added(queue, "d1") == [2]


async def test_an_unknown_account_is_refused(queue: "Queue") -> None:
    queue.accounts.missing.add("gone")
    with pytest.raises(NotFound) as refused:
        await queue.skip("gone")
    assert refused.value.reason == "ACCOUNT_NOT_FOUND"


async def test_a_canceled_slot_behind_a_skipped_time_is_given_out(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await queue.skip("page")
    await queue.save_draft("d0", "page")
    [slot] = await queue.add("d0")
    assert await added(queue, "d1") == [2]
    await queue.settle(queue.report_on(slot, JobState.CANCELED))
    assert await added(queue, "d2", "d3") == [1, 3]
