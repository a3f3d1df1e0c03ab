"""Measures the floor: jobs claimed and acknowledged in bare SQL, with none of PostFlow's promises."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import asyncpg

from benchmarks.usage import cpu_seconds
from devstack.servers.postgres import EmbeddedPostgres
from servicekit.clock import SystemClock

_ROUNDS = 3
"""Before a measurement, and after it."""
_BATCH = 500
_CLAIM = """
    update floor_job set state = 1 where id = any(array(
        select id from floor_job where due_time <= $1 and state = 0 order by due_time limit $2 for update skip locked
    )) and state = 0 returning id
"""
_ACKNOWLEDGE = "update floor_job set state = 2 where id = any($1::bigint[])"


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    per_second: float
    cpu: float
    """Microseconds of one job."""


async def rounds(postgres: EmbeddedPostgres, jobs: int) -> list[Floor]:
    return [await _round(postgres, jobs) for _ in range(_ROUNDS)]


def middle(measured: Sequence[Floor]) -> Floor:
    """Returns the median: a machine changes its speed within minutes, and single rounds are disturbed."""
    return Floor(per_second=median(each.per_second for each in measured), cpu=median(each.cpu for each in measured))


async def _round(postgres: EmbeddedPostgres, jobs: int) -> Floor:
    url = await postgres.create_database("benchmark_floor")
    connections = [await asyncpg.connect(url) for _ in range(2)]
    await connections[0].execute("create table floor_job (id bigint primary key, due_time timestamptz, state int)")
    await connections[0].execute("create index on floor_job (due_time) where state = 0")
    await connections[0].execute(
        "insert into floor_job select n, now() - interval '1 minute', 0 from generate_series(1, $1::int) n", jobs
    )
    await connections[0].execute("vacuum analyze floor_job")
    cpu, started = _cpu(postgres), time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for connection in connections:
            group.create_task(_drain(connection))
    elapsed, used = time.perf_counter() - started, _cpu(postgres) - cpu
    for connection in connections:
        await connection.close()
    await postgres.drop_database("benchmark_floor")
    return Floor(per_second=jobs / elapsed, cpu=used / jobs * 1e6)


async def _drain(connection: "asyncpg.Connection") -> None:
    now = SystemClock().now()
    while rows := await connection.fetch(_CLAIM, now, _BATCH):
        await connection.execute(_ACKNOWLEDGE, [row["id"] for row in rows])


def _cpu(postgres: EmbeddedPostgres) -> float:
    return cpu_seconds(postgres.pid) + time.process_time()
