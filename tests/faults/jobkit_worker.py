"""A worker process of jobkit that begins a job and never ends it; it says which lock it holds."""

import asyncio
import sys
from datetime import timedelta

from sqlalchemy.ext.asyncio import create_async_engine

from jobkit.config import Config
from jobkit.job import Job
from jobkit.scheduler import Scheduler
from jobkit.stores.sql import SqlStore


async def hang(job: Job) -> None:
    print(job.id, job.fence, flush=True)  # noqa: T201 - that is what the test reads
    await asyncio.Event().wait()


async def main(url: str, form: str, lock_seconds: float, grace: float) -> None:
    store = SqlStore(create_async_engine(url), "job")
    scheduler = Scheduler(
        Config(
            store=store,
            on_document=hang,
            batch=3,
            lock_duration=timedelta(seconds=lock_seconds),
            grace=timedelta(seconds=grace),
        )
    )
    if form == "run":
        await scheduler.run(asyncio.Event())
    elif form == "until signal":
        await scheduler.run_until_signal()
    else:
        async with scheduler:
            await asyncio.Event().wait()


asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])))
