"""Measures how many empty jobs a second one worker of jobkit runs on PostgreSQL, one by one and in batches."""

import asyncio
import re
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import asyncpg
from sqlalchemy.ext.asyncio import create_async_engine

import jobkit
from benchmarks.result import Result
from devstack.servers.postgres import EmbeddedPostgres, Mode
from jobkit.config import Config
from jobkit.job import Done, Job, Outcome
from jobkit.scheduler import Scheduler
from jobkit.stores.sql import SqlStore

_BATCH = 100
_CLAIM = """
    update job set sleep_until = $1 where id = any(array(
        select id from job where sleep_until <= $2 order by sleep_until, id limit $3 for update skip locked
    )) returning id
"""
_FINISH = "update job set sleep_until = null, finish_time = $2 where id = any($1::bigint[])"


async def measure(count: int) -> list[Result]:
    with tempfile.TemporaryDirectory(prefix="postflow-bench-") as folder:
        async with EmbeddedPostgres(Path(folder) / "postgres", mode=Mode.DURABLE) as postgres:
            url = await postgres.create_database("benchmark_jobs")
            bare = await _rate(_bare(url), url, count)
            together = await _rate(drain(url, batch=_BATCH, together=True), url, count)
            one_by_one = await _rate(drain(url, batch=_BATCH, together=False), url, count)
            single = await _rate(drain(url, batch=1, together=False), url, count // 10)
    return [
        Result(name=f"jobs: bare SQL, batches of {_BATCH}", value=bare, unit="jobs/s"),
        _result(f"jobs: on_batch, batches of {_BATCH}", together, bare, "bare SQL"),
        _result(f"jobs: on_document, batches of {_BATCH}", one_by_one, together, "on_batch"),
        _result("jobs: on_document, one at a time", single, one_by_one, f"on_document, batches of {_BATCH}"),
    ]


async def drain(url: str, *, batch: int, together: bool) -> None:
    """Runs all jobs that are due."""
    idle = asyncio.Event()

    async def do(job: Job) -> None:
        pass

    async def do_all(jobs: Sequence[Job]) -> Sequence[Outcome]:
        return [Done()] * len(jobs)

    async def end() -> None:
        idle.set()

    engine = create_async_engine(url.replace("postgresql:", "postgresql+asyncpg:"))
    handler: dict[str, Any] = {"on_batch": do_all} if together else {"on_document": do}
    async with Scheduler(Config(store=SqlStore(engine, "job"), batch=batch, on_idle=end, **handler)):
        await idle.wait()
    await engine.dispose()


async def prepare(url: str, count: int) -> None:
    """Creates the table of jobkit's README, with so many due jobs."""
    readme = Path(jobkit.__file__).with_name("README.md").read_text()
    (table,) = re.findall(r"```sql\n(create table job .*?)```", readme, re.DOTALL)
    connection = await asyncpg.connect(url)
    await connection.execute(f"drop table if exists job; {table}")
    await connection.execute(
        "insert into job (due_time, sleep_until) select at, at from"
        " (select now() - n * interval '1 ms' as at from generate_series(1, $1::int) as n) as times",
        count,
    )
    await connection.execute("vacuum analyze job")
    await connection.close()


async def _rate(draining: Any, url: str, count: int) -> float:
    await prepare(url, count)
    began = time.perf_counter()
    await draining
    elapsed = time.perf_counter() - began
    connection = await asyncpg.connect(url)
    assert await connection.fetchval("select count(*) from job where sleep_until is not null") == 0
    await connection.close()
    return count / elapsed


async def _bare(url: str) -> None:
    connection = await asyncpg.connect(url)
    now = await connection.fetchval("select now()")
    lock_end = await connection.fetchval("select now() + interval '10 minutes'")
    while rows := await connection.fetch(_CLAIM, lock_end, now, _BATCH):
        await connection.execute(_FINISH, [row["id"] for row in rows], now)
    await connection.close()


def _result(name: str, value: float, baseline: float, note: str) -> Result:
    return Result(name=name, value=value, unit="jobs/s", baseline=baseline, note=note)
