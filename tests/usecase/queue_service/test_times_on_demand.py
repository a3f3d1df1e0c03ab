"""TimesOnDemand: slot times are read from where a decision says, and more of them until it has enough."""

from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from queue_service.application.times_on_demand import TimesOnDemand
from queue_service.domain.free_times import MoreTimes
from queue_service.domain.schedule_check import ReadAgain, ReadTimes
from servicekit.faults import Fault, Unavailable
from testkit.clocks import START
from tests.usecase.queue_service.tzdata import DAILY, DAY, NOON

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

PAGE = ("acme", "page")


@pytest.fixture
async def on_demand(queue: "Queue") -> TimesOnDemand:
    queue.now = START
    await queue.put_schedule("page", *DAILY)
    return TimesOnDemand(queue.read_times)


async def test_what_needs_no_times_reads_none(queue: "Queue", on_demand: TimesOnDemand) -> None:
    async def attempt(read: ReadTimes | None) -> str:
        assert read is None
        return "done"

    assert await on_demand(PAGE, attempt) == "done"
    assert queue.schedule.asked == 0


async def test_times_are_read_from_where_they_are_needed(on_demand: TimesOnDemand) -> None:
    async def attempt(read: ReadTimes | None) -> datetime:
        if read is None:
            raise MoreTimes(NOON + 9 * DAY, "")
        assert not isinstance(read, Fault)
        return read[""].times[0]

    assert await on_demand(PAGE, attempt) == NOON + 9 * DAY


async def test_an_attempt_gets_more_until_it_has_enough(on_demand: TimesOnDemand) -> None:
    counts: list[int] = []

    async def attempt(read: ReadTimes | None) -> int:
        counts.append(0 if read is None or isinstance(read, Fault) else len(read[""].times))
        if counts[-1] < 700:
            raise MoreTimes(NOON, "")
        return counts[-1]

    assert await on_demand(PAGE, attempt) >= 700
    assert counts == sorted(counts)


async def test_another_category_and_an_earlier_start_are_read_too(on_demand: TimesOnDemand) -> None:
    needed = [MoreTimes(NOON + 5 * DAY, ""), MoreTimes(NOON + 9 * DAY, "news"), MoreTimes(NOON + 2 * DAY, "")]

    async def attempt(read: ReadTimes | None) -> set[datetime]:
        if needed:
            raise needed.pop(0)
        assert read is not None
        assert not isinstance(read, Fault)
        assert set(read) == {"", "news"}
        return {times.after for times in read.values()}

    assert await on_demand(PAGE, attempt) == {NOON + 2 * DAY}


async def test_a_changed_schedule_is_read_again(queue: "Queue", on_demand: TimesOnDemand) -> None:
    attempts: list[ReadTimes | None] = []

    async def attempt(read: ReadTimes | None) -> int:
        attempts.append(read)
        if read is None:
            raise MoreTimes(NOON, "")
        if len(attempts) < 4:
            raise ReadAgain(needs_more=False)
        return len(attempts)

    assert await on_demand(PAGE, attempt) == 4
    assert queue.schedule.asked == 3


async def test_a_schedule_that_keeps_changing_is_given_up(on_demand: TimesOnDemand) -> None:
    async def attempt(read: ReadTimes | None) -> None:
        raise ReadAgain(needs_more=False) if read else MoreTimes(NOON, "")

    with pytest.raises(Unavailable) as given_up:
        await on_demand(PAGE, attempt)
    assert given_up.value.reason == "SCHEDULE_CHANGING"
    assert type(given_up.value) is Unavailable
