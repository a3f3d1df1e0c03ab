"""An account whose zone a tzdata release has dropped that Queue has and Schedule does not have yet."""

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from civil.weekly import WeeklySlot
from civil.zones import tzdata_version
from queue_service.domain.job import JobState
from servicekit.faults import Refused
from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

GONE = "Europe/Atlantis"
DAILY = [WeeklySlot(day=day, hour=12, minute=0) for day in range(7)]
NOON = START.replace(hour=12)


async def drop(queue: "Queue", account: str = "page") -> None:
    """Drops the zone of the account's schedule, which Schedule still knows."""
    schedule = queue.schedule.schedules[account]
    queue.schedule.schedules[account] = replace(schedule, time_zone=GONE)
    async with queue.database.transaction() as tx:
        statement = text("update account_queue set time_zone = :zone where social_account_id = :account")
        await tx.connection.execute(statement, {"zone": GONE, "account": account})


async def test_a_dropped_zone_gives_no_weekly_slot_and_is_named(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY, cap=1)
    await queue.put_schedule("other", *DAILY)
    await queue.save_draft("d1", "page", "other")
    await drop(queue)
    with pytest.raises(Refused) as refused:
        await queue.add("d1")
    assert refused.value.reason == "UNKNOWN_TIME_ZONE"
    assert refused.value.metadata == {
        "social_account_id": "page",
        "time_zone": GONE,
        "tzdata_version": tzdata_version(),
    }
    assert GONE in refused.value.message
    assert await queue.times() == []
    assert len(await queue.add("d1", "other")) == 1


async def test_another_zone_gives_slots_again(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await queue.save_draft("d1", "page")
    await drop(queue)
    await queue.put_schedule("page", *DAILY, version=2)
    [slot] = await queue.add("d1")
    assert queue.time_of(slot) == NOON


async def test_a_chosen_time_needs_no_time_zone(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await queue.save_draft("d1", "page")
    await drop(queue)
    [slot] = await queue.at("d1", NOON)
    assert queue.time_of(slot) == NOON
    assert (slot.time_zone, slot.local_date, slot.local_time) == ("", "", "")
    [row] = await queue.rows("select tzdata_version from slot")
    assert row == (None,)


async def test_a_canceled_post_in_a_dropped_zone_is_settled(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY, cap=1)
    await queue.save_draft("d1", "page")
    [slot] = await queue.add("d1")
    await drop(queue)
    await queue.settle(queue.report_on(slot, JobState.CANCELED))
    assert await queue.states() == {"d1": "CANCELED"}
