"""The table of timers refuses invalid rows."""

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from servicekit.pg.database import Database

_SOUND = {
    "organization_id": "'acme'",
    "id": "'t'",
    "topic": "'test'",
    "payload": "''",
    "fire_time": "null",
    "cron": "'@daily'",
    "time_zone": "'UTC'",
    "dst_policy": "'CRON'",
    "repeat_until": "null",
    "misfire_policy": "'SKIP'",
    "catch_up_interval": "'1 second'",
    "skip_after": "'1 minute'",
    "auto_remove": "false",
    "paused": "false",
    "due_time": "now()",
    "sleep_until": "now()",
    "fence": "0",
    "attempts": "0",
    "fire_count": "0",
    "last_occurrence_key": "''",
    "finish_time": "null",
    "tzdata_version": "'2026f'",
    "traceparent": "''",
    "version": "1",
    "create_time": "now()",
    "update_time": "now()",
}


async def insert(database: Database, **changes: str) -> None:
    row = _SOUND | changes
    async with database.statement() as connection:
        await connection.execute(
            text(f"insert into timer ({', '.join(row)}) values ({', '.join(row.values())})")  # noqa: S608 - constants
        )


@pytest.mark.parametrize(
    "changes",
    [
        {"fire_time": "now()"},
        {"cron": "''"},
        {"cron": "''", "fire_time": "now()", "repeat_until": "now()"},
        {"due_time": "null", "sleep_until": "null"},
        {"finish_time": "now()", "sleep_until": "null"},
        {"due_time": "null", "finish_time": "now()"},
        {"paused": "true"},
        {"dst_policy": "'TWICE'"},
        {"misfire_policy": "''"},
        {"catch_up_interval": "'-1 second'"},
        {"catch_up_interval": "'25 hours'"},
        {"skip_after": "'0'"},
        {"skip_after": "'25 hours'"},
        {"payload": "convert_to(repeat('x', 65537), 'UTF8')"},
        {"version": "0"},
    ],
)
async def test_the_database_refuses_invalid_rows(database: Database, changes: dict[str, str]) -> None:
    with pytest.raises(IntegrityError):
        await insert(database, **changes)
    await insert(database)


async def test_the_database_accepts_valid_rows(database: Database) -> None:
    await insert(database, cron="''", fire_time="now()")
    await insert(database, id="'paused'", paused="true", sleep_until="null")
    await insert(database, id="'finished'", due_time="null", sleep_until="null", finish_time="now()")
    # The row is left alone until it is repaired.
    await insert(database, id="'unreadable'", sleep_until="null")
    with pytest.raises(IntegrityError):
        await insert(database)
