"""Schedule's tables: created by the migrations as the code declares them, and closed to invalid rows."""

from datetime import timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from schedule_service.adapters.postgres.account_schedules import find_schedule
from schedule_service.adapters.postgres.tables import metadata
from schedule_service.main import MIGRATIONS
from servicekit.pg import migrations
from servicekit.pg.database import Database
from servicekit.pg.migrations.alembic_run import drift

_INSERT = """
    insert into account_schedule (organization_id, social_account_id, name, time_zone, weekly_slots, max_posts_per_day,
        enabled, version, create_time, update_time {columns})
    values ('acme', 'page', '', 'UTC', {slots}, {cap}, true, {version}, now(), now() {values})
"""
"""Inserts a row without the columns of 0002, as the release before it does."""


async def test_the_migrations_create_what_the_code_declares(empty_database: str) -> None:
    await migrations.upgrade(empty_database, MIGRATIONS)
    assert not await migrations.pending(empty_database, MIGRATIONS)
    assert await drift(empty_database, metadata) == []


@pytest.mark.parametrize(
    "row",
    [
        {"slots": "array[-1]"},
        {"slots": "array[0, 10080]"},
        {"cap": "-1"},
        {"version": "0"},
        {"columns": ", window_days", "values": ", array[7]"},
        {"columns": ", window_days", "values": ", array[-1, 2]"},
        {"columns": ", window_end", "values": ", 1441"},
        {"columns": ", window_start", "values": ", -1"},
        {"columns": ", window_start, window_end", "values": ", 600, 600"},
        {"columns": ", min_spacing", "values": ", '1 day 1 second'"},
        {"columns": ", min_spacing", "values": ", '-1 second'"},
    ],
)
async def test_the_database_refuses_invalid_rows(database: Database, row: dict[str, str]) -> None:
    sound = {"slots": "array[0, 10079]", "cap": "0", "version": "1", "columns": "", "values": ""}
    with pytest.raises(IntegrityError):
        async with database.statement() as connection:
            await connection.execute(text(_INSERT.format_map(sound | row)))
    async with database.statement() as connection:
        await connection.execute(text(_INSERT.format_map(sound)))


async def test_a_row_of_the_previous_release_has_no_window_and_no_spacing(database: Database) -> None:
    row = {"slots": "array[0]", "cap": "0", "version": "1", "columns": "", "values": ""}
    async with database.transaction() as tx:
        await tx.connection.execute(text(_INSERT.format_map(row)))
        schedule = await find_schedule(tx, "acme", "page")
    assert schedule is not None
    assert (schedule.timetable.send_window, schedule.timetable.min_spacing) == (None, timedelta())
    assert (schedule.tzdata_version, schedule.delete_time) == ("", None)
