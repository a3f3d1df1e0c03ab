"""Drafts asks Publisher about accounts that no event has named, over real gRPC on both sides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import pytest

from postflow.drafts.v1 import drafts_service_pb2 as pb
from postflow.drafts.v1.draft_pb2 import Draft, DraftContent
from postflow.publisher.v1.social_account_pb2 import SOCIAL_ACCOUNT_STATE_CONNECTED, SocialAccount
from postflow.publisher.v1.social_account_service_pb2 import GetAccountRequest, GetAccountResponse
from postflow.publisher.v1.social_account_service_pb2_grpc import (
    SocialAccountServiceServicer,
    add_SocialAccountServiceServicer_to_server,
)
from postflow.target.v1.target_pb2 import Target
from servicekit.faults import NotFound
from servicekit.ids import Uuid7Source
from servicekit.rpc import RpcServer

if TYPE_CHECKING:
    from postflow.drafts.v1.drafts_service_pb2_grpc import DraftsServiceAsyncStub


class FakeAccounts(SocialAccountServiceServicer):
    """Has the account `page`; `slow` never gets an answer, `defect` raises, all others are not found."""

    async def GetAccount(self, request: GetAccountRequest, context: Any) -> GetAccountResponse:
        match request.social_account_id:
            case "page":
                account = SocialAccount(id="page", version=1, state=SOCIAL_ACCOUNT_STATE_CONNECTED)
                return GetAccountResponse(social_account=account)
            case "slow":
                await asyncio.Event().wait()
            case "defect":
                raise RuntimeError("a defect")
        raise NotFound("SOCIAL_ACCOUNT_NOT_FOUND", "there is no such account")

    def ConnectAccount(self, request: object, context: object) -> Any:
        raise NotImplementedError

    def ListAccounts(self, request: object, context: object) -> Any:
        raise NotImplementedError


@pytest.fixture
async def publisher(publisher_port: int) -> AsyncIterator[None]:
    server = RpcServer(
        listen=f"127.0.0.1:{publisher_port}",
        servicers=[(add_SocialAccountServiceServicer_to_server, FakeAccounts())],  # type: ignore[abstract]  # serves what is asked here
        ids=Uuid7Source(),
    )
    await server.start()
    await server.set_serving(serving=True)
    yield
    await server.stop(0)


async def created(drafts: DraftsServiceAsyncStub, *accounts: str) -> dict[str, str]:
    draft = Draft(
        content=DraftContent(text="text"),
        targets=[Target(social_account_id=account, channel="facebook") for account in accounts],
    )
    answer = await drafts.CreateDraft(pb.CreateDraftRequest(organization_id="org", draft=draft))
    return {each.target.social_account_id: each.state_reason for each in answer.draft.target_states}


@pytest.mark.usefixtures("publisher")
async def test_a_missing_account_is_named_at_creation(drafts: DraftsServiceAsyncStub) -> None:
    assert await created(drafts, "page", "acme-pgae") == {"page": "", "acme-pgae": "ACCOUNT_NOT_FOUND"}


@pytest.mark.usefixtures("publisher")
async def test_a_slow_or_broken_answer_gives_no_reason(drafts: DraftsServiceAsyncStub) -> None:
    assert await created(drafts, "slow", "defect", "page") == {"slow": "", "defect": "", "page": ""}


async def test_drafts_are_created_while_publisher_is_down(drafts: DraftsServiceAsyncStub) -> None:
    assert await created(drafts, "page") == {"page": ""}
