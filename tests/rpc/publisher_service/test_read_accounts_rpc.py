"""GetAccount and ListAccounts as a client sees them, and the versions of concurrent connections."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from sqlalchemy import text

from postflow.bus.v1.bus_pb2 import Envelope
from postflow.publisher.v1 import social_account_service_pb2 as pb
from postflow.publisher.v1.publisher_events_pb2 import SocialAccountConnected
from postflow.publisher.v1.social_account_pb2 import (
    SOCIAL_ACCOUNT_STATE_CONNECTED,
    SOCIAL_ACCOUNT_STATE_DISCONNECTED,
    SocialAccount,
)
from servicekit.pg.database import Database
from testkit.refusals import refusal_of

if TYPE_CHECKING:
    from postflow.publisher.v1.social_account_service_pb2_grpc import SocialAccountServiceAsyncStub

Code = grpc.StatusCode


def connection(account: str, *, organization: str = "acme") -> pb.ConnectAccountRequest:
    return pb.ConnectAccountRequest(
        organization_id=organization,
        social_account_id=account,
        provider="sandbox",
        external_account_id=f"ext-{account}",
        credentials=pb.Credentials(access_token="sandbox-ok"),
    )


async def change(database: Database, statement: str) -> None:
    async with database.transaction() as tx:
        await tx.connection.execute(text(statement))


async def ids(accounts: SocialAccountServiceAsyncStub, **wanted: Any) -> list[str]:
    answer = await accounts.ListAccounts(pb.ListAccountsRequest(organization_id="acme", **wanted))
    assert not answer.next_page_token
    return [account.id for account in answer.social_accounts]


async def test_an_account_is_shown_as_it_was_connected(accounts: SocialAccountServiceAsyncStub) -> None:
    connected = (await accounts.ConnectAccount(connection("page"))).social_account
    shown = await accounts.GetAccount(pb.GetAccountRequest(organization_id="acme", social_account_id="page"))
    assert shown.social_account == connected
    assert (connected.state_reason, connected.HasField("disconnect_time")) == ("", False)


async def test_a_disconnected_account_says_why_and_since_when(
    accounts: SocialAccountServiceAsyncStub, database: Database
) -> None:
    await accounts.ConnectAccount(connection("page"))
    await change(
        database,
        "update social_account set state = 'DISCONNECTED', state_reason = 'CREDENTIALS_REFUSED',"
        " error_message = 'token expired', disconnect_time = '2026-03-02 09:00Z'",
    )
    request = pb.GetAccountRequest(organization_id="acme", social_account_id="page")
    shown = (await accounts.GetAccount(request)).social_account
    assert shown.state == SOCIAL_ACCOUNT_STATE_DISCONNECTED
    assert (shown.state_reason, shown.error_message) == ("CREDENTIALS_REFUSED", "token expired")
    assert shown.disconnect_time.ToJsonString() == "2026-03-02T09:00:00Z"
    again = (await accounts.ConnectAccount(connection("page"))).social_account
    assert (again.state_reason, again.error_message, again.HasField("disconnect_time")) == ("", "", False)
    assert (await accounts.GetAccount(request)).social_account == again


@pytest.mark.parametrize("request_of", [("acme", "other"), ("other", "page")])
async def test_unknown_accounts_and_other_organizations_are_not_found(
    accounts: SocialAccountServiceAsyncStub, request_of: tuple[str, str]
) -> None:
    await accounts.ConnectAccount(connection("page"))
    organization, account = request_of
    code, fault = await refusal_of(
        accounts.GetAccount(pb.GetAccountRequest(organization_id=organization, social_account_id=account))
    )
    assert (code, fault.reason) == (Code.NOT_FOUND, "ACCOUNT_NOT_FOUND")
    assert fault.metadata == {"social_account_id": account}


async def test_accounts_are_paged_in_the_order_of_their_ids(accounts: SocialAccountServiceAsyncStub) -> None:
    for account in ("c", "a", "e", "b", "d"):
        await accounts.ConnectAccount(connection(account))
    await accounts.ConnectAccount(connection("a", organization="other"))
    pages: list[list[str]] = []
    token = ""
    while not pages or token:
        request = pb.ListAccountsRequest(organization_id="acme", page_size=2, page_token=token)
        answer = await accounts.ListAccounts(request)
        pages.append([account.id for account in answer.social_accounts])
        token = answer.next_page_token
    assert pages == [["a", "b"], ["c", "d"], ["e"]]


async def test_accounts_are_listed_by_state_and_provider(
    accounts: SocialAccountServiceAsyncStub, database: Database
) -> None:
    for account in ("a", "b", "c"):
        await accounts.ConnectAccount(connection(account))
    await change(database, "update social_account set state = 'DISCONNECTED' where id = 'b'")
    await change(database, "update social_account set provider = 'another' where id = 'c'")
    assert await ids(accounts) == ["a", "b", "c"]
    assert await ids(accounts, states=[SOCIAL_ACCOUNT_STATE_DISCONNECTED]) == ["b"]
    assert await ids(accounts, states=[SOCIAL_ACCOUNT_STATE_CONNECTED], provider="sandbox") == ["a"]
    assert await ids(accounts, provider="another") == ["c"]
    assert await ids(accounts, provider="none") == []


@pytest.mark.parametrize(
    ("changes", "field"),
    [({"page_size": 201}, "page_size"), ({"page_token": "x"}, "page_token"), ({"provider": "x" * 65}, "provider")],
)
async def test_a_bad_field_of_a_list_is_named(
    accounts: SocialAccountServiceAsyncStub, changes: dict[str, Any], field: str
) -> None:
    code, fault = await refusal_of(accounts.ListAccounts(pb.ListAccountsRequest(organization_id="acme", **changes)))
    assert code is Code.INVALID_ARGUMENT
    assert [violation.field for violation in fault.violations] == [field]


async def test_concurrent_first_connections_have_different_versions(
    accounts: SocialAccountServiceAsyncStub, database: Database
) -> None:
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(_connect(accounts)) for _ in range(6)]
    assert sorted(call.result().version for call in calls) == [1, 2, 3, 4, 5, 6]
    async with database.read() as reading:
        rows = list(await reading.execute(text("select payload from outbox order by position")))
    versions = [
        SocialAccountConnected.FromString(event.payload).social_account.version
        for row in rows
        for event in Envelope.FromString(row.payload).events
    ]
    assert sorted(versions) == [1, 2, 3, 4, 5, 6]


async def _connect(accounts: SocialAccountServiceAsyncStub) -> SocialAccount:
    answer: pb.ConnectAccountResponse = await accounts.ConnectAccount(connection("page"))
    return answer.social_account
