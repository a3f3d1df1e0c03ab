"""Taking credentials that are due, recording what came of it, and connecting accounts read a few rows beside 20,000."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from publisher_service.adapters.postgres.accounts import (
    connected_elsewhere,
    get_account,
    is_connected_with,
    is_known_to_another,
    list_accounts,
)
from publisher_service.adapters.postgres.connect_sessions import delete_sessions, drop_sessions
from publisher_service.adapters.postgres.credentials import (
    count_expiring,
    drop_refreshes,
    lock_credentials,
    save_refreshed,
    take_due,
    was_asked_before,
)
from publisher_service.domain.account import AccountFilter, Connection
from publisher_service.domain.credentials import Credentials
from servicekit.pg.database import Database
from testkit.databases import Databases
from testkit.plans import Explaining

ROWS = 20_000
NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
LATER = timedelta(days=1)
GROWING = {"account_gate", "connect_session", "credential", "credential_refresh", "social_account"}
FILL = (
    """
    insert into social_account (organization_id, id, provider, external_account_id, display_name, channels, state,
        credentials, version, create_time, update_time)
    select 'org-' || n % 100, 'a' || n, 'sandbox', 'e' || n, '', '{facebook}', 'CONNECTED', '', 1,
        cast(:now as timestamptz), :now
    from generate_series(1, :rows) n
    """,
    """
    insert into account_gate (organization_id, social_account_id, provider, connected)
    select organization_id, id, provider, true from social_account
    """,
    """
    insert into credential (organization_id, social_account_id, provider, generation, scopes, is_refreshable, next_time,
        refresh_time, number, failures, error, is_refused, is_urgent, is_forced, is_warned, sealed_digest)
    select organization_id, id, provider, 1, '{}', true, cast(:later as timestamptz), :later, 1, 0, '', false, false,
        false, false, ''
    from social_account
    """,
    """
    insert into credential_refresh (organization_id, social_account_id, number, generation, state, process, begin_time,
        error)
    select organization_id, id, 1, 1, 'DONE', '', :now, '' from social_account
    """,
    """
    insert into connect_session (organization_id, state_digest, state, provider, redirect_uri, social_account_id,
        display_name, channels, settings, expire_time, sealed)
    select organization_id, sha256(convert_to(id, 'UTF8')), 'STARTED', provider, '', id, '', '{}', '{}', :later, ''
    from social_account
    """,
)


@pytest.fixture(scope="module", params=["never analyzed", "analyzed"])
async def full(databases: Databases, request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    url = await databases.migrated("publisher")
    database = Database(url, application="test", pool_size=1)
    async with database.transaction() as tx:
        for statement in FILL:
            names = {"rows": ROWS, "now": NOW, "later": NOW + LATER}
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
        yield Explaining(connection, growing=GROWING)


async def test_taking_what_is_due_walks_organizations_and_not_accounts(explaining: Explaining) -> None:
    connection: Any = explaining
    await explaining._connection.execute(
        text(
            "update credential set next_time = :now, refresh_time = :now"
            " where social_account_id in ('a7', 'a8', 'a107')"
        ),
        {"now": NOW},
    )
    page = await take_due(connection, "sandbox", after="", now=NOW, lease_end=NOW + LATER, limit=16)
    assert {each.account_id for each in page.taken} == {"a7", "a8", "a107"}
    # 100 organizations.
    explaining.check(100)


async def test_a_refresh_is_recorded_by_key(explaining: Explaining) -> None:
    connection: Any = explaining
    await explaining._connection.execute(
        text("update credential set next_time = :now, refresh_time = :now where social_account_id = 'a7'"), {"now": NOW}
    )
    (due,) = (await take_due(connection, "sandbox", after="", now=NOW, lease_end=NOW + LATER, limit=16)).taken
    explaining.read.clear()
    locked = await lock_credentials(connection, due.key)
    assert locked is not None
    await save_refreshed(connection, due, locked.state, sealed=b"new", replaced=b"old", now=NOW)
    await was_asked_before(connection, due)
    explaining.check(1)


async def test_accounts_are_read_with_what_is_known_of_their_credentials(explaining: Explaining) -> None:
    connection: Any = explaining
    account = await get_account(connection, "org-7", "a7")
    assert account is not None
    assert account.credentials is not None
    explaining.check(1)
    found = await list_accounts(connection, AccountFilter(organization_id="org-7"), after="", limit=5)
    assert len(found) == 5
    explaining.check(5)


async def test_whether_an_account_is_connected_already_is_found_by_its_name(explaining: Explaining) -> None:
    connection: Any = explaining
    account = await get_account(explaining._connection, "org-7", "a7")
    assert account is not None
    assert await connected_elsewhere(connection, replace(account, id="a8")) == "a7"
    assert not await is_known_to_another(connection, _connection("org-7", "e7"))
    assert await is_known_to_another(connection, _connection("org-8", "e7"))
    explaining.check(1)


def _connection(organization_id: str, external_account_id: str) -> Connection:
    return Connection(
        organization_id=organization_id,
        account_id="",
        provider="sandbox",
        external_account_id=external_account_id,
        display_name="",
        channels=(),
        credentials=Credentials(access_token=""),
    )


async def test_the_last_look_before_a_request_reads_one_account(explaining: Explaining) -> None:
    session: Any = explaining
    assert await is_connected_with(session, ("org-7", "a7"), b"")
    assert not await is_connected_with(session, ("org-7", "a7"), b"other")
    explaining.check(1)


async def test_housekeeping_reads_what_it_drops(explaining: Explaining) -> None:
    connection: Any = explaining
    assert await drop_refreshes(connection, before=NOW, limit=10) == 0
    assert await drop_sessions(connection, before=NOW, limit=10) == 0
    await delete_sessions(connection, ("org-7", "a7"))
    assert await count_expiring(connection, most=10) == 0
    explaining.check(1)
