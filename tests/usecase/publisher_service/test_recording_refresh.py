"""The answer to a refresh counts for the credentials that were taken, and for no others."""

import pytest

from publisher_service.adapters.postgres.accounts import list_sealed, reseal
from publisher_service.domain.credentials import ERASED
from testkit.eventually import eventually
from tests.usecase.publisher_service.disconnecting import disconnect
from tests.usecase.publisher_service.renewing import HOUR, Renewing


async def in_flight(office: Renewing) -> None:
    """Connects an account and makes it due."""
    await office.connect("page", await office.issue("page", rotating=True))
    await office.make_due("page")


async def test_a_connection_made_meanwhile_keeps_its_credentials(office: Renewing) -> None:
    await in_flight(office)
    (taken,) = await office.take()
    other = await office.issue("page")
    await office.connect("page", other)
    await office.refresh(taken)
    row = await office.row("page")
    assert (row.generation, row.failures, row.lease_end) == (2, 0, None)
    assert (await office.credentials("page")).access_token == other["access_token"]
    assert await office.journal("page") == [(1, "DONE")]


@pytest.mark.parametrize("revoked", [False, True])
async def test_an_account_disconnected_meanwhile_stays_erased(office: Renewing, revoked: bool) -> None:
    await in_flight(office)
    (taken,) = await office.take()
    await disconnect(office.replica, "page")
    if revoked:
        await office.sandbox.revoke_tokens("ext-page")
    await office.refresh(taken)
    row = await office.row("page")
    assert (row.account_state, row.state_reason) == ("DISCONNECTED", "DISCONNECTED_BY_REQUEST")
    assert (row.next_time, row.is_refreshable, row.connected) == (None, False, False)
    assert await office.credentials("page") == ERASED


async def test_a_new_seal_meanwhile_does_not_lose_the_pair(office: Renewing) -> None:
    await in_flight(office)
    (taken,) = await office.take()
    async with office.replica.database.transaction() as tx:
        (stored,) = await list_sealed(tx.connection, after=("", ""), limit=10)
        again = office.replica.vault.seal(
            office.replica.vault.open(stored.credentials, organization_id="acme", account_id="page"),
            organization_id="acme",
            account_id="page",
        )
        await reseal(tx.connection, stored, again)
    await office.refresh(taken)
    assert (await office.row("page")).generation == 2


async def test_a_late_answer_counts_though_another_process_has_taken_over(office: Renewing, branch: Renewing) -> None:
    await in_flight(office)
    (late,) = await office.take()
    await office.move("page", next_time=HOUR, lease_end=HOUR)
    (second,) = await branch.take()
    await office.refresh(late)
    assert (await office.row("page")).generation == 2
    kept = await office.credentials("page")
    await branch.refresh(second)
    row = await office.row("page")
    assert (row.generation, row.account_state, row.is_refused) == (2, "CONNECTED", False)
    assert await office.credentials("page") == kept
    assert await office.journal("page") == [(1, "DONE"), (1, "REFUSED")]


async def test_a_late_failure_changes_nothing_for_who_has_taken_over(office: Renewing, branch: Renewing) -> None:
    await in_flight(office)
    (late,) = await office.take()
    await office.move("page", next_time=HOUR, lease_end=HOUR)
    (second,) = await branch.take()
    await office.sandbox.faults({"fault": "status", "operation": "token", "count": 1})
    await office.refresh(late)
    row = await office.row("page")
    assert row.lease_end is not None
    assert row.failures == 0
    await branch.refresh(second)
    assert (await office.row("page")).generation == 2


async def test_an_account_disconnected_by_another_release_keeps_the_new_pair(office: Renewing) -> None:
    """A 401 made that release disconnect the account and leave the credentials."""
    await in_flight(office)
    (taken,) = await office.take()
    await office.replica.write(
        "update social_account set state = 'DISCONNECTED', state_reason = 'CREDENTIALS_REFUSED',"
        " disconnect_time = now()"
    )
    await office.refresh(taken)
    row = await office.row("page")
    assert (row.generation, row.account_state, row.next_time) == (2, "DISCONNECTED", None)
    assert (await office.credentials("page")).refresh_token == "refresh-1-1"


async def test_an_answer_is_kept_while_the_database_is_away(office: Renewing) -> None:
    await in_flight(office)
    (taken,) = await office.take()
    await office.sandbox.faults({"fault": "slow", "operation": "token", "seconds": 0.3, "count": 1})
    office.replica.database.drop_connections()
    await office.refresh(taken)

    async def recorded() -> bool:
        return bool((await office.row("page")).generation == 2)

    await eventually(recorded)
