"""A worker process of jobkit that begins a job, never ends it, and prints the lock that it holds."""

import asyncio
import signal
import sys
import threading
from datetime import timedelta

from sqlalchemy.ext.asyncio import create_async_engine

from jobkit.config import Config
from jobkit.job import Job
from jobkit.scheduler import Scheduler
from jobkit.stores.sql import SqlStore


async def hang(job: Job) -> None:
    print(job.id, job.fence, flush=True)  # noqa: T201 - read by the test
    await asyncio.Event().wait()


def hang_in_a_thread(job: Job) -> None:
    print(job.id, job.fence, flush=True)  # noqa: T201 - as above
    threading.Event().wait()


async def main(url: str, form: str, lock_seconds: float, grace: float) -> None:
    store = SqlStore(create_async_engine(url), "job")
    scheduler = Scheduler(
        Config(
            store=store,
            on_document=hang_in_a_thread if form == "thread" else hang,
            batch=3,
            lock_duration=timedelta(seconds=lock_seconds),
            grace=timedelta(seconds=grace),
            cancel_grace=timedelta(seconds=0.1) if form == "thread" else timedelta(seconds=5),
        )
    )
    if form == "run":
        await scheduler.run(asyncio.Event())
    elif form in {"until signal", "thread"}:
        await scheduler.run_until_signal()
    else:
        async with scheduler:
            await asyncio.Event().wait()


# Restores the default of a terminal: a shell ignores SIGINT in background processes.
signal.signal(signal.SIGINT, signal.default_int_handler)
asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])))
