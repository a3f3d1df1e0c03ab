"""AddToQueue follows schedules that change, are switched off, deleted or made again."""

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from civil.weekly import WeeklySlot
from queue_service.application.follow_schedules import follow_schedules
from servicekit.faults import Refused, Unavailable
from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

DAILY = [WeeklySlot(day=day, hour=12, minute=0) for day in range(7)]
NOON = START.replace(hour=12)
DAY = timedelta(days=1)


async def test_a_schedule_is_followed_before_its_announcement_arrives(queue: "Queue") -> None:
    twice = [*DAILY, *(WeeklySlot(day=day, hour=18, minute=0) for day in range(7))]
    await queue.put_schedule("page", *twice, cap=1, announce=False)
    for draft in ("d1", "d2", "d3"):
        await queue.save_draft(draft, "page")
    await queue.add("d1")
    await queue.add("d2")
    assert await queue.times() == [NOON, NOON + DAY]  # one a day
    statement = "select schedule_version, time_zone, max_posts_per_day, enabled, search_from from account_queue"
    [known] = await queue.rows(statement)
    assert known[:4] == (1, "UTC", 1, True)
    await queue.announce_schedule("page")
    assert await queue.rows(statement) == [known]  # old news: what the search has learned is kept
    await queue.put_schedule("page", *twice, cap=2, version=2, announce=False)
    [slot] = await queue.add("d3")
    assert queue.time_of(slot) == NOON.replace(hour=18)


async def test_a_schedule_that_was_switched_off_a_moment_ago_gives_no_slot(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await queue.put_schedule("page", version=2, enabled=False, announce=False)
    await queue.save_draft("d1", "page")
    with pytest.raises(Refused) as refused:
        await queue.add("d1")
    assert refused.value.reason == "SCHEDULE_DISABLED"


async def test_without_a_known_cap_the_call_is_unavailable(
    queue: "Queue",
) -> None:
    queue.schedule.says_little = True
    await queue.put_schedule("page", *DAILY)
    await queue.put_schedule("page", *DAILY, version=2, announce=False)
    await queue.save_draft("d1", "page")
    with pytest.raises(Unavailable) as away:
        await queue.add("d1")
    assert away.value.reason == "SCHEDULE_CHANGING"
    await queue.announce_schedule("page")
    [slot] = await queue.add("d1")
    assert queue.time_of(slot) == NOON
    [row] = await queue.rows("select nominal_local_time, tzdata_version from slot")
    assert row == (None, None)


async def test_a_deleted_schedule_gives_no_slot_and_takes_none_away(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    for draft in ("d1", "d2"):
        await queue.save_draft(draft, "page")
    await queue.add("d1")
    await queue.delete_schedule("page", version=2)
    with pytest.raises(Refused) as refused:
        await queue.add("d2")
    assert refused.value.reason == "NO_SCHEDULE"
    assert await queue.times() == [NOON]
    [row] = await queue.rows("select schedule_version, time_zone, enabled from account_queue")
    assert row == (2, "", False)


async def test_an_announcement_from_before_a_deletion_is_ignored_after_it(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    schedule = queue.schedule.schedules["page"]
    await queue.delete_schedule("page", version=3)
    await queue.apply(follow_schedules, replace(schedule, version=2))
    [row] = await queue.rows("select schedule_version, time_zone from account_queue")
    assert row == (3, "")


@pytest.mark.parametrize("announce", [True, False])
async def test_a_schedule_that_is_made_again_gives_slots_again(queue: "Queue", announce: bool) -> None:
    await queue.put_schedule("page", *DAILY)
    for draft in ("d1", "d2", "exact"):
        await queue.save_draft(draft, "page")
    await queue.add("d1")
    await queue.delete_schedule("page", version=2)
    [exact] = await queue.at("exact", NOON + timedelta(hours=1))
    assert (exact.time_zone, exact.local_date) == ("", "")
    await queue.put_schedule("page", *DAILY, version=3, announce=announce)
    [slot] = await queue.add("d2")
    assert queue.time_of(slot) == NOON + DAY


async def test_a_new_version_of_the_schedule_starts_from_its_own_times(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    for draft in ("d1", "d2"):
        await queue.save_draft(draft, "page")
    await queue.add("d1")
    await queue.put_schedule("page", WeeklySlot(day=1, hour=9, minute=30), version=2)
    [slot] = await queue.add("d2")
    assert queue.time_of(slot) == START.replace(minute=30)
    await queue.announce_schedule("page", version=1)  # late, and old
    [row] = await queue.rows("select schedule_version from account_queue")
    assert row.schedule_version == 2
