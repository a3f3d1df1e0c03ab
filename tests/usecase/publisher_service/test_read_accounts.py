"""Accounts are read one by one, or page by page in the order of their ids."""

import pytest

from publisher_service.application.read_accounts import ReadAccounts
from publisher_service.domain.account import AccountFilter, AccountState
from servicekit.faults import NotFound
from tests.usecase.publisher_service.replica import Replica


@pytest.fixture
def read(replica: Replica) -> ReadAccounts:
    return ReadAccounts(replica.database)


async def test_an_account_is_read_as_it_was_connected(replica: Replica, read: ReadAccounts) -> None:
    connected = await replica.connect("page")
    assert await read.get("acme", "page") == connected


@pytest.mark.parametrize(("organization", "account"), [("acme", "other"), ("other", "page")])
async def test_no_account_is_found_under_another_name_or_organization(
    replica: Replica, read: ReadAccounts, organization: str, account: str
) -> None:
    await replica.connect("page")
    with pytest.raises(NotFound) as refused:
        await read.get(organization, account)
    assert refused.value.reason == "ACCOUNT_NOT_FOUND"


async def test_a_page_begins_behind_the_last_account_and_ends_at_its_limit(
    replica: Replica, read: ReadAccounts
) -> None:
    for account in ("c", "a", "d", "b"):
        await replica.connect(account)
    wanted = AccountFilter(organization_id="acme")
    assert [account.id for account in await read.list(wanted, after="a", limit=2)] == ["b", "c"]


async def test_a_list_holds_only_the_states_that_were_asked_for(replica: Replica, read: ReadAccounts) -> None:
    for account in ("a", "b"):
        await replica.connect(account)
    await replica.write("update social_account set state = 'DISCONNECTED' where id = 'b'")
    wanted = AccountFilter(organization_id="acme", states=(AccountState.DISCONNECTED,))
    assert [account.id for account in await read.list(wanted, after="", limit=10)] == ["b"]
