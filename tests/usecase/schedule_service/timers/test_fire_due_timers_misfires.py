"""Due timers that are late: the misfire policies."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from jobkit.errors import OccurrenceSkipped
from postflow.schedule.v1.timer_pb2 import (
    TIMER_STATE_FINISHED,
)
from schedule_service.domain.timers.timer import MisfirePolicy

if TYPE_CHECKING:
    from tests.usecase.schedule_service.timers.conftest import Timers


HOUR = timedelta(hours=1)
NEW_YORK = "America/New_York"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


async def test_fire_once_fires_one_of_the_missed_occurrences(timers: "Timers") -> None:
    await timers.create(cron="0 * * * *")
    timers.clock.moment = at("2026-03-02T15:30")
    assert await timers.fire_due() == ["2026-03-02T10:00"]
    assert (await timers.get()).next_fire_time.ToDatetime(UTC) == at("2026-03-02T16:00")


async def test_skip_skips_occurrences_that_are_too_late(timers: "Timers") -> None:
    await timers.create(
        cron="0 * * * *", misfire_policy=MisfirePolicy.SKIP, skip_after=timedelta(minutes=5), time_zone=NEW_YORK
    )
    timers.clock.moment = at("2026-03-02T10:04:59")
    assert await timers.fire_due() == ["2026-03-02T05:00"]
    timers.clock.moment = at("2026-03-02T15:30")
    assert await timers.fire_due() == []
    assert [type(error) for error in timers.errors] == [OccurrenceSkipped]
    after = await timers.get()
    assert (after.fire_count, after.last_occurrence_key) == (1, "2026-03-02T05:00")
    assert after.next_fire_time.ToDatetime(UTC) == at("2026-03-02T16:00")


@pytest.mark.parametrize("auto_remove", [False, True])
async def test_skip_also_skips_occurrences_of_a_dead_worker(timers: "Timers", auto_remove: bool) -> None:
    await timers.create("recurring", cron="0 * * * *", misfire_policy=MisfirePolicy.SKIP)
    await timers.create("single", delay=HOUR, misfire_policy=MisfirePolicy.SKIP, auto_remove=auto_remove)
    timers.clock.moment = at("2026-03-02T10:00:01")
    assert len(await timers.lock_all(timers.jobs())) == 2
    timers.clock.moment = at("2026-03-02T12:30")
    assert await timers.fire_due() == []
    after = await timers.get("recurring")
    assert (after.fire_count, after.last_occurrence_key) == (0, "")
    assert after.next_fire_time.ToDatetime(UTC) == at("2026-03-02T13:00")


async def test_a_stalled_worker_skips_what_has_become_too_late(timers: "Timers") -> None:
    await timers.create(cron="0 * * * *", misfire_policy=MisfirePolicy.SKIP, skip_after=timedelta(seconds=5))
    timers.clock.moment = at("2026-03-02T10:00")
    replica = timers.jobs()
    jobs = await timers.lock_all(replica)
    timers.clock.moment = at("2026-03-02T10:00:06")
    assert len(await timers.settle(replica, jobs)) == 1
    assert timers.fired.keys == []


async def test_a_one_time_timer_that_is_too_late_is_finished(timers: "Timers") -> None:
    await timers.create(delay=HOUR, misfire_policy=MisfirePolicy.SKIP)
    timers.clock.moment += 2 * HOUR
    assert await timers.fire_due() == []
    after = await timers.get()
    assert (after.state, after.fire_count) == (TIMER_STATE_FINISHED, 0)


async def test_fire_all_fires_missed_occurrences_in_order_and_paced(timers: "Timers") -> None:
    await timers.create(
        cron="0 * * * *", misfire_policy=MisfirePolicy.FIRE_ALL, catch_up_interval=timedelta(seconds=30)
    )
    timers.clock.moment = at("2026-03-02T12:30")
    assert await timers.fire_due() == ["2026-03-02T10:00"]
    assert await timers.fire_due() == []
    timers.clock.moment += timedelta(seconds=30)
    assert await timers.fire_due() == ["2026-03-02T11:00"]
    timers.clock.moment += timedelta(seconds=30)
    assert await timers.fire_due() == ["2026-03-02T12:00"]
    assert (await timers.get()).next_fire_time.ToDatetime(UTC) == at("2026-03-02T13:00")


async def test_fire_all_without_a_pace_fires_at_once(timers: "Timers") -> None:
    await timers.create(cron="0 * * * *", misfire_policy=MisfirePolicy.FIRE_ALL, catch_up_interval=timedelta(0))
    timers.clock.moment = at("2026-03-02T12:30")
    assert await timers.fire_due() == [f"2026-03-02T{hour}:00" for hour in (10, 11, 12)]


async def test_a_paused_timer_continues_by_its_misfire_policy(timers: "Timers") -> None:
    for policy in MisfirePolicy:
        await timers.create(policy, topic=policy.lower(), cron="0 * * * *", misfire_policy=policy)
        await timers.pause(policy)
    timers.clock.moment = at("2026-03-02T12:30")
    assert await timers.fire_due() == []
    for policy in MisfirePolicy:
        resumed = await timers.resume(policy)
        assert resumed.next_fire_time.ToDatetime(UTC) == at("2026-03-02T10:00")
    assert timers.woken[-1] < timedelta(0)
    for _ in range(4):
        await timers.fire_due()
        timers.clock.moment += timedelta(seconds=1)
    fired = [(event.topic, event.occurrence_key[-5:]) for event in timers.fired.events]
    assert sorted(fired) == [
        ("fire_all", "10:00"),
        ("fire_all", "11:00"),
        ("fire_all", "12:00"),
        ("fire_once", "10:00"),
    ]
