"""Due timers in flight: calls in between, and workers that died or lost their locks."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from jobkit.errors import LateWrite
from jobkit.job import Done, Job, JobUpdate
from postflow.schedule.v1.timer_pb2 import (
    TIMER_STATE_PAUSED,
)
from schedule_service.engine.batch import BatchHandler

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


async def test_a_commit_whose_answer_was_lost_is_not_repeated(timers: "Timers") -> None:
    await timers.create("recurring", cron="0 * * * *")
    await timers.create("single", delay=HOUR)
    timers.clock.moment = at("2026-03-02T10:00:30")
    replica = timers.jobs()
    jobs = await timers.lock_all(replica)
    assert len(await timers.settle(replica, jobs)) == 2
    assert await timers.settle(replica, jobs) == set()
    assert len(timers.fired.keys) == 2


async def test_a_late_extension_does_not_wake_a_settled_timer(timers: "Timers") -> None:
    await timers.create("going", cron="0 * * * *")
    await timers.create("finished", delay=HOUR)
    timers.clock.moment = at("2026-03-02T10:00:01")
    replica = timers.jobs()
    (going, finished) = jobs = await timers.lock_all(replica)
    end = JobUpdate(due_time=None, sleep_until=None, attempts=0, last_error=None, finish_time=timers.clock.moment)
    assert await timers.settle(replica, [going]) == {going.id}
    assert await replica.store.update([(finished.lock, end)]) == {finished.lock}
    assert await replica.store.extend([job.lock for job in jobs], timers.clock.moment) == frozenset()
    assert await timers.fire_due() == []


async def test_a_late_write_is_reported(timers: "Timers") -> None:
    await timers.create(cron="0 * * * *")
    timers.clock.moment = at("2026-03-02T10:00")

    class Pausing(BatchHandler):
        async def __call__(self, jobs: Sequence[Job]) -> list[Done]:
            await timers.pause()
            return await super().__call__(jobs)

    replica = timers.jobs()
    replica = replica._replace(handler=Pausing(replica.handler._occurrences, replica.handler._batch))
    assert await timers.fire_due(replica) == []
    assert [type(error) for error in timers.errors] == [LateWrite]
