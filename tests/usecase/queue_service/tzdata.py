"""Slots computed with older time zone data, and their way to the data in force."""

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from civil.weekly import WeeklySlot
from civil.zones import tzdata_version
from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

CURRENT, OLD, NEWER = tzdata_version(), "2020a", "2999a"
DAILY = [WeeklySlot(day=day, hour=12, minute=0) for day in range(7)]
HOURLY = [WeeklySlot(day=day, hour=hour, minute=0) for day in range(7) for hour in range(24)]
NOON = START.replace(hour=12)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


async def caught_up(queue: "Queue") -> None:
    for _ in range(100):
        if not await queue.catch_up():
            return
    raise AssertionError("there is no end to it")


async def announce_again(queue: "Queue", account: str = "page", *, version: int = 2) -> None:
    """Announces the same schedule with the time zone data in force."""
    schedule = queue.schedule.schedules[account]
    queue.schedule.schedules[account] = replace(schedule, version=version)
    await queue.announce_schedule(account)


async def is_behind(queue: "Queue", account: str = "page") -> bool:
    [row] = await queue.rows(
        "select slots_behind from account_queue where social_account_id = :account", account=account
    )
    return bool(row.slots_behind)


async def queued(queue: "Queue", *drafts: str, slots: list[WeeklySlot] = DAILY) -> None:
    """Gives the drafts slots computed with the time zone data in force."""
    await queue.put_schedule("page", *slots)
    for draft in drafts:
        await queue.save_draft(draft, "page")
        await queue.add(draft)
