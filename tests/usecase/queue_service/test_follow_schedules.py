"""Announcements of schedules and of the time zone data that they come with."""

from dataclasses import replace
from datetime import time
from typing import TYPE_CHECKING

from civil.weekly import WeeklySlot
from queue_service.adapters.postgres.accounts import find_queues
from queue_service.application.follow_schedules import follow_schedules
from tests.usecase.queue_service.tzdata import (
    CURRENT,
    HOUR,
    NEWER,
    NOON,
    OLD,
    announce_again,
    caught_up,
    is_behind,
    queued,
)

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue


async def test_a_batch_keeps_the_newest_schedule_and_the_newest_release(queue: "Queue") -> None:
    """Takes both from a batch: during a rollout an old process of Schedule may save the newest schedule."""
    await queued(queue, "d1")
    await queue.outdate("page", HOUR)
    schedule = queue.schedule.schedules["page"]
    await queue.apply(
        follow_schedules,
        replace(schedule, version=2, tzdata_version=CURRENT),
        replace(schedule, version=3, tzdata_version=OLD, max_posts_per_day=5),
    )
    await caught_up(queue)
    assert await queue.times() == [NOON]
    await queue.announce_schedule("page", version=1, tzdata_version=CURRENT)
    [row] = await queue.rows("select schedule_version, max_posts_per_day, tzdata_version from account_queue")
    assert row == (3, 5, CURRENT)


async def test_the_later_of_two_schedules_of_one_version_counts(queue: "Queue") -> None:
    """A restored Schedule gives the versions since its backup to other schedules."""
    await queued(queue, "d1")
    lost = replace(queue.schedule.schedules["page"], version=2, max_posts_per_day=5)
    await queue.apply(follow_schedules, lost, replace(lost, max_posts_per_day=7))
    [row] = await queue.rows("select schedule_version, max_posts_per_day from account_queue")
    assert row == (2, 7)


async def test_an_older_schedule_may_bring_newer_time_zone_data(queue: "Queue") -> None:
    await queued(queue, "d1")
    await queue.outdate("page", HOUR)
    await queue.announce_schedule("page", version=3, tzdata_version=OLD, max_posts_per_day=5)
    assert not await is_behind(queue)
    await queue.announce_schedule("page", version=2, tzdata_version=CURRENT)
    assert await is_behind(queue)
    [row] = await queue.rows("select schedule_version, max_posts_per_day, tzdata_version from account_queue")
    assert row == (3, 5, CURRENT)


async def test_plans_learn_a_schedule_as_it_is_saved(queue: "Queue") -> None:
    await queued(queue, "d1")
    account, schedule = ("acme", "page"), queue.schedule.schedules["page"]
    for version, release in ((3, OLD), (2, CURRENT), (4, NEWER)):
        announced = replace(schedule, version=version, tzdata_version=release, max_posts_per_day=version)
        async with queue.database.read_session() as session:
            known = (await find_queues(session, {account}))[account]
        await queue.apply(follow_schedules, announced)
        async with queue.database.read_session() as session:
            saved = (await find_queues(session, {account}))[account]
        learned = known.learned(announced) if known.learns_from(announced) else known
        assert learned == replace(saved, slots_behind=known.slots_behind)


async def test_only_time_zone_data_move_a_slot(queue: "Queue") -> None:
    await queued(queue, "d1")
    queue.schedule.zone = "Asia/Tokyo"
    await queue.put_schedule("page", WeeklySlot(day=3, hour=8, minute=0), version=2, cap=1)
    assert not await is_behind(queue)
    assert not await queue.catch_up()
    # If both change: the slot means noon in UTC, the zone that it was given in.
    await queue.outdate("page", HOUR)
    await announce_again(queue, version=3)
    await caught_up(queue)
    assert await queue.times() == [NOON]
    [row] = await queue.rows("select time_zone, local_time from slot")
    assert row == ("UTC", time(12))


async def test_time_zone_data_older_than_our_own_move_still_older_slots(queue: "Queue") -> None:
    """Does not wait for our release to be announced: if it changes nothing for this zone, it never is."""
    await queued(queue, "d1")
    await queue.outdate("page", HOUR, release="2020a")
    await queue.announce_schedule("page", version=2, tzdata_version="2021a")
    await caught_up(queue)
    [row] = await queue.rows("select schedule_time, tzdata_version from slot")
    assert row == (NOON, CURRENT)


async def test_time_zone_data_older_than_the_slots_move_nothing(queue: "Queue") -> None:
    await queued(queue, "d1")
    await queue.announce_schedule("page", version=2, tzdata_version=OLD)
    assert not await is_behind(queue)
    assert not await queue.catch_up()
    [row] = await queue.rows("select schedule_version, tzdata_version from account_queue")
    assert row == (2, CURRENT)  # so that answers with the older data are known to be outdated


async def test_slots_of_a_deleted_schedule_move_too(queue: "Queue") -> None:
    await queued(queue, "d1")
    await queue.outdate("page", HOUR)
    schedule = queue.schedule.schedules["page"]
    queue.schedule.schedules["page"] = replace(schedule, tzdata_version=CURRENT)
    await queue.delete_schedule("page", version=2)
    await caught_up(queue)
    assert await queue.times() == [NOON]
