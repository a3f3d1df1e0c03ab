"""The migrations create the tables that the code declares, and their constraints refuse inconsistent rows."""

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from drafts_service.adapters.postgres.tables import metadata
from drafts_service.main import MIGRATIONS
from servicekit.pg import migrations
from servicekit.pg.database import Database
from servicekit.pg.migrations.alembic_run import drift

_SOUND = {
    "organization_id": "'org'",
    "id": "'draft'",
    "content": "''",
    "content_digest": "'digest'",
    "targets": """'[["a", "facebook", ""]]'""",
    "revision": "1",
    "version": "2",
    "edit_version": "2",
    "approved_digest": "'digest'",
    "approve_time": "now()",
    "approver": "''",
    "withdraw_below": "1",
    "withdraw_due_time": "now()",
    "state": "'PUBLISHED'",
    "publish_time": "now()",
    "create_time": "now()",
    "update_time": "now()",
}


async def test_the_migrations_create_the_declared_tables(empty_database: str) -> None:
    await migrations.upgrade(empty_database, MIGRATIONS)
    assert not await migrations.pending(empty_database, MIGRATIONS)
    assert await drift(empty_database, metadata) == []


@pytest.mark.parametrize(
    "nonsense",
    [
        {"approved_digest": "'another'"},
        {"approver": "null"},
        {"approved_digest": "null"},
        {"withdraw_due_time": "null"},
        {"withdraw_below": "3"},
        {"version": "0"},
        {"edit_version": "0"},
        {"targets": "'[]'"},
        {"targets": "'{}'"},
        {"state": "'PENDING'"},
        {"state": "'SCHEDULED'"},
    ],
    ids=str,
)
async def test_the_database_refuses_inconsistent_rows(database: Database, nonsense: dict[str, str]) -> None:
    with pytest.raises(IntegrityError):
        await _insert(database, _SOUND | nonsense)
    await _insert(database, _SOUND)


async def _insert(database: Database, row: dict[str, str]) -> None:
    async with database.statement() as connection:
        await connection.execute(
            text(f"insert into draft ({', '.join(row)}) values ({', '.join(row.values())})")  # noqa: S608
        )
