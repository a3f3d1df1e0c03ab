"""ConnectAccount as a client sees it: answers, codes, reasons, details, and never a secret."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from sqlalchemy import text

from channels import KNOWN
from devstack.sandbox.client import SandboxClient
from devstack.sandbox.provider import Sandbox
from postflow.bus.v1.bus_pb2 import Envelope
from postflow.publisher.v1 import social_account_service_pb2 as pb
from postflow.publisher.v1.publisher_events_pb2 import SocialAccountConnected
from postflow.publisher.v1.social_account_pb2 import SOCIAL_ACCOUNT_STATE_CONNECTED, SocialAccount
from servicekit.faults import Fault
from servicekit.pg.database import Database
from servicekit.rpc import fault_from_error

if TYPE_CHECKING:
    from postflow.publisher.v1.social_account_service_pb2_grpc import SocialAccountServiceAsyncStub

Code = grpc.StatusCode
CANARY = "sandbox-canary-5d21"
METHOD = "/postflow.publisher.v1.SocialAccountService/ConnectAccount"


def connection(**changes: Any) -> pb.ConnectAccountRequest:
    token = changes.pop("access_token", CANARY)
    request = pb.ConnectAccountRequest(
        organization_id="acme",
        social_account_id="page",
        provider="sandbox",
        external_account_id="ext-page",
        display_name="The page",
        credentials=pb.Credentials(access_token=token),
    )
    for name, value in changes.items():
        request.ClearField(name)
        request.MergeFrom(pb.ConnectAccountRequest(**{name: value}))
    return request


async def refusal_of(call: grpc.aio.UnaryUnaryCall[Any, Any]) -> tuple[grpc.StatusCode, Fault]:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    assert CANARY not in repr(refused.value)
    assert CANARY not in repr(refused.value.trailing_metadata())
    return refused.value.code(), fault_from_error(refused.value)


async def rows(database: Database, statement: str) -> list[Any]:
    async with database.statement() as connection:
        return list(await connection.execute(text(statement)))


async def connected_events(database: Database) -> list[SocialAccount]:
    return [
        SocialAccountConnected.FromString(event.payload).social_account
        for row in await rows(database, "select payload from outbox order by position")
        for event in Envelope.FromString(row.payload).events
        if event.type == SocialAccountConnected.DESCRIPTOR.full_name
    ]


async def test_an_account_is_connected_and_announced(
    accounts: SocialAccountServiceAsyncStub, database: Database
) -> None:
    answer = (await accounts.ConnectAccount(connection(channels=["Instagram", "facebook", "facebook"]))).social_account
    assert (answer.id, answer.provider, answer.external_account_id) == ("page", "sandbox", "ext-page")
    assert (answer.display_name, answer.version) == ("The page", 1)
    assert list(answer.channels) == ["instagram_feed", "facebook"]
    assert answer.state == SOCIAL_ACCOUNT_STATE_CONNECTED
    assert await connected_events(database) == [answer]


async def test_an_id_and_all_channels_are_the_defaults(
    accounts: SocialAccountServiceAsyncStub,
) -> None:
    request = connection()
    request.ClearField("social_account_id")
    one = (await accounts.ConnectAccount(request)).social_account
    request.external_account_id = "ext-another"
    two = (await accounts.ConnectAccount(request)).social_account
    assert one.id
    assert one.id != two.id
    assert tuple(one.channels) == KNOWN


async def test_connecting_again_replaces_the_credentials_and_raises_the_version(
    accounts: SocialAccountServiceAsyncStub, database: Database
) -> None:
    first = (await accounts.ConnectAccount(connection())).social_account
    (before,) = await rows(database, "select credentials from social_account")
    second = (
        await accounts.ConnectAccount(connection(access_token="sandbox-newer", display_name="New"))
    ).social_account
    (after,) = await rows(database, "select credentials from social_account")
    assert (second.version, second.display_name, second.create_time) == (2, "New", first.create_time)
    assert before.credentials != after.credentials
    assert [account.version for account in await connected_events(database)] == [1, 2]


async def test_a_repeated_request_is_answered_without_asking_the_provider(
    accounts: SocialAccountServiceAsyncStub, database: Database, control: SandboxClient
) -> None:
    first = await accounts.ConnectAccount(connection(request_id="r1"))
    await control.faults({"fault": "status", "operation": "account", "status": 401})
    assert await accounts.ConnectAccount(connection(request_id="r1")) == first
    assert len(await connected_events(database)) == 1


async def test_a_request_id_of_another_request_is_refused(accounts: SocialAccountServiceAsyncStub) -> None:
    await accounts.ConnectAccount(connection(request_id="r1"))
    for changes in ({"display_name": "other"}, {"access_token": "sandbox-other"}):
        code, fault = await refusal_of(accounts.ConnectAccount(connection(request_id="r1", **changes)))
        assert (code, fault.reason) == (Code.INVALID_ARGUMENT, "REQUEST_ID_REUSED")


async def test_a_refused_request_is_not_stored(accounts: SocialAccountServiceAsyncStub, control: SandboxClient) -> None:
    await control.faults({"fault": "status", "operation": "account", "status": 503, "count": 1})
    code, _ = await refusal_of(accounts.ConnectAccount(connection(request_id="r1")))
    assert code is Code.UNAVAILABLE
    assert (await accounts.ConnectAccount(connection(request_id="r1"))).social_account.version == 1


async def test_request_ids_are_separate_for_each_organization(accounts: SocialAccountServiceAsyncStub) -> None:
    await accounts.ConnectAccount(connection(request_id="r1"))
    other = await accounts.ConnectAccount(connection(request_id="r1", organization_id="other", display_name="x"))
    assert other.social_account.version == 1


@pytest.mark.parametrize(
    ("changes", "field", "reason"),
    [
        ({"organization_id": ""}, "organization_id", "INVALID_FIELD"),
        ({"organization_id": "a b"}, "organization_id", "INVALID_FIELD"),
        ({"organization_id": "a" * 65}, "organization_id", "INVALID_FIELD"),
        ({"social_account_id": "a/b"}, "social_account_id", "INVALID_FIELD"),
        ({"provider": ""}, "provider", "INVALID_FIELD"),
        ({"provider": "myspace"}, "provider", "UNKNOWN_PROVIDER"),
        ({"external_account_id": ""}, "external_account_id", "INVALID_FIELD"),
        ({"external_account_id": ".."}, "external_account_id", "INVALID_FIELD"),
        ({"external_account_id": "a\r\nb"}, "external_account_id", "INVALID_FIELD"),
        ({"channels": ["facebook", "teletext"]}, "channels[1]", "UNKNOWN_CHANNEL"),
        ({"access_token": ""}, "credentials.access_token", "INVALID_FIELD"),
        ({"access_token": f"{CANARY}\r\nX-Evil: 1"}, "credentials.access_token", "INVALID_FIELD"),
        ({"access_token": f"{CANARY}ä"}, "credentials.access_token", "INVALID_FIELD"),
        ({"access_token": " "}, "credentials.access_token", "INVALID_FIELD"),
        ({"access_token": CANARY * 1000}, "credentials.access_token", "INVALID_FIELD"),
        ({"request_id": "a b"}, "request_id", "INVALID_FIELD"),
        ({"display_name": "x\0"}, "display_name", "INVALID_FIELD"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
async def test_a_bad_field_is_named(
    accounts: SocialAccountServiceAsyncStub, database: Database, changes: dict[str, Any], field: str, reason: str
) -> None:
    code, fault = await refusal_of(accounts.ConnectAccount(connection(**changes)))
    assert (code, fault.reason) == (Code.INVALID_ARGUMENT, reason)
    assert [violation.field for violation in fault.violations] == [field]
    assert await rows(database, "select 1 from social_account") == []


async def test_a_refusal_of_an_unknown_name_lists_the_known_ones(accounts: SocialAccountServiceAsyncStub) -> None:
    _, provider = await refusal_of(accounts.ConnectAccount(connection(provider="myspace")))
    assert "sandbox" in provider.violations[0].description
    _, channel = await refusal_of(accounts.ConnectAccount(connection(channels=["teletext"])))
    assert all(name in channel.violations[0].description for name in KNOWN)


@pytest.mark.parametrize("token", ["nonsense", "sandbox-revoked"])
async def test_refused_credentials_are_a_failed_precondition(
    accounts: SocialAccountServiceAsyncStub, database: Database, token: str
) -> None:
    code, fault = await refusal_of(accounts.ConnectAccount(connection(access_token=token)))
    assert (code, fault.reason) == (Code.FAILED_PRECONDITION, "CREDENTIALS_REFUSED")
    assert token not in fault.message
    assert await rows(database, "select 1 from social_account") == []


async def test_refused_credentials_leave_a_connected_account_as_it_is(
    accounts: SocialAccountServiceAsyncStub, database: Database
) -> None:
    await accounts.ConnectAccount(connection())
    await refusal_of(accounts.ConnectAccount(connection(access_token="nonsense")))
    (row,) = await rows(database, "select state, version from social_account")
    assert (row.state, row.version) == ("CONNECTED", 1)


async def test_an_unreachable_provider_is_unavailable(
    accounts: SocialAccountServiceAsyncStub, sandbox: Sandbox
) -> None:
    await sandbox.stop()
    code, fault = await refusal_of(accounts.ConnectAccount(connection()))
    assert (code, fault.reason) == (Code.UNAVAILABLE, "PROVIDER_UNAVAILABLE")


@pytest.mark.parametrize("fault", ["hang_without_effect", "reset_before_effect", "status"])
async def test_a_provider_that_fails_to_answer_is_unavailable(
    accounts: SocialAccountServiceAsyncStub, control: SandboxClient, fault: str
) -> None:
    await control.faults({"fault": fault, "operation": "account"})
    code, refusal = await refusal_of(accounts.ConnectAccount(connection()))
    assert (code, refusal.reason) == (Code.UNAVAILABLE, "PROVIDER_UNAVAILABLE")


async def test_an_account_cannot_change_its_provider(
    accounts: SocialAccountServiceAsyncStub, database: Database
) -> None:
    await accounts.ConnectAccount(connection())
    async with database.transaction() as tx:
        await tx.connection.execute(text("update social_account set provider = 'another'"))
    code, fault = await refusal_of(accounts.ConnectAccount(connection()))
    assert (code, fault.reason) == (Code.FAILED_PRECONDITION, "PROVIDER_CHANGED")
    assert fault.metadata == {"social_account_id": "page", "provider": "another"}


async def test_an_account_cannot_change_its_external_account(accounts: SocialAccountServiceAsyncStub) -> None:
    await accounts.ConnectAccount(connection())
    code, fault = await refusal_of(accounts.ConnectAccount(connection(external_account_id="ext-other")))
    assert (code, fault.reason) == (Code.FAILED_PRECONDITION, "EXTERNAL_ACCOUNT_CHANGED")


async def test_bytes_that_do_not_decode_are_refused(channel: grpc.aio.Channel) -> None:
    raw: Any = channel.unary_unary(METHOD)
    code, fault = await refusal_of(raw(b"\xff\xff"))
    assert code is Code.INVALID_ARGUMENT
    assert fault.reason


async def test_no_secret_appears_in_an_answer_log_event_or_row(
    accounts: SocialAccountServiceAsyncStub,
    database: Database,
    control: SandboxClient,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG):
        answer = await accounts.ConnectAccount(connection(request_id="r1"))
        await control.faults({"fault": "status", "operation": "account", "status": 401, "count": 1})
        await refusal_of(accounts.ConnectAccount(connection()))
        await control.faults({"fault": "reset_before_effect", "operation": "account"})
        await refusal_of(accounts.ConnectAccount(connection()))
        await control.clear_faults()
        await refusal_of(accounts.ConnectAccount(connection(request_id="r1", display_name="other")))
        async with database.transaction() as tx:
            # An unexpected failure.
            await tx.connection.execute(text("alter table account_gate rename to gone"))
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await accounts.ConnectAccount(connection())
    assert failed.value.code() is Code.INTERNAL
    assert "account_gate" not in repr(failed.value)
    assert CANARY not in f"{answer!r} {failed.value!r} {failed.value.trailing_metadata()!r}"
    assert CANARY not in caplog.text
    assert not [record for record in caplog.records if CANARY in repr(record.__dict__)]
    for table in ("social_account", "outbox", "request_ledger", "dead_letter"):
        for row in await rows(database, f"select t::text as shown from {table} t"):  # noqa: S608
            assert CANARY not in row.shown
            assert CANARY.encode().hex() not in row.shown
