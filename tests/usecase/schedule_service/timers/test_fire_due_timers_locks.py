"""Due timers in flight: calls in between, and workers that died or lost their locks."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from postflow.schedule.v1.timer_pb2 import (
    TIMER_STATE_PAUSED,
)

if TYPE_CHECKING:
    from tests.usecase.schedule_service.timers.conftest import Timers


HOUR = timedelta(hours=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


async def test_a_pause_prevents_a_firing_that_is_not_yet_written(timers: "Timers") -> None:
    await timers.create(cron="0 * * * *")
    timers.clock.moment = at("2026-03-02T10:00")
    replica = timers.jobs()
    jobs = await timers.lock_all(replica)
    resting = await timers.pause()
    assert await timers.settle(replica, jobs) == set()
    assert timers.fired.keys == []
    assert await timers.get() == resting
    assert resting.state == TIMER_STATE_PAUSED
    await timers.resume()
    assert await timers.fire_due() == ["2026-03-02T10:00"]


async def test_a_pause_after_a_firing_keeps_the_next_occurrence(timers: "Timers") -> None:
    await timers.create(cron="0 * * * *")
    timers.clock.moment = at("2026-03-02T10:00")
    assert await timers.fire_due() == ["2026-03-02T10:00"]
    resting = await timers.pause()
    assert resting.next_fire_time.ToDatetime(UTC) == at("2026-03-02T11:00")
    await timers.resume()
    assert await timers.fire_due() == []
    assert (await timers.get()).fire_count == 1


async def test_a_timer_deleted_while_locked_does_not_fire(timers: "Timers") -> None:
    await timers.create(cron="0 * * * *")
    await timers.create("gone", delay=timedelta(0), auto_remove=True)
    timers.clock.moment = at("2026-03-02T10:00")
    replica = timers.jobs()
    jobs = await timers.lock_all(replica)
    await timers.delete()
    await timers.delete("gone")
    assert await timers.settle(replica, jobs) == set()
    assert await replica.store.remove([job.lock for job in jobs]) == frozenset()
    assert timers.fired.keys == []


async def test_an_auto_remove_timer_paused_while_locked_stays(timers: "Timers") -> None:
    await timers.create(delay=timedelta(0), auto_remove=True)
    replica = timers.jobs()
    jobs = await timers.lock_all(replica)
    resting = await timers.pause()
    assert await replica.store.remove([job.lock for job in jobs]) == frozenset()
    assert timers.fired.keys == []
    assert await timers.get() == resting


async def test_a_manual_firing_does_not_disturb_one_in_flight(timers: "Timers") -> None:
    await timers.create(cron="0 * * * *")
    timers.clock.moment = at("2026-03-02T10:00")
    replica = timers.jobs()
    jobs = await timers.lock_all(replica)
    await timers.fire(request_id="r")
    assert len(await timers.settle(replica, jobs)) == 1
    assert timers.fired.keys == ["manual/r", "2026-03-02T10:00"]
    assert (await timers.get()).fire_count == 2


async def test_another_worker_takes_over_from_one_that_died(timers: "Timers") -> None:
    await timers.create(cron="0 * * * *")
    timers.clock.moment = at("2026-03-02T10:00")
    dead = timers.jobs()
    jobs = await timers.lock_all(dead)
    assert timers.fired.keys == []
    timers.clock.moment += timedelta(seconds=9)
    assert await timers.fire_due() == []
    timers.clock.moment += timedelta(seconds=1)
    assert await timers.fire_due() == ["2026-03-02T10:00"]
    # The first worker was not dead after all.
    assert await timers.settle(dead, jobs) == set()
    assert timers.fired.keys == ["2026-03-02T10:00"]
    assert (await timers.get()).fire_count == 1
