"""A connection stores sealed credentials and opens the line of its account."""

import asyncio

import pytest
from sqlalchemy import text

from publisher_service.adapters.postgres.accounts import lock_account
from publisher_service.adapters.postgres.holds import lock_gate
from publisher_service.adapters.vault import key_id_of
from publisher_service.domain.account import AccountState
from servicekit.faults import Refused
from testkit.eventually import eventually
from tests.usecase.publisher_service.replica import Replica, a_command


async def test_a_connection_gives_blocked_posts_their_turn(replica: Replica) -> None:
    names = await replica.posts(2, account="page", connected=False)
    await replica.claim([a_command(name, "page") for name in names])
    assert await replica.states() == {"BLOCKED ACCOUNT_NOT_CONNECTED": 2}
    account = await replica.connect("page")
    assert (account.state, account.version) == (AccountState.CONNECTED, 1)
    (claimed,) = await replica.next_in_line()
    assert claimed.job.draft_id in names


async def test_credentials_are_stored_sealed_for_their_account(replica: Replica) -> None:
    await replica.connect("page", token="secret")
    (row,) = await replica.rows("select credentials from social_account")
    assert b"secret" not in row.credentials
    assert key_id_of(row.credentials) == "test"
    assert replica.vault.open(row.credentials, organization_id="acme", account_id="page").access_token == "secret"


async def test_a_repeated_call_replaces_nothing(replica: Replica) -> None:
    first = await replica.connect("page", request_id="r1")
    before = await replica.rows("select * from social_account")
    assert await replica.connect("page", request_id="r1") == first
    assert await replica.rows("select * from social_account") == before
    assert (await replica.connect("page")).version == 2


async def test_an_account_that_is_connected_again_keeps_its_name(replica: Replica) -> None:
    await replica.connect("page")
    await replica.write("update social_account set display_name = 'The page'")
    assert (await replica.connect("page", token="another")).display_name == "The page"


async def test_an_account_of_another_provider_is_not_taken_over(replica: Replica) -> None:
    await replica.connect("page")
    await replica.write("update social_account set provider = 'elsewhere'")
    with pytest.raises(Refused) as refused:
        await replica.connect("page")
    assert refused.value.reason == "PROVIDER_CHANGED"
    assert refused.value.metadata == {"social_account_id": "page", "provider": "elsewhere"}


async def test_a_connection_does_not_deadlock_with_a_settlement(replica: Replica) -> None:
    await replica.connect("page")
    waiting = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    async with asyncio.TaskGroup() as group, replica.database.transaction() as tx:
        # As a settlement does whose credentials were refused.
        await lock_gate(tx.connection, ("acme", "page"))
        connecting = group.create_task(replica.connect("page", token="another"))
        await eventually(lambda: replica.rows(waiting))
        await tx.connection.execute(text("set local lock_timeout = '100ms'"))
        assert await lock_account(tx.connection, "acme", "page") is not None
    assert (await connecting).version == 2
