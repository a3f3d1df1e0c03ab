"""Schedule's tables: made by the migrations, as the code declares them, and closed to nonsense."""

from collections.abc import Awaitable, Callable

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from schedule_service.adapters.postgres.tables import metadata
from schedule_service.main import MIGRATIONS
from servicekit.pg import migrations
from servicekit.pg.database import Database
from servicekit.pg.migrations.alembic_run import drift

_INSERT = """
    insert into account_schedule (organization_id, social_account_id, name, time_zone, weekly_slots, max_posts_per_day,
        enabled, version, create_time, update_time)
    values ('acme', 'page', '', 'UTC', {slots}, {cap}, true, {version}, now(), now())
"""


async def test_the_migrations_make_what_the_code_declares(empty_database: str) -> None:
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
    ],
)
async def test_the_database_refuses_nonsense(
    service_database: Callable[[str], Awaitable[str]], row: dict[str, str]
) -> None:
    database = Database(await service_database("schedule"), application="test", pool_size=1)
    sound = {"slots": "array[0, 10079]", "cap": "0", "version": "1"}
    with pytest.raises(IntegrityError):
        async with database.read() as connection:
            await connection.execute(text(_INSERT.format_map(sound | row)))
    async with database.read() as connection:
        await connection.execute(text(_INSERT.format_map(sound)))
    await database.dispose()
