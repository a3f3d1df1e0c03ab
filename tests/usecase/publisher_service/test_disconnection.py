"""Refused credentials disconnect their account, unless it has others by now."""

import asyncio

import pytest
from sqlalchemy import text

from publisher_service.adapters.postgres.accounts import lock_account
from publisher_service.adapters.postgres.holds import lock_gate
from publisher_service.application.disconnection import disconnect
from publisher_service.domain.outcome import (
    AuthRefused,
)
from servicekit.ids import Uuid7Source
from servicekit.pg.database import Transaction
from servicekit.pg.outbox import Outbox
from testkit.eventually import eventually
from tests.usecase.publisher_service.replica import Replica, a_command, a_sent, claims_in
from tests.usecase.publisher_service.rig import Start


async def test_refusing_replaced_credentials_disconnects_nobody(replica: Replica) -> None:
    (name,) = await replica.posts(1)
    (claimed,) = claims_in(await replica.claim([a_command(name)]))
    await replica.connect(f"page-{name}", token="a newer one")
    await replica.settle([a_sent(claimed, AuthRefused(message="expired"))])
    (account,) = await replica.rows("select state, version from social_account")
    assert (account.state, account.version) == ("CONNECTED", 2)
    (again,) = await replica.next_in_line()
    assert again.job.draft_id == name
    assert again.credentials != claimed.credentials


async def test_refusing_the_current_credentials_disconnects_the_account(replica: Replica) -> None:
    (name,) = await replica.posts(1)
    (claimed,) = claims_in(await replica.claim([a_command(name)]))
    await replica.settle([a_sent(claimed, AuthRefused(message="expired"))])
    (account,) = await replica.rows("select state from social_account")
    assert account.state == "DISCONNECTED"
    assert await replica.states() == {"BLOCKED ACCOUNT_NOT_CONNECTED": 1}
    assert await replica.next_in_line() == []
    await replica.connect(f"page-{name}")
    (again,) = await replica.next_in_line()
    assert again.job.draft_id == name


async def test_a_disconnection_is_one_log_line(replica: Replica, caplog: pytest.LogCaptureFixture) -> None:
    (name,) = await replica.posts(1)
    (claimed,) = claims_in(await replica.claim([a_command(name)]))
    await replica.settle([a_sent(claimed, AuthRefused(message="token revoked"))])
    (line,) = [each for each in caplog.records if each.getMessage() == "account disconnected"]
    said = {key: line.__dict__[key] for key in ("organization_id", "social_account_id", "error")}
    assert said == {"organization_id": "acme", "social_account_id": f"page-{name}", "error": "token revoked"}


async def test_a_look_that_disconnects_does_not_deadlock_with_a_call(replica: Replica) -> None:
    await replica.connect("page")
    (row,) = await replica.rows("select credentials from social_account")
    outbox = Outbox(Uuid7Source(), lambda rows: None)
    waiting = "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"

    async def look(tx: Transaction) -> None:
        now = await replica.clock.now(tx)
        message = "token revoked"
        await disconnect(tx, outbox, ("acme", "page"), credentials=row.credentials, error_message=message, now=now)

    async with asyncio.TaskGroup() as group, replica.database.transaction() as tx:
        # As UpdateAccount does.
        await lock_gate(tx.connection, ("acme", "page"))
        group.create_task(replica.database.run(look))
        await eventually(lambda: replica.rows(waiting))
        await tx.connection.execute(text("set local lock_timeout = '100ms'"))
        assert await lock_account(tx.connection, "acme", "page") is not None
    (account,) = await replica.rows("select state from social_account")
    assert account.state == "DISCONNECTED"


async def test_a_new_connection_releases_the_post_of_a_disconnected_account(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.sandbox.faults({"fault": "status", "status": 401, "count": 1})
        await rig.save_draft("d1")
        await rig.go("d1")
        job = await rig.in_state("BLOCKED", "d1")
        assert job.state_reason == "ACCOUNT_NOT_CONNECTED"
        (account,) = await rig.rows("select state, version from social_account")
        assert (account.state, account.version) == ("DISCONNECTED", 2)
        await rig.connect()
        await rig.in_state("PUBLISHED", "d1")
