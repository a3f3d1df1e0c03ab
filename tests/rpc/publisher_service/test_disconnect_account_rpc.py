"""DisconnectAccount as its callers see it: the answer, repeats and each refusal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import grpc
import pytest

from postflow.publisher.v1 import social_account_pb2
from postflow.publisher.v1 import social_account_service_pb2 as pb
from testkit.refusals import fields_at_fault, refusal_of
from tests.rpc.publisher_service.raw import raw_refusal

if TYPE_CHECKING:
    from postflow.publisher.v1.social_account_service_pb2_grpc import SocialAccountServiceAsyncStub

CANARY = "sandbox-canary-7"


def connecting(**more: Any) -> pb.ConnectAccountRequest:
    named: dict[str, Any] = {
        "organization_id": "acme",
        "social_account_id": "page",
        "provider": "sandbox",
        "external_account_id": "ext-1",
        "credentials": pb.Credentials(access_token=CANARY),
    }
    return pb.ConnectAccountRequest(**named | more)


def disconnecting(**more: Any) -> pb.DisconnectAccountRequest:
    return pb.DisconnectAccountRequest(**{"organization_id": "acme", "social_account_id": "page"} | more)


@pytest.fixture(autouse=True)
async def page(accounts: SocialAccountServiceAsyncStub) -> None:
    await accounts.ConnectAccount(connecting())


async def test_a_disconnected_account_says_why_and_when(accounts: SocialAccountServiceAsyncStub) -> None:
    answer = await accounts.DisconnectAccount(disconnecting(note="she left"))
    gone = answer.social_account
    assert (gone.state, gone.state_reason, gone.error_message) == (
        social_account_pb2.SOCIAL_ACCOUNT_STATE_DISCONNECTED,
        "DISCONNECTED_BY_REQUEST",
        "she left",
    )
    assert gone.HasField("disconnect_time")
    assert (gone.version, list(answer.in_flight_post_job_ids)) == (2, [])
    read = await accounts.GetAccount(pb.GetAccountRequest(organization_id="acme", social_account_id="page"))
    assert read.social_account == gone
    assert CANARY not in repr(answer)


async def test_a_repeated_request_gets_the_first_answer(accounts: SocialAccountServiceAsyncStub) -> None:
    first = await accounts.DisconnectAccount(disconnecting(request_id="r1"))
    await accounts.ConnectAccount(connecting())
    assert await accounts.DisconnectAccount(disconnecting(request_id="r1")) == first
    read = await accounts.GetAccount(pb.GetAccountRequest(organization_id="acme", social_account_id="page"))
    assert read.social_account.state == social_account_pb2.SOCIAL_ACCOUNT_STATE_CONNECTED
    code, fault = await refusal_of(accounts.DisconnectAccount(disconnecting(request_id="r1", note="other")))
    assert (code, fault.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "REQUEST_ID_REUSED")


async def test_an_account_that_is_disconnected_stays_as_it_is(accounts: SocialAccountServiceAsyncStub) -> None:
    first = await accounts.DisconnectAccount(disconnecting(note="she left"))
    assert await accounts.DisconnectAccount(disconnecting(note="again")) == first


async def test_a_foreign_account_is_refused_like_an_unknown_one(accounts: SocialAccountServiceAsyncStub) -> None:
    code, fault = await refusal_of(accounts.DisconnectAccount(disconnecting(organization_id="other")))
    assert (code, fault.reason) == (grpc.StatusCode.NOT_FOUND, "ACCOUNT_NOT_FOUND")
    foreign = await raw_refusal(accounts.DisconnectAccount(disconnecting(organization_id="other")))
    assert foreign == await raw_refusal(accounts.DisconnectAccount(disconnecting(organization_id="nobody")))
    read = await accounts.GetAccount(pb.GetAccountRequest(organization_id="acme", social_account_id="page"))
    assert read.social_account.state == social_account_pb2.SOCIAL_ACCOUNT_STATE_CONNECTED


async def test_the_same_identity_comes_back_and_no_other(accounts: SocialAccountServiceAsyncStub) -> None:
    gone = (await accounts.DisconnectAccount(disconnecting())).social_account
    code, fault = await refusal_of(accounts.ConnectAccount(connecting(external_account_id="ext-2")))
    assert (code, fault.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "EXTERNAL_ACCOUNT_CHANGED")
    again = (await accounts.ConnectAccount(connecting())).social_account
    assert (again.create_time, again.version, again.state_reason) == (gone.create_time, 3, "")


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"social_account_id": ""}, "social_account_id"),
        ({"note": "n" * 501}, "note"),
        ({"request_id": "/"}, "request_id"),
    ],
    ids=["no account", "long note", "bad request id"],
)
async def test_an_invalid_request_names_its_field(
    accounts: SocialAccountServiceAsyncStub, more: dict[str, str], field: str
) -> None:
    code, fault = await refusal_of(accounts.DisconnectAccount(disconnecting(**more)))
    assert (code, fields_at_fault(fault)) == (grpc.StatusCode.INVALID_ARGUMENT, [field])
