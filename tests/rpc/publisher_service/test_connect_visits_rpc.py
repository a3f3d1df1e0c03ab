"""StartConnect, FinishConnect and RefreshCredentials as a client sees them: codes, reasons, and never a secret."""

from __future__ import annotations

import logging
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from sqlalchemy import text

from devstack.sandbox.client import SandboxClient
from postflow.publisher.v1 import social_account_service_pb2 as pb
from publisher_service.entrypoints.rpc import DEADLINES
from publisher_service.settings import Settings
from servicekit.clock import SystemClock
from servicekit.faults import Fault
from servicekit.pg.database import Database
from servicekit.rpc import fault_from_error
from servicekit.timestamps import timestamp
from tests.rpc.publisher_service.conftest import REDIRECT_URI

if TYPE_CHECKING:
    from postflow.publisher.v1.social_account_service_pb2_grpc import SocialAccountServiceAsyncStub

Code = grpc.StatusCode


def test_calls_that_wait_for_a_network_have_the_time() -> None:
    (one,) = (each.default for each in fields(Settings) if each.name == "network_timeout")
    assert isinstance(one, timedelta)
    asked = {"ConnectAccount": 1, "FinishConnect": 2, "RefreshCredentials": 1}
    of_accounts = "postflow.publisher.v1.SocialAccountService"
    assert {f"{of_accounts}/{method}" for method in asked} == DEADLINES.keys()
    assert all(DEADLINES[f"{of_accounts}/{method}"] > times * one for method, times in asked.items())


def started(**changes: Any) -> pb.StartConnectRequest:
    wanted = {"organization_id": "acme", "provider": "sandbox", "redirect_uri": REDIRECT_URI, **changes}
    return pb.StartConnectRequest(**wanted)


async def refusal_of(call: grpc.aio.UnaryUnaryCall[Any, Any]) -> tuple[grpc.StatusCode, Fault]:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    return refused.value.code(), fault_from_error(refused.value)


async def test_a_person_connects_an_account(accounts: SocialAccountServiceAsyncStub, control: SandboxClient) -> None:
    begun = await accounts.StartConnect(started(social_account_id="page", channels=["Instagram"], request_id="r1"))
    assert (
        await accounts.StartConnect(started(social_account_id="page", channels=["Instagram"], request_id="r1")) == begun
    )
    back = await control.agree(begun.authorization_url, "p1", refresh_seconds=864000)
    assert back["state"] == begun.state
    request = pb.FinishConnectRequest(organization_id="acme", state=begun.state, code=back["code"], request_id="r2")
    answer = await accounts.FinishConnect(request)
    assert list(answer.candidates) == []
    account = answer.social_account
    assert (account.id, account.external_account_id, list(account.channels)) == ("page", "p1", ["instagram_feed"])
    info = account.credentials_info
    assert (info.generation, info.is_refreshable, list(info.scopes)) == (1, True, ["posts.write", "posts.read"])
    assert info.next_refresh_time.seconds < info.expire_time.seconds < info.refresh_expire_time.seconds
    assert await accounts.FinishConnect(request) == answer
    shown = await accounts.GetAccount(pb.GetAccountRequest(organization_id="acme", social_account_id="page"))
    assert shown.social_account == account
    listed = await accounts.ListAccounts(pb.ListAccountsRequest(organization_id="acme"))
    assert list(listed.social_accounts) == [account]


async def test_a_person_with_several_accounts_chooses(
    accounts: SocialAccountServiceAsyncStub, control: SandboxClient
) -> None:
    begun = await accounts.StartConnect(started())
    code = (await control.agree(begun.authorization_url, "p1", "p2"))["code"]
    request = pb.FinishConnectRequest(organization_id="acme", state=begun.state, code=code)
    offered = await accounts.FinishConnect(request)
    assert not offered.HasField("social_account")
    assert [(each.external_account_id, each.name) for each in offered.candidates] == [
        ("p1", "Sandbox account p1"),
        ("p2", "Sandbox account p2"),
    ]
    request.external_account_id = "p2"
    assert (await accounts.FinishConnect(request)).social_account.external_account_id == "p2"


@pytest.mark.parametrize(
    ("changes", "field", "reason"),
    [
        ({"provider": "myspace"}, "provider", "UNKNOWN_PROVIDER"),
        ({"redirect_uri": f"{REDIRECT_URI}?x"}, "redirect_uri", "REDIRECT_URI_NOT_ALLOWED"),
        ({"channels": ["teletext"]}, "channels[0]", "UNKNOWN_CHANNEL"),
        ({"settings": {"host": "x"}}, "settings.host", "UNKNOWN_SETTING"),
        ({"settings": {"Ho st": "x"}}, "settings", "INVALID_FIELD"),
        ({"settings": {"host": "a\r\nb"}}, "settings.host", "INVALID_FIELD"),
        ({"organization_id": ""}, "organization_id", "INVALID_FIELD"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
async def test_a_bad_field_of_a_visit_is_named(
    accounts: SocialAccountServiceAsyncStub, changes: dict[str, Any], field: str, reason: str
) -> None:
    code, fault = await refusal_of(accounts.StartConnect(started(**changes)))
    assert (code, fault.reason) == (Code.INVALID_ARGUMENT, reason)
    assert [violation.field for violation in fault.violations] == [field]


async def test_an_unknown_state_is_not_found(accounts: SocialAccountServiceAsyncStub) -> None:
    request = pb.FinishConnectRequest(organization_id="acme", state="unknown", code="c")
    code, fault = await refusal_of(accounts.FinishConnect(request))
    assert (code, fault.reason) == (Code.NOT_FOUND, "STATE_NOT_FOUND")
    begun = await accounts.StartConnect(started(organization_id="other"))
    request.state = begun.state
    assert (await refusal_of(accounts.FinishConnect(request)))[1].message == fault.message


async def test_a_refused_code_and_a_used_state_are_failed_preconditions(
    accounts: SocialAccountServiceAsyncStub,
) -> None:
    begun = await accounts.StartConnect(started())
    request = pb.FinishConnectRequest(organization_id="acme", state=begun.state, code="wrong")
    for reason in ("CODE_REFUSED", "STATE_USED"):
        code, fault = await refusal_of(accounts.FinishConnect(request))
        assert (code, fault.reason) == (Code.FAILED_PRECONDITION, reason)


async def test_the_first_call_needs_the_code(accounts: SocialAccountServiceAsyncStub) -> None:
    begun = await accounts.StartConnect(started())
    code, fault = await refusal_of(
        accounts.FinishConnect(pb.FinishConnectRequest(organization_id="acme", state=begun.state))
    )
    assert (code, fault.metadata["field"]) == (Code.INVALID_ARGUMENT, "code")


async def test_connected_credentials_are_described_and_never_shown(
    accounts: SocialAccountServiceAsyncStub, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    end = SystemClock().now().replace(microsecond=0) + timedelta(days=60)
    secrets: dict[str, Any] = {
        name: f"sandbox-canary-{name}" for name in ("access_token", "refresh_token", "user_token")
    }
    answer = await accounts.ConnectAccount(
        pb.ConnectAccountRequest(
            organization_id="acme",
            social_account_id="page",
            provider="sandbox",
            external_account_id="p1",
            request_id="r1",
            credentials=pb.Credentials(
                **secrets, expire_time=timestamp(end), refresh_expire_time=timestamp(end), scopes=["a", "b", "a"]
            ),
        )
    )
    info = answer.social_account.credentials_info
    assert (list(info.scopes), info.is_refreshable, info.expire_time) == (["a", "b"], True, timestamp(end))
    shown = [repr(answer), caplog.text]
    async with database.statement() as connection:
        for table in ("social_account", "credential", "outbox", "request_ledger"):
            shown += [row.shown for row in await connection.execute(text(f"select t::text as shown from {table} t"))]  # noqa: S608
    for secret in secrets.values():
        assert not [text for text in shown if secret in text or secret.encode().hex() in text]


@pytest.mark.parametrize("name", ["refresh_token", "user_token"])
async def test_a_secret_that_no_request_can_carry_is_named(accounts: SocialAccountServiceAsyncStub, name: str) -> None:
    secrets = pb.Credentials(access_token="sandbox-ok")
    setattr(secrets, name, "x\r\nEvil: 1")
    request = pb.ConnectAccountRequest(
        organization_id="acme", provider="sandbox", external_account_id="p1", credentials=secrets
    )
    code, fault = await refusal_of(accounts.ConnectAccount(request))
    assert (code, fault.metadata["field"]) == (Code.INVALID_ARGUMENT, f"credentials.{name}")


async def test_an_end_that_has_passed_is_refused(accounts: SocialAccountServiceAsyncStub) -> None:
    request = pb.ConnectAccountRequest(
        organization_id="acme",
        provider="sandbox",
        external_account_id="p1",
        credentials=pb.Credentials(access_token="sandbox-ok", expire_time=timestamp(datetime(2020, 1, 1, tzinfo=UTC))),
    )
    code, fault = await refusal_of(accounts.ConnectAccount(request))
    assert (code, fault.metadata["field"]) == (Code.INVALID_ARGUMENT, "credentials.expire_time")


async def test_an_account_connected_under_another_id_is_named(accounts: SocialAccountServiceAsyncStub) -> None:
    def request(account: str, organization: str = "acme") -> pb.ConnectAccountRequest:
        return pb.ConnectAccountRequest(
            organization_id=organization,
            social_account_id=account,
            provider="sandbox",
            external_account_id="p1",
            credentials=pb.Credentials(access_token="sandbox-ok"),
        )

    await accounts.ConnectAccount(request("page"))
    await accounts.ConnectAccount(request("page", "other"))
    code, fault = await refusal_of(accounts.ConnectAccount(request("copy")))
    assert (code, fault.reason) == (Code.FAILED_PRECONDITION, "ACCOUNT_CONNECTED_ELSEWHERE")
    assert fault.metadata == {"social_account_id": "page"}


async def test_credentials_without_a_refresh_token_are_not_refreshable(
    accounts: SocialAccountServiceAsyncStub,
) -> None:
    request = pb.RefreshCredentialsRequest(organization_id="acme", social_account_id="page")
    code, fault = await refusal_of(accounts.RefreshCredentials(request))
    assert (code, fault.reason) == (Code.NOT_FOUND, "ACCOUNT_NOT_FOUND")
    await accounts.ConnectAccount(
        pb.ConnectAccountRequest(
            organization_id="acme",
            social_account_id="page",
            provider="sandbox",
            external_account_id="p1",
            credentials=pb.Credentials(access_token="sandbox-ok"),
        )
    )
    code, fault = await refusal_of(accounts.RefreshCredentials(request))
    assert (code, fault.reason) == (Code.FAILED_PRECONDITION, "NOT_REFRESHABLE")


async def test_a_refresh_that_nobody_carries_out_is_unavailable(
    accounts: SocialAccountServiceAsyncStub, control: SandboxClient
) -> None:
    """The loops of this server are not awake."""
    pair = await control.issue_token("p1", seconds=3600)
    await accounts.ConnectAccount(
        pb.ConnectAccountRequest(
            organization_id="acme",
            social_account_id="page",
            provider="sandbox",
            external_account_id="p1",
            credentials=pb.Credentials(access_token=pair["access_token"], refresh_token=pair["refresh_token"]),
        )
    )
    request = pb.RefreshCredentialsRequest(organization_id="acme", social_account_id="page")
    code, fault = await refusal_of(accounts.RefreshCredentials(request))
    assert (code, fault.reason) == (Code.UNAVAILABLE, "PROVIDER_UNAVAILABLE")
    assert fault.retry_after
