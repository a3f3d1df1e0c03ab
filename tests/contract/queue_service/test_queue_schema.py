"""Queue's tables: the migrations create what the code declares, and impossible rows are refused."""

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from queue_service.adapters.postgres.tables import metadata
from queue_service.domain.listing import list_states
from queue_service.domain.slot import SlotState
from queue_service.main import MIGRATIONS
from servicekit.pg import migrations
from servicekit.pg.database import Database
from servicekit.pg.migrations.alembic_run import drift
from servicekit.pg.session import Statement

SLOT = {
    "id": "'s1'",
    "draft_id": "'d1'",
    "schedule_time": "'2026-03-02 09:00Z'",
    "state": "'SCHEDULED'",
    "revision": "1",
    "next_emit_at": "null",
    "not_after": "'2026-03-03 09:00Z'",
    "time_zone": "'UTC'",
    "local_date": "'2026-03-02'",
    "expected_time": "null",
    "publish_time": "null",
    "origin": "'QUEUE'",
    "nominal_local_time": "'2026-03-02 09:00'",
}
INSERT_SLOT = """
    insert into slot values ('acme', {id}, {draft_id}, 'page', {schedule_time}, {state}, {origin}, {revision}, 0,
        {next_emit_at}, {not_after}, {time_zone}, {local_date}, '09:00', {expected_time}, {publish_time}, 1, '',
        '2026-03-01', '2026-03-01', {nominal_local_time}, '2026a')
"""
INSERT_ACCOUNT = "insert into account_queue values ('acme', 'page', {})"


GENERATED = text("""
    select pg_get_expr(d.adbin, d.adrelid) from pg_attrdef d
    join pg_attribute a on a.attrelid = d.adrelid and a.attnum = d.adnum
    where d.adrelid = 'slot'::regclass and a.attname = 'list_state'
""")


async def insert(database: Database, **changes: str) -> None:
    async with database.statement() as connection:
        await connection.execute(text(INSERT_SLOT.format_map(SLOT | changes)))


async def test_the_migrations_create_what_the_code_declares(empty_database: str) -> None:
    await migrations.upgrade(empty_database, MIGRATIONS)
    assert not await migrations.pending(empty_database, MIGRATIONS)
    assert await drift(empty_database, metadata) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"state": "'LOST'"},
        {"state": "'DISPATCHED'"},
        {"state": "'FAILED'", "next_emit_at": "'2026-03-02 09:00Z'"},
        {"state": "'PUBLISHED'"},
        {"state": "'FAILED'", "expected_time": "'2026-03-02 09:05Z'"},
        {"not_after": "'2026-03-02 08:59Z'"},
        {"revision": "0"},
        {"time_zone": "''"},
        {"local_date": "null"},
        {"origin": "'EXACT'"},
    ],
)
async def test_the_database_refuses_an_impossible_slot(database: Database, changes: dict[str, str]) -> None:
    with pytest.raises(IntegrityError):
        await insert(database, **changes)


async def test_an_account_has_one_live_slot_at_an_instant(database: Database) -> None:
    await insert(database)
    with pytest.raises(IntegrityError, match="slot_live_time"):
        await insert(database, id="'s2'", draft_id="'d2'")
    await insert(database, id="'s3'", draft_id="'d3'", state="'FAILED'")


async def test_a_draft_has_one_live_slot_on_an_account(database: Database) -> None:
    await insert(database)
    with pytest.raises(IntegrityError, match="slot_live_draft"):
        await insert(database, id="'s2'", schedule_time="'2026-03-02 10:00Z'")
    await insert(database, id="'s3'", schedule_time="'2026-03-02 10:00Z'", state="'CANCELED'")


@pytest.mark.parametrize(
    "values",
    [
        "1, '', 0, true, '2026-03-01', '2026-03-01', '2026-03-01'",
        "0, 'UTC', 0, true, '2026-03-01', '2026-03-01', '2026-03-01'",
        "1, 'UTC', -1, true, '2026-03-01', '2026-03-01', '2026-03-01'",
        "1, 'UTC', 0, true, '2026-03-02', '2026-03-01', '2026-03-02'",
        "1, 'UTC', 0, true, '2026-03-01', '2026-03-02', '2026-03-01'",
    ],
)
async def test_the_database_refuses_an_impossible_account(database: Database, values: str) -> None:
    with pytest.raises(IntegrityError):
        async with database.statement() as connection:
            await connection.execute(text(INSERT_ACCOUNT.format(values)))


async def test_a_batch_of_reports_writes_no_entry_of_slot_target(database: Database) -> None:
    """Targets that were added together end together: the page has room for new versions of all its rows."""
    slots = """
        insert into slot (organization_id, id, draft_id, social_account_id, schedule_time, state, origin, revision,
            emission, not_after, time_zone, content_revision, traceparent, create_time, update_time)
        select 'acme', md5(n::text), n, n, '2026-03-02 09:00Z', 'SCHEDULED', 'EXACT', 1, 0, '2026-03-03 09:00Z', '', 1,
            '', '2026-03-01', '2026-03-01'
        from generate_series(1, 500) as n
    """
    targets = """
        insert into slot_target (organization_id, slot_id, channel, destination, post_job_id, job_version, external_url,
            error_message)
        select organization_id, id, 'facebook', '', '', 0, '', '' from slot
    """
    reported = """
        update slot_target set job_state = 'PUBLISHED', job_version = 2, publish_time = '2026-03-02 09:00Z',
            post_job_id = md5(slot_id), external_url = 'https://provider.example/posts/' || md5(slot_id)
    """
    hot = "select pg_stat_get_xact_tuples_hot_updated(cast('slot_target' as regclass))"
    async with database.transaction() as tx:
        await tx.execute(Statement(slots))
        await tx.execute(Statement(targets))
    async with database.transaction() as tx:
        await tx.execute(Statement(reported))
        assert await tx.fetch_value(Statement(hot)) == 500


@pytest.mark.parametrize("state", SlotState)
async def test_a_slot_is_indexed_under_the_state_by_which_lists_ask(database: Database, state: SlotState) -> None:
    """The column is generated by PostgreSQL, and what it is compared with is made by Python."""
    async with database.statement() as connection:
        expression = (await connection.execute(GENERATED)).scalar_one()
        query = text(f"select {expression} from (select cast(:state as text) as state) as slot")  # noqa: S608 - PostgreSQL's own text
        assert [(await connection.execute(query, {"state": state.value})).scalar_one()] == list_states([state])
