"""Runs jobs in memory: one at once, one a second later, one that repeats, one that needs a second attempt.

Runs by itself: `.venv/bin/python examples/jobkit/memory.py`
"""

import asyncio
from datetime import timedelta

from jobkit.changes import NewJob
from jobkit.config import Config
from jobkit.errors import SchedulerError
from jobkit.job import Job
from jobkit.occurrences import occurrence_key
from jobkit.retry import RetryPolicy
from jobkit.scheduler import Scheduler
from jobkit.stores.memory import MemoryStore

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


async def main() -> None:
    store = MemoryStore()
    now = await store.now()
    await store.enqueue(NewJob(id="at once", auto_remove=True))
    await store.enqueue(NewJob(id="deferred", due_time=now + SECOND))
    await store.enqueue(NewJob(id="recurring", interval="@every 1s", repeat_until=now + 3 * SECOND))
    await store.enqueue(NewJob(id="shaky", data={"fails": 1}))

    async def do(job: Job) -> None:
        print(f"{job.id}: {occurrence_key(job)}, attempt {job.attempts}")
        if (job.attempts or 0) <= job.data.get("fails", 0):
            raise RuntimeError("not this time")

    async def tell(error: SchedulerError) -> None:
        print(error)

    async def look() -> None:
        if await store.next_due() is None:
            finished.set()

    finished = asyncio.Event()
    retry = RetryPolicy(first=timedelta(milliseconds=200), cap=SECOND)
    async with Scheduler(
        Config(store=store, on_document=do, on_error=tell, on_idle=look, retry=retry, workers=2, idle_delay=MINUTE)
    ):
        await finished.wait()
    print("done:", ", ".join(f"{name} kept" if store.get(name) else f"{name} removed" for name in ("at once", "shaky")))


if __name__ == "__main__":
    asyncio.run(main())
