"""`postflow-migrate`: what an operator runs before a new release."""

import asyncio
import os
import sys
from pathlib import Path

import asyncpg
import pytest

from servicekit.pg import migrations

PACKAGE = "queue_service.adapters.postgres.migrations"
NEWEST = migrations.newest(PACKAGE)


async def migrate(url: str, *arguments: str) -> tuple[int, str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("POSTFLOW_")}
    process = await asyncio.create_subprocess_exec(
        Path(sys.executable).with_name("postflow-migrate"),
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=inherited | {"POSTFLOW_QUEUE_DATABASE_URL": url},
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def test_an_empty_database_is_migrated_to_the_newest_revision_once(empty_database: str) -> None:
    assert await migrate(empty_database, "queue", "--check") == (3, f"queue: at nothing, {NEWEST} is pending\n", "")
    assert await migrate(empty_database, "queue") == (0, f"queue: from nothing to {NEWEST}\nqueue: at {NEWEST}\n", "")
    assert await migrate(empty_database, "queue") == (0, f"queue: at {NEWEST}\n", "")
    assert await migrate(empty_database, "queue", "--check") == (0, f"queue: at {NEWEST}, nothing is pending\n", "")
    assert await migrations.state(empty_database) == migrations.SchemaState(NEWEST, "queue")


async def test_it_stops_at_the_given_revision_and_never_goes_back(empty_database: str) -> None:
    said = "queue: from nothing to 0002\nqueue: at 0002\n"
    assert await migrate(empty_database, "queue", "--to", "0002") == (0, said, "")
    assert await migrate(empty_database, "queue", "--to", "0001") == (0, "queue: at 0002\n", "")
    code, _, error = await migrate(empty_database, "queue", "--to", "9999")
    assert (code, error) == (2, f"postflow-migrate: queue: there is no migration 9999; the newest is {NEWEST}\n")


async def test_two_at_once_take_turns(empty_database: str) -> None:
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(migrate(empty_database, "queue")) for _ in range(2)]
    assert [task.result()[0] for task in running] == [0, 0]
    assert (await migrations.state(empty_database)).revision == NEWEST


async def test_the_database_of_another_service_is_left_alone(empty_database: str) -> None:
    await migrate(empty_database, "queue")
    connection = await asyncpg.connect(empty_database)
    await connection.execute("comment on table alembic_version is 'drafts'")
    await connection.close()
    for arguments in ((), ("--check",)):
        code, out, error = await migrate(empty_database, "queue", *arguments)
        assert (code, out) == (2, "")
        assert error.endswith("this is the database of drafts, not of queue\n")


async def test_a_revision_that_does_not_exist_is_refused_by_the_check_too(empty_database: str) -> None:
    for arguments in ((), ("--check",)):
        code, out, error = await migrate(empty_database, "queue", "--to", "9999", *arguments)
        assert (code, out) == (2, "")
        assert "there is no migration 9999" in error


@pytest.mark.parametrize(
    ("url", "code", "error"),
    [
        ("", 2, "POSTFLOW_QUEUE_DATABASE_URL (or POSTFLOW_DATABASE_URL) is not set"),
        ("foo", 2, "POSTFLOW_QUEUE_DATABASE_URL: is not postgresql://user:password@host:port/database"),
        ("postgresql://u:geheim@127.0.0.1:1/d", 1, "POSTFLOW_QUEUE_DATABASE_URL: postgresql://u@127.0.0.1:1/d: "),
    ],
)
async def test_what_is_wrong_is_one_line_without_a_password(url: str, code: int, error: str) -> None:
    found, out, said = await migrate(url, "queue")
    assert (found, out, said.count("\n")) == (code, "", 1)
    assert said.startswith(f"postflow-migrate: queue: {error}")
    assert "geheim" not in said
