"""Preparations cost a post of a provider that prepares none nothing, and any other a few rows beside 20,000."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from publisher_service.adapters.postgres.claim import claim
from publisher_service.adapters.postgres.preparations import (
    ask_for,
    drop_preparations,
    handle_of,
    save_preparation,
    source_of,
    take_preparations,
    void_preparation,
)
from publisher_service.adapters.postgres.provider_quotas import resume_accounts
from publisher_service.domain.claim import Command, Lane, Verdict
from publisher_service.domain.post_job import Target, job_id
from servicekit.pg.database import Database
from testkit.databases import Databases
from testkit.plans import Explaining, nodes_of

ROWS = 20_000
NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
LEASE = timedelta(seconds=15)
LANES = [
    Lane(provider="sandbox", room=50, lease=LEASE),
    Lane(provider="sandbox-container", room=50, lease=LEASE, prepares=True),
]
TARGET = Target(social_account_id="page", channel="facebook")
JOB = job_id("acme", "d", TARGET)
FILL = (
    """
    insert into preparation (organization_id, post_job_id, social_account_id, provider, state, next_time)
    select 'acme', 'j' || n, 'page', 'sandbox-container', 'PENDING', cast(:now as timestamptz)
    from generate_series(1, :rows) n
    """,
    """
    insert into account_gate (organization_id, social_account_id, provider, connected, failures)
    select 'other', 'a' || n, 'sandbox', true, n % 5 from generate_series(1, :rows) n
    """,
    """
    insert into account_gate (organization_id, social_account_id, provider, connected)
    values ('acme', 'page', 'sandbox', true)
    """,
    """
    insert into social_account (organization_id, id, provider, external_account_id, display_name, channels, state,
        credentials, version, create_time, update_time)
    values ('acme', 'page', 'sandbox', 'e', '', '{facebook}', 'CONNECTED', '', 1, cast(:now as timestamptz), :now)
    """,
    """
    insert into content (organization_id, draft_id, version, revision, content, content_digest, approved,
        withdrawn_below, post_job_ids)
    values ('acme', 'd', 1, 1, '', '', true, 0, array[cast(:job as text)])
    """,
    """
    insert into post_job (organization_id, id, draft_id, social_account_id, channel, destination, state, state_reason,
        version, run, slot_id, slot_revision, max_attempts, attempts, fence, content_revision, withdrawn_below,
        external_id, external_url, evidence_kind, error_reason, error_message, target_month, traceparent, create_time,
        update_time)
    values ('acme', :job, 'd', 'page', 'facebook', '', 'SCHEDULED', '', 1, 1, 'slot', 1, 5, 0, 0, 0, 0, '', '', '', '',
        '', '', '', cast(:now as timestamptz), :now)
    """,
)


@pytest.fixture(scope="module", params=["never analyzed", "analyzed"])
async def full(databases: Databases, request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    url = await databases.migrated("publisher")
    database = Database(url, application="test", pool_size=1)
    async with database.transaction() as tx:
        for statement in FILL:
            names = {"rows": ROWS, "now": NOW, "job": JOB}
            used = {name: value for name, value in names.items() if f":{name}" in statement}
            await tx.connection.execute(text(statement), used)
    if request.param == "analyzed":
        async with database.statement() as connection:
            await connection.execute(text("vacuum analyze"))
    yield database
    await database.dispose()
    await databases.drop(url)


@pytest.fixture
async def explaining(full: Database) -> AsyncIterator[Explaining]:
    async with full.engine.connect() as connection:
        yield Explaining(connection, growing={"preparation", "account_gate"})


def looked_up(explaining: Explaining) -> int:
    """Returns how often the statements have looked at preparations."""
    nodes = [node for _, plan in explaining.read for node in nodes_of(plan)]
    return sum(node["Actual Loops"] for node in nodes if node.get("Relation Name") == "preparation")


@pytest.mark.parametrize(
    ("provider", "verdict", "looks"), [("sandbox", Verdict.CLAIMED, 0), ("sandbox-container", Verdict.MEDIA, 1)]
)
async def test_only_posts_of_a_provider_that_prepares_look_a_preparation_up(
    explaining: Explaining, provider: str, verdict: Verdict, looks: int
) -> None:
    session: Any = explaining
    await explaining._connection.execute(text("update social_account set provider = :provider"), {"provider": provider})
    command = Command(
        organization_id="acme",
        draft_id="d",
        target=TARGET,
        slot_id="slot",
        slot_revision=1,
        emission=1,
        schedule_time=NOW,
        not_after=NOW + timedelta(hours=1),
        content_revision=1,
        max_attempts=5,
        traceparent="",
    )
    judged = await claim(session, [command], LANES, now=NOW, sender="s")
    assert judged[0].verdict is verdict
    assert looked_up(explaining) == looks
    explaining.check(1)


async def test_a_preparation_is_taken_and_kept_by_its_key(explaining: Explaining) -> None:
    connection: Any = explaining
    taken = await take_preparations(connection, "sandbox-container", after="", now=NOW, lease_end=NOW + LEASE, limit=8)
    assert len(taken) == 1
    assert await save_preparation(connection, taken[0])
    await void_preparation(connection, taken[0].job_key, now=NOW)
    assert await handle_of(connection, taken[0].job_key) == ""
    await ask_for(connection, [("acme", JOB)], now=NOW)
    explaining.check(1)


async def test_what_is_to_be_prepared_is_read_by_key(explaining: Explaining) -> None:
    connection: Any = explaining
    await ask_for(connection, [("acme", JOB)], now=NOW)
    async with explaining._connection.begin_nested():
        row = await take_preparations(
            explaining._connection, "sandbox", after="", now=NOW, lease_end=NOW + LEASE, limit=1
        )
    assert row
    assert (await source_of(connection, row[0])).is_wanted
    explaining.check(1)


async def test_old_preparations_are_found_by_their_age(explaining: Explaining) -> None:
    connection: Any = explaining
    for change in (
        "update post_job set state = 'MISSED' where id = :job",
        """
        insert into preparation (organization_id, post_job_id, social_account_id, provider, state)
        values ('acme', :job, 'page', 'sandbox-container', 'PENDING')
        """,
    ):
        await explaining._connection.execute(text(change), {"job": JOB})
    assert await drop_preparations(connection, before=NOW, limit=10) == 1
    explaining.check(1)


async def test_pauses_are_ended_in_pages(explaining: Explaining) -> None:
    connection: Any = explaining
    pause = text("update account_gate set resume_time = :later where failures >= 3")
    await explaining._connection.execute(pause, {"later": NOW + timedelta(hours=1)})
    assert await resume_accounts(connection, "sandbox", now=NOW, within=LEASE, limit=50) == 50
    explaining.check(50)
