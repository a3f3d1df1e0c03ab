"""Holds cost no more because of other holds, or because an account has 20,000 posts."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import text

from publisher_service.adapters.postgres.gates import line_up
from publisher_service.adapters.postgres.holds import (
    hold_epoch,
    in_flight_jobs,
    list_holds,
    lock_gate,
    lock_hold,
    raise_hold_epoch,
    save_hold,
    set_held,
)
from publisher_service.adapters.postgres.relabeling import Relabeled, end_relabeling, lock_mislabeled_jobs
from publisher_service.adapters.postgres.wide_holds import covering_hold
from publisher_service.domain.hold import HoldFilter, Scope, WantedHold, put
from publisher_service.domain.outcome import NotBegun
from publisher_service.domain.policy import Policy
from publisher_service.domain.post_job import JobState, Reason
from publisher_service.domain.settlement import settle
from servicekit.pg.database import Database
from testkit.databases import Databases
from testkit.plans import Explaining
from tests.unit.publisher_service.post_jobs import sending

ROWS = 20_000
BATCH = 50
NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
GROWING = {"post_job", "account_gate", "attempt", "hold"}

FILL = (
    """
    insert into account_gate (organization_id, social_account_id, provider, connected, lined, held)
    select 'acme', 'b' || n, 'sandbox', true, true, n % 2 = 0 from generate_series(1, :rows) n
    """,
    "insert into account_gate values ('acme', 'page', true, 'b7')",
    # One account has all posts, most of them in its line; another one has some of unknown outcome.
    """
    insert into post_job (organization_id, id, draft_id, social_account_id, channel, destination, state, state_reason,
        version, run, slot_id, slot_revision, schedule_time, not_after, next_action_time, max_attempts, attempts, fence,
        content_revision, withdrawn_below, external_id, external_url, evidence_kind, error_reason, error_message,
        target_month, traceparent, create_time, update_time, in_doubt)
    select 'acme', 'b' || n, 'b' || n, case when n % 40 = 0 then 'doubtful' else 'page' end, 'facebook', '',
        s.state, s.reason, 1, 1, 's', 1, cast(:now as timestamptz), :now,
        case when s.state <> 'SCHEDULED' then cast(:now as timestamptz) end, 5, 0, 1, 1, 0, '', '', '', '', '', '', '',
        cast(:now as timestamptz) + n * interval '1 second', :now, n % 40 = 0
    from generate_series(1, :rows) n, lateral (
        select case when n % 40 = 0 then 'UNKNOWN' when n % 4 = 1 then 'SCHEDULED' else 'BLOCKED' end as state,
            case when n % 40 = 0 or n % 4 = 1 then '' else 'ACCOUNT_ON_HOLD' end as reason
    ) s
    """,
    """
    insert into account_gate (organization_id, social_account_id, connected, resume_time)
    values ('acme', 'paused', true, cast(:now as timestamptz) + interval '1 second')
    """,
    """
    insert into post_job (organization_id, id, draft_id, social_account_id, channel, destination, state, state_reason,
        version, run, slot_id, slot_revision, schedule_time, not_after, max_attempts, attempts, fence,
        content_revision, withdrawn_below, external_id, external_url, evidence_kind, error_reason, error_message,
        target_month, traceparent, create_time, update_time, publish_time)
    values ('acme', 'out', 'out', 'paused', 'facebook', '', 'PUBLISHED', '', 1, 1, 's', 1, :now, :now, 5, 2, 2, 1, 0,
        '1', '', 'PROVIDER_ID', '', '', '', '', :now, :now, :now)
    """,
    # The attempts of all posts, and the claims of some: those of the others have ended.
    """
    insert into attempt (organization_id, post_job_id, run, number, fence, state, idempotency_key, content_revision,
        content_digest, start_time, external_id, error_reason, error_message, sender)
    select organization_id, id, 1, attempts, fence, 'ABANDONED', '', 1, '', :now, '', '', '', 'sender' from post_job
    """,
    """
    insert into open_claim
    select 'claim-' || g.n, cast(:now as timestamptz) + g.n * interval '1 second', 1,
        array_agg(text 'acme'), array_agg(case m.n when 1 then 'out' else 'b' || m.n end)
    from generate_series(-20, 1) g (n), generate_series(1, 50) m (n) group by g.n
    """,
    """
    insert into hold select 'acme', 'h' || n, 'ACCOUNT', 'b' || n, 1, '', '', n % 2 = 0,
        cast(:now as timestamptz) + n * interval '1 second', :now
    from generate_series(1, :rows) n
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


async def test_a_hold_reads_and_writes_one_row_of_each_table(explaining: Explaining) -> None:
    connection: Any = explaining
    wanted = WantedHold(
        organization_id="acme", id="h7", scope=Scope.ACCOUNT, scope_id="b7", revision=0, reason="", holder=""
    )
    hold = put(await lock_hold(connection, ("acme", "h7"), now=NOW), wanted, now=NOW)
    await lock_gate(connection, ("acme", "b7"))
    await save_hold(connection, hold)
    await set_held(connection, ("acme", "b7"), now=NOW)
    await raise_hold_epoch(connection)
    await hold_epoch(connection)
    assert await covering_hold(connection, sending(JobState.SENDING), "sandbox") is None
    explaining.check(1)


async def test_what_is_in_flight_is_found_beside_a_long_line(explaining: Explaining) -> None:
    connection: Any = explaining
    assert await in_flight_jobs(connection, ("acme", "page"), now=NOW) == []
    explaining.check(1)


async def test_what_is_in_doubt_is_all_that_is_read(explaining: Explaining) -> None:
    connection: Any = explaining
    assert len(await in_flight_jobs(connection, ("acme", "doubtful"), now=NOW)) == ROWS // 40
    explaining.check(ROWS // 40)


async def test_a_later_attempt_of_what_is_out_is_found_in_its_claim(explaining: Explaining) -> None:
    """Reads posts only for an account whose line is paused, and only those of open claims."""
    connection: Any = explaining
    assert await in_flight_jobs(connection, ("acme", "paused"), now=NOW) == ["out"]
    explaining.check(BATCH)


@pytest.mark.parametrize("after", [None, (NOW, "h")], ids=["first page", "next page"])
async def test_a_page_of_holds_reads_only_that_page(explaining: Explaining, after: tuple[datetime, str] | None) -> None:
    connection: Any = explaining
    assert len(await list_holds(connection, HoldFilter(organization_id="acme"), after=after, limit=BATCH)) == BATCH
    explaining.check(BATCH)


async def test_the_holds_of_an_account_are_found_by_index(explaining: Explaining) -> None:
    connection: Any = explaining
    wanted = HoldFilter(organization_id="acme", social_account_id="b8")
    assert len(await list_holds(connection, wanted, after=None, limit=BATCH)) == 1
    explaining.check(1)


async def test_a_released_line_is_relabeled_in_pages(explaining: Explaining) -> None:
    connection: Any = explaining
    page = Relabeled(organization_id="acme", account_id="page", connected=True)
    assert len(await lock_mislabeled_jobs(connection, page, limit=BATCH)) == BATCH
    assert not await end_relabeling(connection, page)
    explaining.check(BATCH)


async def test_a_held_line_that_shows_it_is_not_read(explaining: Explaining) -> None:
    connection: Any = explaining
    page = Relabeled(organization_id="acme", account_id="page", connected=True, held=True)
    assert await lock_mislabeled_jobs(connection, page, limit=BATCH) == []
    await end_relabeling(connection, page)
    explaining.check(1)


async def test_a_post_that_was_not_sent_looks_up_its_gate(explaining: Explaining) -> None:
    connection: Any = explaining
    refused = NotBegun(reason=Reason.ACCOUNT_ON_HOLD, message="")
    settled = settle(sending(JobState.SENDING), refused, policy=Policy(), now=NOW, draw=0.5)
    await line_up(connection, [settled], now=NOW)
    explaining.check(1)
