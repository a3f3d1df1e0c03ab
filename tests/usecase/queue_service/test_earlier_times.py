"""Reading the latest slot times before an instant."""

from datetime import timedelta

import pytest

from civil.weekly import WeeklySlot
from queue_service.application.earlier_times import EarlierTimes
from queue_service.domain.passed_times import MOST_PASSED
from testkit.clocks import START
from tests.usecase.queue_service.fakes import FakeSchedule

ACCOUNT = ("acme", "page")
MONDAY_NINE = WeeklySlot(day=1, hour=9, minute=0)
HOURLY = [WeeklySlot(day=day, hour=hour, minute=0) for day in range(7) for hour in range(24)]
WEEK, DAY = timedelta(weeks=1), timedelta(days=1)


@pytest.fixture
def schedule() -> FakeSchedule:
    return FakeSchedule(slots={"page": [MONDAY_NINE]})


async def test_a_rare_slot_is_read_for_as_many_weeks_as_it_takes(schedule: FakeSchedule) -> None:
    until = START + 100 * WEEK
    found = await EarlierTimes(schedule)(ACCOUNT, since=START - WEEK, until=until)
    assert [each.time for each in found][-MOST_PASSED - 1 :] == [START + number * WEEK for number in range(50, 101)]
    assert len(found) < 2 * MOST_PASSED
    assert schedule.asked == 2


async def test_a_dense_schedule_is_read_for_a_week(schedule: FakeSchedule) -> None:
    schedule.slots["page"] = HOURLY
    found = await EarlierTimes(schedule)(ACCOUNT, since=START, until=START + 100 * WEEK)
    assert (len(found), found[-1].time) == (7 * 24 + 1, START + 100 * WEEK)
    assert schedule.asked == 1


async def test_nothing_is_read_from_the_past(schedule: FakeSchedule) -> None:
    schedule.slots["page"] = [WeeklySlot(day=day, hour=9, minute=0) for day in range(7)]
    for days in (3, 20):
        found = await EarlierTimes(schedule)(ACCOUNT, since=START, until=START + days * DAY)
        assert [each.time for each in found] == [START + number * DAY for number in range(days + 1)]


async def test_a_schedule_without_slots_is_asked_once(schedule: FakeSchedule) -> None:
    schedule.slots["page"] = []
    assert await EarlierTimes(schedule)(ACCOUNT, since=START, until=START + 10 * WEEK) == []
    assert schedule.asked == 1
