"""A worker dies in the middle of a job: another takes over when the lock expires, and the first can write nothing."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from devstack.servers.postgres import EmbeddedPostgres, Mode
from jobkit.config import Config
from jobkit.errors import SchedulerError, StoreFailed
from jobkit.job import Job, JobUpdate, Lock
from jobkit.occurrences import occurrence_key
from jobkit.scheduler import Scheduler
from jobkit.stores.sql import SqlStore
from servicekit.pg.database import async_url
from testkit.eventually import eventually
from testkit.jobs import create_table

WORKER = Path(__file__).with_name("jobkit_worker.py")


@pytest.fixture
async def engine(empty_database: str) -> AsyncIterator[AsyncEngine]:
    engine = create_async_engine(async_url(empty_database))
    await create_table(engine)
    yield engine
    await engine.dispose()


async def test_a_killed_workers_job_is_taken_over(engine: AsyncEngine) -> None:
    store = SqlStore(engine, "job")
    due = (await store.now()).replace(microsecond=0)
    async with engine.begin() as connection:
        await connection.execute(
            text("insert into job (sleep_until, interval) values (:due, '@every 1h')"), {"due": due}
        )
    dead = await killed_in_the_middle(engine)
    locked = await row(engine)
    assert (locked.due_time, locked.attempts, locked.fence) == (due, 1, dead.fence)
    assert locked.sleep_until > due

    ran: list[Job] = []

    async def do(job: Job) -> None:
        # While the second worker runs the job, the last write of the dead one arrives.
        late = JobUpdate(due_time=None, sleep_until=None, attempts=0, last_error="from the dead")
        assert await store.update([(dead, late)]) == frozenset()
        assert await store.extend([dead], due + timedelta(days=1)) == frozenset()
        assert await store.remove([dead]) == frozenset()
        assert await store.now() >= locked.sleep_until
        ran.append(job)

    config = Config(store=store, on_document=do, lock_duration=timedelta(seconds=2))
    async with Scheduler(config) as scheduler:
        await eventually(lambda: ran and scheduler.is_idle)
    (job,) = ran
    assert (job.due_time, job.attempts, job.fence) == (due, 2, dead.fence + 1)
    assert occurrence_key(job) == f"{due.replace(tzinfo=None).isoformat()}Z"
    after = await row(engine)
    assert after.due_time == after.sleep_until == due + timedelta(hours=1)
    assert (after.attempts, after.last_error) == (0, None)
    assert (
        await store.update([(dead, JobUpdate(due_time=None, sleep_until=None, attempts=0, last_error=None))]) == set()
    )
    assert await row(engine) == after


@pytest.mark.parametrize(
    ("form", "signals", "grace"),
    [
        ("run", [signal.SIGINT], 3600),
        ("async with", [signal.SIGINT], 3600),
        ("until signal", [signal.SIGTERM], 0),
        ("until signal", [signal.SIGINT, signal.SIGINT], 3600),
    ],
)
async def test_an_interrupted_worker_gives_its_locks_back(
    engine: AsyncEngine, form: str, signals: list[signal.Signals], grace: float
) -> None:
    for _ in range(3):
        await insert(engine)
    process, _ = await begun(engine, form, lock_seconds=600, grace=grace)
    for number in signals:
        process.send_signal(number)
        await eventually(lambda: given_back(engine, at_least=2))
    async with asyncio.timeout(30):
        await process.wait()
    assert await given_back(engine, at_least=3)
    # Ctrl-C ends a program by the signal, unless the program handles it.
    assert process.returncode == (0 if form == "until signal" else -signal.SIGINT)


async def test_a_thread_that_hangs_does_not_keep_its_process_alive(engine: AsyncEngine) -> None:
    for _ in range(3):
        await insert(engine)
    process, lock = await begun(engine, "thread", lock_seconds=600, grace=0)
    process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(30):
        assert await process.wait() == 0
    assert await given_back(engine, at_least=2)
    async with engine.connect() as connection:
        locked = await connection.execute(text("select id from job where locked_by is not null"))
        # The run may still be going on: its lock is left to expire.
        assert locked.scalars().all() == [lock.id]


async def given_back(engine: AsyncEngine, *, at_least: int) -> bool:
    statement = text("select count(*) from job where sleep_until <= now() and attempts = 0 and locked_by is null")
    async with engine.connect() as connection:
        return int((await connection.execute(statement)).scalar_one()) >= at_least


async def test_a_scheduler_outlives_its_database(tmp_path: Path) -> None:
    errors: list[SchedulerError] = []
    ran: list[Job] = []
    begun, finish = asyncio.Event(), asyncio.Event()

    async def do(job: Job) -> None:
        ran.append(job)
        begun.set()
        await finish.wait()

    async def tell(error: SchedulerError) -> None:
        errors.append(error)

    async with EmbeddedPostgres(tmp_path / "postgres", mode=Mode.FAST) as server:
        engine = create_async_engine(async_url(server.url()))
        await create_table(engine)
        config = Config(store=SqlStore(engine, "job"), on_document=do, on_error=tell, workers=2)
        async with Scheduler(config) as scheduler:
            await insert(engine)
            await begun.wait()
            await server.kill()
            # One worker looks for jobs, and the other has a result to write: both calls fail.
            finish.set()
            await eventually(lambda: {"lock_next", "update"} <= {getattr(error, "call", "") for error in errors})
            await server.start()
            await eventually(lambda: scheduler.is_idle, within=30)
            assert [job.attempts for job in ran] == [1]
            assert (await row(engine)).due_time is None
            await insert(engine)
            await eventually(lambda: len(ran) == 2 and scheduler.is_idle)
        assert {type(error) for error in errors} == {StoreFailed}
        await engine.dispose()


async def insert(engine: AsyncEngine) -> None:
    async with engine.begin() as connection:
        await connection.execute(text("insert into job (sleep_until) values (clock_timestamp())"))


async def killed_in_the_middle(engine: AsyncEngine) -> Lock:
    """Starts and kills a worker; returns the lock that it held."""
    process, lock = await begun(engine, "run", lock_seconds=2, grace=15)
    process.send_signal(signal.SIGKILL)
    await process.wait()
    return lock


async def begun(
    engine: AsyncEngine, form: str, *, lock_seconds: float, grace: float
) -> tuple[asyncio.subprocess.Process, Lock]:
    """Starts a worker process; returns it with the lock of the job that it runs."""
    url = engine.url.render_as_string(hide_password=False)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, WORKER, url, form, str(lock_seconds), str(grace)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(30):
            said = await process.stdout.readline()
        job_id, fence = said.split()
    except BaseException:
        process.kill()
        await process.wait()
        raise
    return process, Lock(int(job_id), int(fence))


async def row(engine: AsyncEngine) -> Row[Any]:
    async with engine.connect() as connection:
        return (await connection.execute(text("select * from job"))).one()
