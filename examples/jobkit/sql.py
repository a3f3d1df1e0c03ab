"""Runs jobs from a table that was not made for jobkit: other column names, a condition, a batch in one transaction.

`.venv/bin/python examples/jobkit/sql.py postgresql+asyncpg://user:password@host/database` creates a schema
`jobkit_example` there and drops it at the end. Without a URL it starts an embedded server in a temporary folder.
"""

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from devstack.servers.postgres import EmbeddedPostgres, Mode
from jobkit.config import Config
from jobkit.job import Done, Job, Outcome
from jobkit.occurrences import occurrence_key
from jobkit.scheduler import Scheduler
from jobkit.stores.columns import SqlColumns
from jobkit.stores.sql import SqlStore

SET_UP = """
    create schema jobkit_example;
    create table jobkit_example.reminder (
        number bigint generated always as identity primary key, tenant text not null, message text not null, cron text,
        remind_at timestamptz, occurrence timestamptz, fence bigint not null default 0
    );
    create index on jobkit_example.reminder (remind_at, number) where remind_at is not null;
    create table jobkit_example.sent (number bigint, key text, message text, primary key (number, key));
    insert into jobkit_example.reminder (tenant, message, cron, remind_at) values
        ('acme', 'stand up', '@every 1s', clock_timestamp()),
        ('acme', 'drink something', null, clock_timestamp() + interval '1 second'),
        ('another', 'none of our business', null, clock_timestamp())
"""
TEAR_DOWN = "drop schema jobkit_example cascade"
SEND = text("insert into jobkit_example.sent values (:number, :key, :message) on conflict do nothing")
REMINDER = SqlColumns.minimal(
    id="number", sleep_until="remind_at", due_time="occurrence", interval="cron", data=("tenant", "message")
)


class Reminders:
    def __init__(self, engine: AsyncEngine, enough: int) -> None:
        self.enough = asyncio.Event()
        self._missing = enough
        self._engine = engine
        self._store = SqlStore(
            engine,
            "reminder",
            schema="jobkit_example",
            columns=REMINDER,
            condition="tenant = :tenant",
            parameters={"tenant": "acme"},
        )

    def scheduler(self) -> Scheduler:
        return Scheduler(Config(store=self._store, on_batch=self._send, batch=100))

    async def _send(self, jobs: Sequence[Job]) -> Sequence[Outcome]:
        """Sends each reminder once: an occurrence that is run again has the same key."""
        async with self._engine.begin() as connection:
            held = await self._store.hold(connection, [job.lock for job in jobs])
            for job in jobs:
                if job.lock in held:
                    print(f"{job.data['message']}: {occurrence_key(job)}")
                    sent = {"number": job.id, "key": occurrence_key(job), "message": job.data["message"]}
                    await connection.execute(SEND, sent)
        self._missing -= len(held)
        if self._missing <= 0:
            self.enough.set()
        return [Done() for _ in jobs]


async def remind(url: str) -> None:
    engine = create_async_engine(url)
    await execute(engine, *SET_UP.split(";"))
    try:
        reminders = Reminders(engine, enough=4)
        async with reminders.scheduler(), asyncio.timeout(30):
            await reminders.enough.wait()
        print("done")
    finally:
        await execute(engine, TEAR_DOWN)
        await engine.dispose()


async def execute(engine: AsyncEngine, *statements: str) -> None:
    async with engine.begin() as connection:
        for statement in statements:
            await connection.execute(text(statement))


async def main(arguments: list[str]) -> None:
    async with AsyncExitStack() as stack:
        url = arguments[0] if arguments else await embedded_server(stack)
        await remind(url)


async def embedded_server(stack: AsyncExitStack) -> str:
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="jobkit-example-"))
    server = await stack.enter_async_context(EmbeddedPostgres(Path(folder) / "postgres", mode=Mode.FAST))
    return server.url().replace("postgresql:", "postgresql+asyncpg:")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
