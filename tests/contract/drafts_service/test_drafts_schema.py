"""The migrations create the tables that the code declares, and their constraints refuse inconsistent rows."""

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from drafts_service.adapters.postgres.tables import metadata
from drafts_service.main import MIGRATIONS
from servicekit.pg import migrations
from servicekit.pg.database import Database
from servicekit.pg.migrations.alembic_run import drift
from servicekit.pg.session import Statement

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


async def test_a_batch_that_moves_neighbours_writes_few_index_entries(database: Database) -> None:
    """Drafts that were made together are published together: the page has room for new versions of its rows."""
    # As PostgreSQL stores a draft: content and targets of about 700 bytes.
    columns = _SOUND | {"id": "'draft-' || n", "content": "convert_to(repeat(md5(n::text), 20), 'UTF8')"}
    jobs = """
        insert into post_job (organization_id, draft_id, id, version, social_account_id, channel, destination, state,
            external_url, error_message)
        select 'org', 'draft-' || n, 'job-' || md5(n::text), 1, 'account', 'facebook', '', 'SCHEDULED', '', ''
        from generate_series(1, 500) as n
    """
    drafts = f"""
        insert into draft ({", ".join(columns)}) select {", ".join(columns.values())} from generate_series(1, 500) as n
    """  # noqa: S608
    hot = "select pg_stat_get_xact_tuples_hot_updated(cast(:name as regclass)) / 500.0"
    async with database.transaction() as tx:
        for statement in (drafts, jobs):
            await tx.execute(Statement(statement))
    async with database.transaction() as tx:
        await tx.execute(Statement("update draft set state = 'FAILED', publish_time = null"))
        await tx.execute(Statement("update post_job set state = 'FAILED', version = 2"))
        assert await tx.fetch_value(Statement(hot), {"name": "draft"}) > 0.6
        assert await tx.fetch_value(Statement(hot), {"name": "post_job"}) > 0.95


async def _insert(database: Database, row: dict[str, str]) -> None:
    async with database.statement() as connection:
        await connection.execute(
            text(f"insert into draft ({', '.join(row)}) values ({', '.join(row.values())})")  # noqa: S608
        )
