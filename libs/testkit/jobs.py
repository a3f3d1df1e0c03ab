"""Jobs of jobkit under test: in memory or in a table, at a frozen time, with a scheduler whose calls are recorded."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

import jobkit
from jobkit.changes import Enqueued, JobEdit, NewJob, OnConflict
from jobkit.config import Config
from jobkit.errors import SchedulerError
from jobkit.job import Job, JobId, JobUpdate, Lock, Misfire
from jobkit.scheduler import Scheduler
from jobkit.store import JobTable
from jobkit.stores.memory import MemoryStore
from jobkit.stores.sql import SqlStore
from testkit.clocks import START, FrozenClock
from testkit.eventually import eventually

COLUMNS = [field.name for field in fields(Job) if field.name not in {"flaw", "definition", "is_rescheduled"}]


async def create_table(engine: AsyncEngine) -> None:
    """Creates the table as jobkit's README defines it."""
    readme = Path(jobkit.__file__).with_name("README.md").read_text()
    (table,) = re.findall(r"```sql\n(create table job .*?)```", readme, re.DOTALL)
    async with engine.begin() as connection:
        for statement in table.split(";")[:-1]:
            await connection.execute(text(statement))


def once(number: int = 1, due: datetime = START, *, auto_remove: bool = False, misfire: str = Misfire.FIRE_ONCE) -> Job:
    return Job(id=number, due_time=due, sleep_until=due, auto_remove=auto_remove, misfire=misfire)


def hourly(
    due: datetime = START,
    *,
    misfire: str = Misfire.FIRE_ONCE,
    repeat_until: datetime | None = None,
    auto_remove: bool = False,
) -> Job:
    return Job(
        id=1,
        due_time=due,
        sleep_until=due,
        interval="0 * * * *",
        misfire=misfire,
        repeat_until=repeat_until,
        auto_remove=auto_remove,
    )


async def fail(job: Job) -> None:
    """Fails, as a handler."""
    raise RuntimeError("no")


class Jobs(Protocol):
    """A store, and the changes that programs make to its rows without the scheduler."""

    clock: FrozenClock
    store: JobTable

    def store_of(self, group: str) -> JobTable:
        """Returns a store of the jobs whose data names the group."""
        ...

    async def add(self, *jobs: Job) -> None: ...

    async def read(self, job_id: JobId) -> Job | None: ...

    async def edit(self, job_id: JobId, **changes: Any) -> None: ...


class MemoryJobs:
    def __init__(self, clock: FrozenClock) -> None:
        self.clock = clock
        self._group = ""
        self.memory = MemoryStore(now=clock.now, condition=self._is_meant)
        self.store: JobTable = self.memory

    def _is_meant(self, job: Job) -> bool:
        return self._group in {"", job.data.get("group")}

    def store_of(self, group: str) -> JobTable:
        self._group = group
        return self.store

    async def add(self, *jobs: Job) -> None:
        for job in jobs:
            self.memory.add(job)

    async def read(self, job_id: JobId) -> Job | None:
        return self.memory.get(job_id)

    async def edit(self, job_id: JobId, **changes: Any) -> None:
        self.memory.edit(job_id, **changes)


class SqlJobs:
    def __init__(self, clock: FrozenClock, engine: AsyncEngine) -> None:
        self.clock = clock
        self.engine = engine
        self.store: JobTable = SqlStore(engine, "job", clock=self.frozen)

    async def frozen(self, connection: AsyncConnection) -> datetime:
        return self.clock.now()

    def store_of(self, group: str) -> JobTable:
        return SqlStore(
            self.engine, "job", condition="data->>'group' = :group", parameters={"group": group}, clock=self.frozen
        )

    async def add(self, *jobs: Job) -> None:
        values = ", ".join(f"cast(:{name} as jsonb)" if name == "data" else f":{name}" for name in COLUMNS)
        rows = [{name: getattr(job, name) for name in COLUMNS} | {"data": json.dumps(job.data)} for job in jobs]
        async with self.engine.begin() as connection:
            await connection.execute(text(f"insert into job ({', '.join(COLUMNS)}) values ({values})"), rows)  # noqa: S608

    async def read(self, job_id: JobId) -> Job | None:
        statement = text(f"select {', '.join(COLUMNS)} from job where id = :id")  # noqa: S608
        async with self.engine.connect() as connection:
            row = (await connection.execute(statement, {"id": job_id})).one_or_none()
        if row is None:
            return None
        return Job(**row._asdict())

    async def edit(self, job_id: JobId, **changes: Any) -> None:
        written = ", ".join(f"{name} = :{name}" for name in changes)
        async with self.engine.begin() as connection:
            await connection.execute(
                text(f"update job set {written}, fence = fence + 1 where id = :id"),  # noqa: S608
                changes | {"id": job_id},
            )


class Watched:
    """A store that counts its calls; those in `failing` fail, those in `gates` wait for their event."""

    def __init__(self, store: JobTable) -> None:
        self._store = store
        self.calls: Counter[str] = Counter()
        self.limits: list[int] = []
        self.failing: set[str] = set()
        self.gates: dict[str, asyncio.Event] = {}

    async def now(self) -> datetime:
        await self._called("now")
        return await self._store.now()

    async def lock_next(self, now: datetime, lock_until: datetime, limit: int) -> list[Job]:
        self.limits.append(limit)
        await self._called("lock_next")
        return await self._store.lock_next(now, lock_until, limit)

    async def update(self, changes: Sequence[tuple[Lock, JobUpdate]]) -> frozenset[Lock]:
        await self._called("update")
        return await self._store.update(changes)

    async def remove(self, locks: Sequence[Lock]) -> frozenset[Lock]:
        await self._called("remove")
        return await self._store.remove(locks)

    async def extend(self, locks: Sequence[Lock], lock_until: datetime) -> frozenset[Lock]:
        await self._called("extend")
        return await self._store.extend(locks, lock_until)

    async def next_due(self) -> datetime | None:
        await self._called("next_due")
        return await self._store.next_due()

    async def held(self, locks: Sequence[Lock]) -> list[Job]:
        await self._called("held")
        return await self._store.held(locks)

    async def enqueue(self, new: NewJob, *, on_conflict: OnConflict = OnConflict.REFUSE) -> Enqueued:
        await self._called("enqueue")
        return await self._store.enqueue(new, on_conflict=on_conflict)

    async def edit_job(self, job_id: JobId, edit: JobEdit) -> Job:
        await self._called("edit_job")
        return await self._store.edit_job(job_id, edit)

    async def _called(self, call: str) -> None:
        self.calls[call] += 1
        if call in self.gates:
            await self.gates[call].wait()
        if call in self.failing:
            raise ConnectionError(f"{call}: the store is unreachable")


class Scene:
    """A scheduler on a watched store, at a frozen time; `ran` and `errors` record its runs and reports."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs
        self.clock = jobs.clock
        self.store = Watched(jobs.store)
        self.ran: list[Job] = []
        self.errors: list[SchedulerError] = []

    async def do(self, job: Job) -> None:
        self.ran.append(job)

    async def report(self, error: SchedulerError) -> None:
        self.errors.append(error)

    def scheduler(self, **settings: Any) -> Scheduler:
        """Makes a scheduler whose jitter is always the full back-off."""
        if "on_batch" not in settings:
            settings.setdefault("on_document", self.do)
        plain: dict[str, Any] = {
            "store": self.store,
            "on_error": self.report,
            "monotonic": self.clock.monotonic,
            "draw": lambda: 1.0,
        }
        return Scheduler(Config(**(plain | settings)))

    async def until_idle(self, **settings: Any) -> None:
        async with self.scheduler(**settings) as scheduler:
            await eventually(lambda: scheduler.is_idle)

    async def job(self, job_id: JobId = 1) -> Job:
        found = await self.jobs.read(job_id)
        assert found is not None
        return found
