"""Refused credentials disconnect their account, unless it has others by now."""

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import text

from publisher_service.adapters.postgres.accounts import lock_account
from publisher_service.adapters.postgres.holds import lock_gate
from publisher_service.application.disconnection import disconnect
from publisher_service.domain.claim import Claimed
from publisher_service.domain.outcome import (
    AuthRefused,
    NotBegun,
)
from servicekit.ids import Uuid7Source
from servicekit.pg.database import Transaction
from servicekit.pg.outbox import Outbox
from testkit.eventually import eventually
from tests.usecase.publisher_service.renewing import Renewing
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


async def first_in_line(office: Renewing, name: str) -> Claimed:
    """Claims a post of an account that was just connected: its line is looked at first."""
    claims = await office.replica.claim([a_command(name, "page")])
    (claimed,) = claims_in(claims) or await office.replica.next_in_line()
    return claimed


class TestRefreshable:
    """A 401 of credentials that can be refreshed."""

    async def refused(self, office: Renewing, *, posts: int = 2) -> list[str]:
        """Has the first post of a line refused with a 401."""
        names = await office.replica.posts(posts, account="page", connected=False)
        await office.connect("page", await office.issue("page", rotating=True))
        claimed = await first_in_line(office, names[0])
        await office.replica.settle([a_sent(claimed, AuthRefused(message="expired"))])
        return names

    async def test_posts_wait_for_the_refresh_and_go_on(self, office: Renewing) -> None:
        names = await self.refused(office)
        row = await office.row("page")
        assert (row.account_state, row.state_reason, row.connected) == ("CONNECTED", "CREDENTIALS_REFRESHING", False)
        assert row.error_message == "expired"
        assert await office.replica.states() == {"BLOCKED ACCOUNT_NOT_CONNECTED": 1, "PENDING": 1}
        assert await office.replica.next_in_line() == []
        assert await office.run() == 1
        row = await office.row("page")
        assert (row.account_state, row.state_reason, row.error_message, row.connected) == ("CONNECTED", "", "", True)
        assert (row.generation, row.is_urgent, row.is_forced) == (2, False, True)
        assert office.opened
        (again,) = await office.replica.next_in_line()
        assert again.job.draft_id == names[0]
        token = office.replica.vault.open(again.credentials, organization_id="acme", account_id="page")
        assert token == await office.credentials("page")

    async def test_a_refusal_of_the_refresh_disconnects(self, office: Renewing) -> None:
        await self.refused(office)
        await office.sandbox.revoke_tokens("ext-page")
        await office.run()
        row = await office.row("page")
        assert (row.account_state, row.state_reason) == ("DISCONNECTED", "CREDENTIALS_REFUSED")
        assert "not valid" in row.error_message
        assert (row.connected, row.next_time, row.is_urgent) == (False, None, False)

    async def test_a_provider_that_is_away_keeps_posts_waiting(self, office: Renewing) -> None:
        await self.refused(office)
        await office.sandbox.faults({"fault": "status", "operation": "token", "count": 1})
        await office.run()
        row = await office.row("page")
        assert (row.account_state, row.state_reason, row.connected) == ("CONNECTED", "CREDENTIALS_REFRESHING", False)
        assert row.next_time - await office.now() < timedelta(minutes=1)
        await office.make_due("page")
        await office.run()
        assert (await office.row("page")).connected

    async def test_fresh_credentials_that_are_refused_disconnect(self, office: Renewing) -> None:
        await self.refused(office)
        await office.run()
        (again,) = await office.replica.next_in_line()
        await office.replica.settle([a_sent(again, AuthRefused(message="suspended"))])
        row = await office.row("page")
        assert (row.account_state, row.state_reason, row.error_message) == (
            "DISCONNECTED",
            "CREDENTIALS_REFUSED",
            "suspended",
        )

    async def test_a_refusal_of_an_older_generation_opens_the_line_alone(self, office: Renewing) -> None:
        names = await office.replica.posts(1, account="page", connected=False)
        await office.connect("page", await office.issue("page"))
        claimed = await first_in_line(office, names[0])
        await office.make_due("page")
        await office.run()
        before = await office.row("page")
        await office.replica.settle([a_sent(claimed, AuthRefused(message="expired"))])
        row = await office.row("page")
        assert (row.generation, row.is_urgent, row.connected, row.version) == (2, False, True, before.version)
        assert [each.job.draft_id for each in await office.replica.next_in_line()] == names

    async def test_a_refusal_of_older_credentials_does_not_end_the_wait(self, office: Renewing) -> None:
        await self.refused(office)
        old = b"of an older generation"
        outbox = Outbox(Uuid7Source(), lambda rows: None)

        async def look(tx: Transaction) -> None:
            now = await office.replica.clock.now(tx)
            await disconnect(tx, outbox, ("acme", "page"), credentials=old, error_message="", now=now)

        await office.replica.database.run(look)
        row = await office.row("page")
        assert (row.connected, row.is_urgent) == (False, True)

    async def test_a_new_connection_ends_the_wait(self, office: Renewing) -> None:
        names = await self.refused(office)
        await office.connect("page", await office.issue("page"))
        row = await office.row("page")
        assert (row.state_reason, row.connected, row.is_urgent) == ("", True, False)
        assert [each.job.draft_id for each in await office.replica.next_in_line()] == names[:1]

    async def test_a_refresh_between_claim_and_send_keeps_no_post_back(self, office: Renewing) -> None:
        """Somebody else's hold has every send look at its account."""
        names = await office.replica.posts(1, account="page", connected=False)
        await office.connect("page", await office.issue("page", rotating=True))
        started = office.replica.system.monotonic()
        claimed = await first_in_line(office, names[0])
        await office.make_due("page")
        await office.run()
        await office.replica.hold("elsewhere")
        sent = await office.replica.send_post(claimed, claim_started=started)
        assert not isinstance(sent.outcome, NotBegun)
        assert [line for line in office.sandbox.ledger() if line.get("operation") == "post"]


async def test_a_refused_token_is_refreshed_and_the_post_goes_out(start: Start) -> None:
    async with start() as rig:
        pair = await rig.sandbox.issue_token("ext-page", seconds=3600, rotating=True)
        await rig.connect(token=pair["access_token"], refresh=pair["refresh_token"])
        await rig.sandbox.faults({"fault": "status", "status": 401, "count": 1})
        await rig.save_draft("d1")
        await rig.go("d1")
        await rig.in_state("PUBLISHED", "d1")
        (account,) = await rig.rows("select state, state_reason from social_account")
        assert (account.state, account.state_reason) == ("CONNECTED", "")
        (life,) = await rig.rows("select generation from credential")
        assert life.generation == 2
