"""Slot times are read from the frontier on, page by page."""

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from civil.weekly import WeeklySlot
from queue_service.application.slot_time_reader import SlotTimeReader, TimesWanted, joined, with_times
from queue_service.domain.schedule_check import ReadAgain
from queue_service.domain.slot_times import SlotTimes
from servicekit.faults import Fault, Refused, Unavailable
from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

HOURLY = [WeeklySlot(day=day, hour=hour, minute=0) for day in range(7) for hour in range(24)]
PAGE = ("acme", "page")
HOUR = timedelta(hours=1)


async def read(queue: "Queue", wanted: TimesWanted) -> dict[str, SlotTimes]:
    reader = SlotTimeReader(database=queue.database, clock=queue.clock, schedule=queue.schedule, policy=queue.policy)
    [found] = (await reader({PAGE: wanted})).values()
    assert not isinstance(found, Fault)
    return dict(found)


async def test_many_times_are_read_page_by_page(queue: "Queue") -> None:
    await queue.put_schedule("page", *HOURLY)
    times = (await read(queue, TimesWanted(count=2500)))[""]
    assert queue.schedule.asked == 3
    assert times.times == tuple(START + HOUR * number for number in range(1, 2501))
    assert len(times.nominals) == 2500
    assert not times.last


async def test_pages_end_with_the_horizon(queue: "Queue") -> None:
    await queue.put_schedule("page", WeeklySlot(day=1, hour=9, minute=0))
    times = (await read(queue, TimesWanted(count=5000)))[""]
    assert (times.last, len(times.times), queue.schedule.asked) == (True, 104, 1)


async def test_the_lines_of_categories_are_read_apart(queue: "Queue") -> None:
    queue.schedule.kept[HOURLY[10]] = "news"
    await queue.put_schedule("page", *HOURLY)
    lines = await read(queue, TimesWanted(categories=("news", "")))
    assert set(lines["news"].times).isdisjoint(lines[""].times)
    assert lines["news"].times


async def test_a_start_comes_before_the_frontier(queue: "Queue") -> None:
    await queue.put_schedule("page", *HOURLY)
    for draft in ("d1", "d2"):
        await queue.save_draft(draft, "page")
        await queue.add(draft)
    assert (await read(queue, TimesWanted()))[""].times[0] == START + 3 * HOUR
    assert (await read(queue, TimesWanted(start=START + HOUR)))[""].times[0] == START + HOUR


async def test_an_account_without_a_schedule_is_refused(queue: "Queue") -> None:
    reader = SlotTimeReader(database=queue.database, clock=queue.clock, schedule=queue.schedule, policy=queue.policy)
    [found] = (await reader({PAGE: TimesWanted()})).values()
    assert isinstance(found, Refused)
    assert found.reason == "NO_SCHEDULE"


def test_pages_join_to_one() -> None:
    first = SlotTimes(schedule_version=1, after=START, until=START + HOUR, times=(START,), nominals=(None,), last=False)
    second = replace(first, after=first.until, until=START + 9 * HOUR, times=(START + HOUR,), last=True)
    both = joined([first, second])
    assert (both.after, both.until, both.last) == (START, START + 9 * HOUR, True)
    assert both.times == (START, START + HOUR)


async def test_attempts_that_need_more_times_get_them() -> None:
    counts: list[int] = []

    async def attempt(wanted: TimesWanted) -> str:
        counts.append(wanted.count)
        if len(counts) < 7:
            raise ReadAgain(needs_more=True)
        return "found"

    assert await with_times(attempt, TimesWanted()) == "found"
    assert counts == [64, 1000, 1000, 1000, 8000, 64_000, 128_000]


@pytest.mark.parametrize("needs_more", [True, False])
async def test_attempts_end_although_the_schedule_keeps_changing(needs_more: bool) -> None:
    attempts = 0

    async def attempt(wanted: TimesWanted) -> str:
        nonlocal attempts
        attempts += 1
        raise ReadAgain(needs_more=needs_more)

    with pytest.raises(Unavailable) as refused:
        await with_times(attempt, TimesWanted())
    assert refused.value.reason == "SCHEDULE_CHANGING"
    assert 20 <= attempts <= 30
