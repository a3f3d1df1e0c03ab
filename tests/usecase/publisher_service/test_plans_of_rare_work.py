"""The search for rare work reads one row of each table, however many there are that are not due."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from publisher_service.adapters.postgres.rare_work import find_work
from publisher_service.domain.rare_work import Work
from servicekit.pg.database import Database
from testkit.databases import Databases
from testkit.plans import Explaining

ROWS = 20_000
NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
LATER = timedelta(days=1)
GROWING = {"account_gate", "credential", "destination", "hold", "hold_release", "notification_line", "parked_line"} | {
    "follow_up_due",
    "preparation",
}
# Nothing of this is due, nor to be done.
FILL = (
    """
    insert into account_gate (organization_id, social_account_id, provider, connected)
    select 'acme', 'a' || n, 'sandbox', true from generate_series(1, :rows) n
    """,
    """
    insert into destination (organization_id, social_account_id, channel, destination, state, state_reason, failures,
        error_message, version)
    select 'acme', 'bot', 'facebook', n, 'ACTIVE', '', 0, '', 1 from generate_series(1, :rows) n
    """,
    """
    insert into hold (organization_id, id, scope, scope_id, revision, reason, holder, in_force, create_time,
        update_time, end_time)
    select 'acme', 'h' || n, 'ACCOUNT', 'a' || n, 1, '', '', true, cast(:now as timestamptz), :now, :later
    from generate_series(1, :rows) n
    """,
    "insert into hold_release select 'org-' || n, 'BRAND', 'b', :later from generate_series(1, :rows) n",
    "insert into parked_line select 'acme', 'a' || n, 'action:POST', :later from generate_series(1, :rows) n",
    """
    insert into preparation (organization_id, post_job_id, social_account_id, provider, state, next_time)
    select 'acme', 'j' || n, 'a' || n, 'sandbox-container', 'PENDING', :later from generate_series(1, :rows) n
    """,
    """
    insert into notification_line (organization_id, receiver, next_time, slow)
    select 'org-' || n, receiver, :later, n % 2 = 0
    from generate_series(1, :rows / 2) n, unnest(array['', 'w']) as receiver
    """,
    "insert into follow_up_due select 'acme', 'j' || n, :later from generate_series(1, :rows) n",
    "insert into provider_quota values ('sandbox', :now)",
    """
    insert into credential (organization_id, social_account_id, provider, generation, scopes, is_refreshable, next_time,
        number, failures, error, is_refused, is_urgent, is_forced, is_warned, sealed_digest)
    select 'acme', 'a' || n, 'sandbox', 1, '{}', true, cast(:later as timestamptz), 0, 0, '', false, false, false,
        false, ''
    from generate_series(1, :rows) n
    """,
)
DUE = {
    Work.RELABEL_LINES: "update account_gate set relabel = true where social_account_id = 'a7'",
    Work.RELEASE_DESTINATIONS: "update destination set releasing = true where destination = '7'",
    Work.WAKE_PARKED: "update parked_line set wake_time = :now where social_account_id = 'a7'",
    Work.END_HOLDS: "update hold set end_time = :now where id = 'h7'",
    Work.FREE_POSTS: "update hold_release set next_time = :now where organization_id = 'org-7'",
    Work.FOLLOW_QUOTAS: "update provider_quota set closed_until = :later",
    Work.PREPARE_POSTS: "update preparation set next_time = :now where post_job_id = 'j7'",
    Work.REFRESH_CREDENTIALS: "update credential set next_time = :now where social_account_id = 'a7'",
    Work.FOLLOW_UPS: "update follow_up_due set next_time = :now where post_job_id = 'j7'",
    Work.RECONCILE: """
        insert into safe_mode (number, reason, step, enter_time, active) values (1, 'MARK_AHEAD', 'EVENTS', :now, true)
    """,
    Work.SEND_MAILS: """
        update notification_line set next_time = :now where organization_id = 'org-7' and receiver = ''
    """,
    Work.CALL_WEBHOOKS: """
        update notification_line set next_time = :now where organization_id = 'org-8' and receiver = 'w'
    """,
}


def used(statement: str) -> dict[str, object]:
    names = {"rows": ROWS, "now": NOW, "later": NOW + LATER}
    return {name: value for name, value in names.items() if f":{name}" in statement}


@pytest.fixture(scope="module", params=["never analyzed", "analyzed"])
async def full(databases: Databases, request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    url = await databases.migrated("publisher")
    database = Database(url, application="test", pool_size=1)
    async with database.transaction() as tx:
        for statement in FILL:
            await tx.connection.execute(text(statement), used(statement))
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


async def test_work_that_is_not_due_is_neither_found_nor_read(explaining: Explaining) -> None:
    session: Any = explaining
    assert await find_work(session, now=NOW - timedelta(seconds=1)) == {Work.FOLLOW_QUOTAS}
    explaining.check(1)


@pytest.mark.parametrize("work", Work)
async def test_each_work_is_found_by_one_row(explaining: Explaining, work: Work) -> None:
    session: Any = explaining
    await explaining._connection.execute(text(DUE[work]), used(DUE[work]))
    assert await find_work(session, now=NOW) == {work}
    explaining.check(1)
