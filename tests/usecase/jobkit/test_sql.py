"""Tables of any shape: other names, other types, few columns; and rows that transactions have locked."""

import asyncio
import uuid
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from jobkit.changes import NewJob
from jobkit.config import Config
from jobkit.errors import InvalidJob, JobFailed, OccurrenceSkipped, SchedulerError, StoreFailed
from jobkit.job import Done, Job, JobUpdate, Lock, Misfire, Outcome
from jobkit.scheduler import Scheduler
from jobkit.stores.columns import SqlColumns
from jobkit.stores.sql import SqlStore
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from testkit.clocks import START, FrozenClock
from testkit.eventually import eventually
from testkit.jobs import Scene, SqlJobs, Watched, create_table

LOCK_END = START + timedelta(minutes=10)
LOCK_STEP = timedelta(seconds=1)
FINISHED = JobUpdate(due_time=None, sleep_until=None, attempts=0, last_error=None, finish_time=START)


async def run(engine: AsyncEngine, *statements: str, **values: object) -> Any:
    """Runs the statements and returns the rows of the last one."""
    rows: Any = None
    async with engine.begin() as connection:
        for statement in statements:
            result = await connection.execute(text(statement), values)
            rows = result.all() if result.returns_rows else None
    return rows


@pytest.mark.parametrize(
    ("kind", "ids"),
    [
        ("bigint", [1, 2]),
        ("integer", [1, 2]),
        ("text", ["a", "b'; drop table odd"]),
        ("varchar(3)", ["abc", "xyz"]),
        ("uuid", [uuid.UUID(int=1), uuid.UUID(int=2)]),
        ("char(3)", ["abc", "xyz"]),
        ("numeric", [Decimal("1.5"), Decimal(2)]),
        ("bytea", [b"\x00", b"\xff"]),
    ],
)
async def test_ids_may_have_any_type(engine: AsyncEngine, kind: str, ids: list[Any]) -> None:
    await run(
        engine,
        f"create table odd (id {kind} primary key, sleep_until timestamptz, due_time timestamptz,"
        " fence bigint not null default 0, interval text)",
    )
    for number, row_id in enumerate(ids):
        await run(
            engine, "insert into odd (id, sleep_until) values (:id, :at)", id=row_id, at=START + number * LOCK_STEP
        )
    store = SqlStore(engine, "odd", columns=SqlColumns.minimal())
    found = await store.lock_next(LOCK_END, LOCK_END + LOCK_STEP, 10)
    assert [(job.id, job.attempts, job.interval, job.due_time) for job in found] == [
        (row_id, None, "", START + number * LOCK_STEP) for number, row_id in enumerate(ids)
    ]
    locks = [job.lock for job in found]
    assert await store.extend(locks, LOCK_END + 2 * LOCK_STEP) == set(locks)
    assert await store.update([(locks[0], FINISHED)]) == {locks[0]}
    assert await store.remove([locks[1]]) == {locks[1]}
    assert await run(engine, "select id, sleep_until, due_time from odd") == [(ids[0], None, None)]


async def test_columns_may_have_any_name_and_the_table_a_schema(engine: AsyncEngine) -> None:
    await run(
        engine,
        'create schema "The Jobs"',
        'create table "The Jobs"."order" ("Key" uuid primary key default uuidv7(), "wake \\:at" timestamptz,'
        ' "select" timestamptz, "a ""fence" bigint not null default 0, tries integer not null default 0, "user" text,'
        " payload bytea, topic text, done_at timestamptz)",
        'insert into "The Jobs"."order" ("wake \\:at", payload, topic)'
        " values ('2026-03-02 08:00Z', '\\x00ff', 'a')",
    )
    columns = SqlColumns(
        id="Key",
        sleep_until="wake :at",
        due_time="select",
        fence='a "fence',
        attempts="tries",
        interval=None,
        time_zone=None,
        dst=None,
        repeat_until=None,
        misfire=None,
        misfire_after=None,
        pace=None,
        auto_remove=None,
        last_error="user",
        finish_time="done_at",
        locked_by=None,
        data=("topic", "payload"),
    )
    store = SqlStore(
        engine,
        "order",
        schema="The Jobs",
        columns=columns,
        condition='topic = any(:topics) and "order"."wake \\:at" is not null',
        parameters={"topics": ["a", "b"]},
    )
    (job,) = await store.lock_next(START, LOCK_END, 10)
    assert job.data == {"topic": "a", "payload": b"\x00\xff"}
    assert await store.next_due() == LOCK_END
    assert await store.update([(job.lock, FINISHED)]) == {job.lock}
    assert await run(engine, 'select tries, "user", done_at from "The Jobs"."order"') == [(0, None, START)]


@pytest.mark.parametrize(
    ("stored", "read"),
    [("null", {}), ("'{\"a\": 1}'", {"a": 1}), ("'[1, 2]'", {"data": [1, 2]}), ("'\"text\"'", {"data": "text"})],
    ids=["nothing", "object", "list", "string"],
)
async def test_json_that_is_no_object_is_read_under_its_columns_name(
    engine: AsyncEngine, stored: str, read: object
) -> None:
    await run(
        engine,
        "alter table job alter column data drop not null",
        f"insert into job (sleep_until, data) values ('2026-03-02 09:00Z', {stored})",  # noqa: S608
    )
    (job,) = await SqlStore(engine, "job").lock_next(START, LOCK_END, 1)
    assert job.data == read


async def test_a_minimal_table_runs_jobs_without_retries(engine: AsyncEngine) -> None:
    await run(
        engine,
        "create table small (id integer primary key, sleep_until timestamptz, due_time timestamptz,"
        ' fence bigint not null default 0, "interval" text)',
        "insert into small (id, sleep_until, interval) values (1, '2026-03-02 09:00Z', null),"
        " (2, '2026-03-02 09:00Z', '@hourly')",
    )
    clock = FrozenClock()

    async def now(connection: AsyncConnection) -> datetime:
        return clock.now()

    async def fail(job: Job) -> None:
        raise RuntimeError("no")

    store = SqlStore(engine, "small", columns=SqlColumns.minimal(), clock=now)
    async with Scheduler(Config(store=store, on_document=fail, batch=10)) as scheduler:
        await eventually(lambda: scheduler.is_idle)
    assert await run(engine, "select due_time, sleep_until from small order by id") == [
        (None, None),
        (START + timedelta(hours=1),) * 2,
    ]


async def test_a_missing_table_or_column_is_refused_by_name(engine: AsyncEngine) -> None:
    with pytest.raises(LookupError, match='there is no table "nowhere"'):
        await SqlStore(engine, "nowhere").lock_next(START, LOCK_END, 1)
    with pytest.raises(LookupError, match="has no column attempted, paces"):
        await SqlStore(engine, "job", columns=SqlColumns(attempts="attempted", pace="paces")).lock_next(
            START, LOCK_END, 1
        )


@pytest.mark.parametrize("part", ["sleep_until", "due_time", "repeat_until"])
@pytest.mark.parametrize("kind", ["timestamp", "date"])
async def test_a_column_of_naive_times_is_refused_by_name(engine: AsyncEngine, part: str, kind: str) -> None:
    await run(engine, f"alter table job alter column {part} type {kind}")
    with pytest.raises(LookupError, match=f'{part} of "job" is a {kind}.*timestamptz'):
        await SqlStore(engine, "job").lock_next(START, LOCK_END, 10)


FAR = ["'-infinity'", "'infinity'", "'0044-03-15 BC'", "'20000-01-01'"]
UNHOLDABLE = [
    *((column, value) for column in ("sleep_until", "due_time", "repeat_until") for value in FAR),
    *(
        (column, value)
        for column in ("misfire_after", "pace")
        for value in ("'infinity'", "'-infinity'", "'9000000 years'")
    ),
    *(("attempts", value) for value in ("2147483647", "null")),
    ("fence", "null"),
    *(("data", f"'{value}'") for value in (f'{{"n": {"1" * 5000}}}', "[" * 4000 + "]" * 4000)),
]


@pytest.mark.parametrize("policy", Misfire)
async def test_values_beyond_pythons_range_stop_no_job(engine: AsyncEngine, policy: Misfire) -> None:
    await run(
        engine,
        "alter table job alter column attempts drop not null, alter column fence drop not null",
        "insert into job (due_time, sleep_until, interval, misfire)"
        " select :now, :now, '@hourly', :policy from generate_series(1, :poisoned)",
        "insert into job (due_time, sleep_until) values (:now, :now)",
        now=START,
        policy=policy,
        poisoned=len(UNHOLDABLE),
    )
    async with engine.begin() as connection:
        for number, (column, value) in enumerate(UNHOLDABLE, start=1):
            await connection.exec_driver_sql(f"update job set {column} = {value} where id = {number}")  # noqa: S608
    scene = Scene(SqlJobs(FrozenClock(), engine))
    await scene.until_idle(batch=50)
    assert len(UNHOLDABLE) + 1 in {job.id for job in scene.ran}
    assert {type(error) for error in scene.errors} <= {InvalidJob, JobFailed, OccurrenceSkipped}
    unreadable = [error.job.id for error in scene.errors if isinstance(error, InvalidJob)]
    assert unreadable == [len(UNHOLDABLE) - 1, len(UNHOLDABLE)]
    await run(engine, "insert into job (id, sleep_until) overriding system value values (99, :now)", now=START)
    await scene.until_idle(batch=50)
    assert 99 in {job.id for job in scene.ran}


@pytest.mark.parametrize("column", ["attempts", "fence"])
async def test_nulls_read_as_the_default(engine: AsyncEngine, column: str) -> None:
    await run(
        engine,
        f"alter table job alter column {column} drop not null",
        f"insert into job (sleep_until, {column}) values (:now, null)",  # noqa: S608
        now=START,
    )
    store = SqlStore(engine, "job")
    (job,) = await store.lock_next(START, LOCK_END, 1)
    assert (job.attempts, job.fence) == (1, 1)
    assert await store.update([(job.lock, FINISHED)]) == {job.lock}


@pytest.mark.parametrize("name", ["", "a" * 64, "nul\0"])
def test_an_invalid_identifier_is_refused(engine: AsyncEngine, name: str) -> None:
    with pytest.raises(ValueError, match="not an identifier"):
        SqlStore(engine, name)
    with pytest.raises(ValueError, match="not an identifier"):
        SqlColumns(due_time=name)


def test_two_parts_of_a_job_cannot_share_a_column() -> None:
    with pytest.raises(ValueError, match="two parts of a job in one column"):
        SqlColumns(due_time="sleep_until")


def test_parameters_of_a_condition_may_not_clash(engine: AsyncEngine) -> None:
    with pytest.raises(ValueError, match="lock_until"):
        SqlStore(engine, "job", condition="a < :lock_until", parameters={"lock_until": 1})


async def test_locked_rows_are_skipped_without_a_busy_loop(engine: AsyncEngine) -> None:
    jobs = SqlJobs(FrozenClock(), engine)
    await jobs.add(*(Job(id=number, due_time=START, sleep_until=START) for number in (1, 2)))
    ran: list[Any] = []

    async def do(job: Job) -> None:
        ran.append(job.id)

    async with engine.connect() as holder:
        await holder.execute(text("select from job where id = 1 for update"))
        store = Watched(jobs.store)
        config = Config(store=store, on_document=do, idle_delay=timedelta(milliseconds=50))
        async with Scheduler(config) as scheduler:
            await eventually(lambda: ran == [2] and scheduler.is_idle)
            looks, since = store.calls["lock_next"], asyncio.get_running_loop().time()
            await eventually(lambda: store.calls["lock_next"] >= looks + 5)
            # The least that the pauses add up to; a busy loop takes a few milliseconds.
            assert asyncio.get_running_loop().time() - since >= 0.1
            await holder.rollback()
            await eventually(lambda: ran == [2, 1])


async def test_locked_rows_do_not_delay_others(engine: AsyncEngine) -> None:
    jobs = SqlJobs(FrozenClock(), engine)
    await jobs.add(*(Job(id=number, due_time=START, sleep_until=START) for number in (1, 2)))
    ran: list[Any] = []

    async def do(job: Job) -> None:
        ran.append(job.id)

    async with engine.connect() as holder:
        await holder.execute(text("select from job where id = 1 for update"))
        store = Watched(jobs.store)
        async with Scheduler(Config(store=store, on_document=do, idle_delay=timedelta(hours=1))) as scheduler:
            # If the pauses doubled each time, they would last for minutes.
            await eventually(lambda: store.calls["lock_next"] >= 20)
            await jobs.add(Job(id=3, due_time=START, sleep_until=START))
            await eventually(lambda: ran == [2, 3] and scheduler.is_idle)
            await holder.rollback()
            await eventually(lambda: ran == [2, 3, 1])


async def test_a_handler_can_hold_its_locks_in_its_own_transaction(engine: AsyncEngine) -> None:
    jobs = SqlJobs(FrozenClock(), engine)
    store = SqlStore(engine, "job", clock=jobs.frozen)
    await run(engine, "create table effect (job_id bigint)")
    await jobs.add(*(Job(id=number, due_time=START, sleep_until=START) for number in (1, 2)))

    async def act(due: Sequence[Job]) -> Sequence[Outcome]:
        await jobs.edit(1, sleep_until=None)
        async with engine.begin() as connection:
            held = await store.hold(connection, [job.lock for job in due])
            for job in due:
                if job.lock in held:
                    await connection.execute(text("insert into effect values (:id)"), {"id": job.id})
        return [Done() for _ in due]

    async with Scheduler(Config(store=store, on_batch=act, batch=10)) as scheduler:
        await eventually(lambda: scheduler.is_idle)
    assert await run(engine, "select job_id from effect") == [(2,)]


async def test_a_held_job_waits_for_the_transaction_that_holds_it(engine: AsyncEngine) -> None:
    jobs = SqlJobs(FrozenClock(), engine)
    store = SqlStore(engine, "job")
    await jobs.add(Job(id=1, due_time=START, sleep_until=START))
    (job,) = await store.lock_next(START, LOCK_END, 1)
    async with engine.begin() as connection:
        assert await store.hold(connection, [job.lock, Lock(1, 99)]) == {job.lock}
        assert await store.lock_next(LOCK_END, LOCK_END + LOCK_STEP, 1) == []
        async with asyncio.TaskGroup() as group:
            editing = group.create_task(jobs.edit(1, sleep_until=None))
            await asyncio.sleep(0)
            assert not editing.done()
            await connection.commit()


async def test_a_row_locked_by_a_transaction_does_not_block_extensions(engine: AsyncEngine) -> None:
    jobs = SqlJobs(FrozenClock(), engine)
    await jobs.add(*(Job(id=number, due_time=START, sleep_until=START) for number in (1, 2)))
    locks = [job.lock for job in await jobs.store.lock_next(START, LOCK_END, 2)]
    later = LOCK_END + LOCK_STEP
    async with engine.connect() as holder, asyncio.timeout(30):
        await holder.execute(text("update job set data = '{}' where id = 1"))
        assert await jobs.store.extend([*locks, Lock(1, 99)], later) == set(locks)
        assert await run(engine, "select id, sleep_until from job order by id") == [(1, LOCK_END), (2, later)]
        await holder.rollback()
    assert await jobs.store.extend(locks, later) == set(locks)
    assert await run(engine, "select id, sleep_until from job order by id") == [(1, later), (2, later)]


async def test_a_services_database_gives_the_connections(empty_database: str) -> None:
    database = Database(empty_database, application="test")
    await create_table(database.engine)

    @asynccontextmanager
    async def transactions() -> Any:
        async with database.transaction() as transaction:
            yield transaction.connection

    def as_connections() -> AbstractAsyncContextManager[AsyncConnection]:
        return transactions()

    for store in (
        SqlStore(database.engine, "job", clock=DatabaseClock().now),
        SqlStore(as_connections, "job", clock=DatabaseClock().now),
    ):
        await run(database.engine, "insert into job (sleep_until) values (now())")
        now = await store.now()
        (job,) = await store.lock_next(now, now + timedelta(minutes=1), 10)
        assert await store.next_due() == now + timedelta(minutes=1)
        assert await store.remove([job.lock]) == {job.lock}
    await database.dispose()


async def test_a_result_that_its_row_refuses_blocks_no_other(engine: AsyncEngine) -> None:
    errors: list[SchedulerError] = []

    async def do(job: Job) -> None:
        if job.id == 3:
            raise RuntimeError("no")

    async def tell(error: SchedulerError) -> None:
        errors.append(error)

    store = SqlStore(engine, "job")
    await run(engine, "alter table job add constraint flawless check (last_error is null)")
    await run(engine, "create table mail (job_id bigint references job)")
    for number in range(1, 21):
        await store.enqueue(NewJob(id=number, auto_remove=number % 2 == 0))
    await run(engine, "insert into mail values (4)")
    config = Config(store=store, on_document=do, on_error=tell, batch=20, grace=timedelta(0), draw=lambda: 0.0)
    async with Scheduler(config):

        async def others_are_settled() -> bool:
            unsettled = await run(engine, "select id from job where due_time is not null order by id")
            return [number for (number,) in unsettled] == [3, 4]

        await eventually(others_are_settled)
    assert {error.call for error in errors if isinstance(error, StoreFailed)} == {"update", "remove"}
