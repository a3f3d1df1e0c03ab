"""Wide holds cost no more because of other holds, or because they keep 20,000 posts."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from publisher_service.adapters.postgres.freeing import (
    Ended,
    ask_to_free,
    covered,
    end_release,
    free_lines,
    is_in_force,
    is_one_left,
    lock_held_back,
    lock_lines,
    lock_release,
    wake_lines,
)
from publisher_service.adapters.postgres.holds import is_one_over, list_holds, lock_over
from publisher_service.adapters.postgres.wide_holds import covering_hold, share_wide_holds, wide_in_flight
from publisher_service.domain.hold import Hold, HoldFilter, Scope
from publisher_service.domain.post_job import JobState
from servicekit.pg.database import Database
from testkit.databases import Databases
from testkit.plans import Explaining
from tests.unit.publisher_service.post_jobs import sending

ROWS = 20_000
BATCH = 50
NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
GROWING = {"post_job", "account_gate", "attempt", "hold", "social_account"}
BRAND = Ended("acme", Scope.BRAND, "bakery")
FREED = Ended("acme", Scope.ORGANIZATION, "")

FILL = (
    """
    insert into account_gate (organization_id, social_account_id, provider, connected, lined, frozen)
    select 'acme', 'b' || n, 'sandbox', true, true, case n % 2 when 0 then 'ORGANIZATION_ON_HOLD' else '' end
    from generate_series(1, :rows) n
    """,
    """
    insert into post_job (organization_id, id, draft_id, social_account_id, channel, destination, state, state_reason,
        version, run, slot_id, slot_revision, schedule_time, not_after, next_action_time, max_attempts, attempts, fence,
        content_revision, withdrawn_below, external_id, external_url, evidence_kind, error_reason, error_message,
        target_month, traceparent, create_time, update_time, brand_id, campaign_id)
    select 'acme', 'b' || n, 'b' || n, 'b' || n, 'facebook', '', 'BLOCKED',
        (array['ORGANIZATION_ON_HOLD', 'BRAND_ON_HOLD', 'CAMPAIGN_ON_HOLD'])[n % 3 + 1], 1, 1, 's', 1,
        cast(:now as timestamptz), :now, cast(:now as timestamptz), 5, 0, 1, 1, 0, '', '', '', '', '', '', '',
        cast(:now as timestamptz) + n * interval '1 second', :now, 'bakery', 'spring'
    from generate_series(1, :rows) n
    """,
    """
    insert into hold (organization_id, id, scope, scope_id, revision, reason, holder, in_force, create_time,
        update_time, end_time)
    select 'acme', 'h' || n, (array['ACCOUNT', 'BRAND', 'CAMPAIGN', 'PROVIDER'])[n % 4 + 1], 'x' || n, 1, '', '', true,
        cast(:now as timestamptz) + n * interval '1 second', :now, cast(:now as timestamptz) + n * interval '1 hour'
    from generate_series(1, :rows) n
    """,
    """
    insert into hold_release select 'org-' || n, 'BRAND', 'b', cast(:now as timestamptz) + n * interval '1 second'
    from generate_series(1, :rows) n
    """,
    """
    insert into open_claim
    select 'claim-' || g.n, cast(:now as timestamptz) + interval '1 hour', 1, array_agg(text 'acme'),
        array_agg('b' || m.n)
    from generate_series(1, 1) g (n), generate_series(1, 50) m (n) group by g.n
    """,
)


@pytest.fixture(scope="module", params=["never analyzed", "analyzed"])
async def full(databases: Databases, request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    url = await databases.migrated("publisher")
    database = Database(url, application="test", pool_size=1)
    async with database.transaction() as tx:
        for statement in FILL:
            used = {name: value for name, value in {"rows": ROWS, "now": NOW}.items() if f":{name}" in statement}
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
        yield Explaining(connection, growing=GROWING)


async def test_a_page_of_frozen_lines_reads_only_that_page(explaining: Explaining) -> None:
    connection: Any = explaining
    assert len(await free_lines(connection, FREED, rate=BATCH, most=BATCH, now=NOW)) == BATCH
    assert await is_one_left(connection, FREED)
    explaining.check(BATCH)


@pytest.mark.parametrize("ended", [BRAND, Ended("acme", Scope.CAMPAIGN, "spring")], ids=["brand", "campaign"])
async def test_a_page_of_posts_reads_only_that_page(explaining: Explaining, ended: Ended) -> None:
    connection: Any = explaining
    jobs = await lock_held_back(connection, ended, most=BATCH)
    lines = await lock_lines(connection, [job.account_key for job in jobs])
    assert (len(jobs), len(lines)) == (BATCH, BATCH)
    assert await covered(connection, "acme", Scope.BRAND, [f"x{number}" for number in range(BATCH)])
    await wake_lines(connection, "acme", {account: NOW for _, account in lines})
    assert await is_one_left(connection, ended)
    explaining.check(BATCH)


async def test_a_release_is_found_beside_many(explaining: Explaining) -> None:
    connection: Any = explaining
    release = await lock_release(connection, now=NOW + timedelta(seconds=1))
    assert release is not None
    assert not await is_in_force(connection, release.ended)
    await ask_to_free(connection, [release.ended], now=NOW)
    await end_release(connection, release.ended)
    explaining.check(1)


async def test_the_holds_of_a_post_are_looked_up(explaining: Explaining) -> None:
    connection: Any = explaining
    await share_wide_holds(connection)
    assert await covering_hold(connection, sending(JobState.SENDING), "sandbox") is None
    explaining.check(1)


async def test_what_a_freeze_lists_is_found_by_its_claims(explaining: Explaining) -> None:
    connection: Any = explaining
    for scope, scope_id in ((Scope.ORGANIZATION, ""), (Scope.BRAND, "bakery"), (Scope.PROVIDER, "sandbox")):
        hold = Hold(
            organization_id="acme",
            id="hold",
            scope=scope,
            scope_id=scope_id,
            revision=1,
            in_force=True,
            create_time=NOW,
            update_time=NOW,
        )
        assert await wide_in_flight(connection, hold, now=NOW, limit=BATCH) == ((), 0)
    explaining.check(BATCH)


@pytest.mark.parametrize(
    "wanted",
    [
        HoldFilter(organization_id="acme", scopes=(Scope.PROVIDER,)),
        HoldFilter(organization_id="acme", scopes=(Scope.BRAND, Scope.CAMPAIGN)),
        HoldFilter(organization_id="acme", scope_id="x5"),
        HoldFilter(organization_id="acme", social_account_id="x4"),
    ],
    ids=["scope", "scopes", "id", "account"],
)
async def test_a_page_of_any_filter_reads_only_that_page(explaining: Explaining, wanted: HoldFilter) -> None:
    connection: Any = explaining
    assert await list_holds(connection, wanted, after=None, limit=BATCH)
    explaining.check(BATCH)


async def test_a_hold_that_is_over_is_found_by_its_end(explaining: Explaining) -> None:
    connection: Any = explaining
    assert not await is_one_over(connection, now=NOW)
    assert await lock_over(connection, now=NOW + timedelta(hours=1))
    explaining.check(1)
