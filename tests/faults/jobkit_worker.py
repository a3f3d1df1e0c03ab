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


async def main(url: str) -> None:
    store = SqlStore(create_async_engine(url), "job")
    await Scheduler(Config(store=store, on_document=hang, lock_duration=timedelta(seconds=2))).run(asyncio.Event())


asyncio.run(main(sys.argv[1]))
