"""The store of the engine: settled timers stay settled."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from jobkit.job import JobUpdate

if TYPE_CHECKING:
    from tests.usecase.schedule_service.timers.conftest import Timers

HOUR = timedelta(hours=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


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
