"""The batch handler of the engine, and what it leaves for the store."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from civil.zones import zone_data
from jobkit.errors import LateWrite
from jobkit.job import Done, Job
from schedule_service.engine.batch import BatchHandler

if TYPE_CHECKING:
    from tests.usecase.schedule_service.timers.conftest import Timers

HOUR = timedelta(hours=1)
NEW_YORK = "America/New_York"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


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


async def test_an_abandoned_batch_does_not_affect_the_next_one(timers: "Timers") -> None:
    await timers.create("left", cron="0 9 * * *", time_zone=NEW_YORK)
    await timers.use_older_zone(NEW_YORK, zone_data("America/Halifax"), at("2026-03-03T13:00"))
    await timers.create("next", fire_time=at("2026-03-03T13:00"))
    timers.clock.moment = at("2026-03-03T13:00")
    replica = timers.jobs()
    now = timers.clock.moment
    jobs = {job.data["id"]: job for job in await replica.store.lock_next(now, now + timedelta(seconds=10), 100)}
    async with asyncio.TaskGroup() as group:
        # It waits for the older zone to be read, and ends after the other.
        group.create_task(replica.handler([jobs["left"]]))
        await asyncio.sleep(0)
        await replica.handler([jobs["next"]])
    await timers.settle(replica, [jobs["next"]])
    assert [event.timer_id for event in timers.fired.events] == ["next"]
