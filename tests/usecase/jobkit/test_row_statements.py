"""Rows that programs insert and edit in their own transactions, and tables of any shape."""

import os
import uuid
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from jobkit.changes import JobEdit, NewJob, OnConflict
from jobkit.job import JobUpdate
from jobkit.store import NoSuchJob
from jobkit.stores.columns import SqlColumns
from jobkit.stores.sql import SqlStore
from testkit.clocks import START, FrozenClock
from testkit.jobs import SqlJobs

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


async def rows(engine: AsyncEngine, statement: str) -> Any:
    async with engine.begin() as connection:
        result = await connection.execute(text(statement))
        return [tuple(row) for row in result] if result.returns_rows else []


@pytest.fixture
def store(engine: AsyncEngine) -> SqlStore:
    return SqlStore(engine, "job", clock=SqlJobs(FrozenClock(), engine).frozen)


async def test_a_job_appears_when_the_callers_transaction_commits(engine: AsyncEngine, store: SqlStore) -> None:
    async with engine.connect() as connection:
        await store.enqueue(NewJob(id=1), connection=connection)
        assert await rows(engine, "select id from job") == []
        await connection.rollback()
    assert await rows(engine, "select id from job") == []
    async with engine.begin() as connection:
        (job_id, _) = await store.enqueue(NewJob(data={"to": "ada"}), connection=connection)
        await store.edit_job(job_id, JobEdit(due_time=START + HOUR), connection=connection)
    assert await rows(engine, "select id, sleep_until, data from job") == [(job_id, START + HOUR, {"to": "ada"})]


async def test_generated_numbers_that_are_taken_are_skipped(store: SqlStore) -> None:
    for number in (1, 2, 4):
        await store.enqueue(NewJob(id=number))
    assert [(await store.enqueue(NewJob())).id for _ in range(2)] == [3, 5]


async def test_an_edit_is_rolled_back_with_the_callers_transaction(engine: AsyncEngine, store: SqlStore) -> None:
    await store.enqueue(NewJob(id=1))
    async with engine.connect() as connection:
        await store.edit_job(1, JobEdit(paused=True), connection=connection)
        await connection.rollback()
    assert await store.next_due() == START


async def test_a_locked_row_differs_from_a_waiting_one(engine: AsyncEngine, store: SqlStore) -> None:
    await store.enqueue(NewJob(id=1))
    await store.enqueue(NewJob(id=2, due_time=START + MINUTE))
    owners = "select id, locked_by from job order by id"
    (job,) = await store.lock_next(START, START + MINUTE, 1)
    ((_, owner), (_, nobody)) = await rows(engine, owners)
    assert owner.endswith(f":{os.getpid()}")
    assert nobody is None
    await store.extend([job.lock], START + 2 * MINUTE)
    assert (await rows(engine, owners))[0] == (1, owner)
    again = JobUpdate(due_time=START, sleep_until=START + MINUTE, attempts=1, last_error="no")
    await store.update([(job.lock, again)])
    assert await rows(engine, owners) == [(1, None), (2, None)]
    other = SqlStore(engine, "job", owner="worker 7")
    await other.lock_next(START + MINUTE, START + HOUR, 9)
    assert await rows(engine, owners) == [(1, "worker 7"), (2, "worker 7")]
    await store.edit_job(1, JobEdit(paused=True))
    assert await rows(engine, owners) == [(1, None), (2, "worker 7")]


async def test_a_row_records_when_its_job_ended(engine: AsyncEngine, store: SqlStore) -> None:
    finish_time = "select finish_time from job"
    await store.enqueue(NewJob(id=1, interval="@hourly"))
    await store.edit_job(1, JobEdit(repeat_until=START + MINUTE))
    assert await rows(engine, finish_time) == [(START,)]
    await store.edit_job(1, JobEdit(end_run=True))
    assert await rows(engine, finish_time) == [(START,)]
    await store.edit_job(1, JobEdit(repeat_until=None))
    assert await rows(engine, finish_time) == [(None,)]


async def test_a_table_refuses_values_of_columns_that_it_lacks(engine: AsyncEngine) -> None:
    await rows(
        engine,
        "create table small (id text primary key, sleep_until timestamptz, due_time timestamptz,"
        " fence bigint not null default 0, interval text)",
    )
    small = SqlStore(engine, "small", columns=SqlColumns.minimal(), clock=SqlJobs(FrozenClock(), engine).frozen)
    assert (await small.enqueue(NewJob(id="a", interval="@hourly"))).is_new
    assert (await small.enqueue(NewJob(id="a", interval="@daily"), on_conflict=OnConflict.EDIT)).is_new is False
    assert await rows(engine, "select id, interval, due_time from small") == [
        ("a", "@daily", START.replace(hour=0) + 24 * HOUR)
    ]
    with pytest.raises(ValueError, match="no column for auto_remove"):
        await small.enqueue(NewJob(id="b", auto_remove=True))
    with pytest.raises(ValueError, match="no column for time_zone"):
        await small.edit_job("a", JobEdit(time_zone="Europe/Berlin"))
    with pytest.raises(ValueError, match="no data column named to"):
        await small.edit_job("a", JobEdit(data={"to": "ada"}))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("text", "it's"),
        ("bytea", b"\x00\xff"),
        ("uuid", uuid.UUID(int=7)),
        ("numeric", Decimal("1.5")),
        ("bigint", 2**40),
        ("jsonb", {"deep": [1]}),
        ("interval", MINUTE),
        ("timestamptz", START),
    ],
)
async def test_data_columns_may_have_any_type(engine: AsyncEngine, kind: str, value: object) -> None:
    await rows(
        engine,
        f"create table wide (id uuid primary key default uuidv7(), sleep_until timestamptz, due_time timestamptz,"
        f' fence bigint not null default 0, "the \\:value" {kind}, topic text not null)',
    )
    columns = SqlColumns.minimal(interval=None, data=("the :value", "topic"))
    wide = SqlStore(engine, "wide", columns=columns)
    job_id, _ = await wide.enqueue(NewJob(data={"the :value": value, "topic": "a"}))
    assert await rows(engine, 'select "the \\:value", topic from wide') == [(value, "a")]
    assert isinstance(job_id, uuid.UUID)
    await wide.edit_job(job_id, JobEdit(data={"topic": "b"}))
    assert await rows(engine, 'select "the \\:value", topic from wide') == [(value, "b")]


async def test_a_row_with_nulls_and_infinity_can_be_edited(engine: AsyncEngine, store: SqlStore) -> None:
    await rows(
        engine,
        "alter table job alter column fence drop not null, alter column attempts drop not null",
    )
    await rows(
        engine,
        "insert into job (id, due_time, sleep_until, interval, fence, attempts) overriding system value"
        " values (1, '2027-01-01 00:00Z', 'infinity', '@hourly', null, null)",
    )
    assert (await store.edit_job(1, JobEdit(interval="@daily"))).fence == 1
    with pytest.raises(NoSuchJob):
        await store.edit_job(2, JobEdit())
