"""Refused credentials disconnect their account, unless it has others by now."""

import pytest

from publisher_service.domain.outcome import (
    AuthRefused,
)
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
