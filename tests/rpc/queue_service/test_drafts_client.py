"""Queue's questions to Drafts: those in flight at the same time are asked together."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

import grpc
import pytest

from postflow.drafts.v1.draft_pb2 import Draft as DraftMessage
from postflow.drafts.v1.draft_targets_service_pb2 import (
    DraftTargets,
    FindDraftTargetsRequest,
    FindDraftTargetsResponse,
)
from postflow.drafts.v1.draft_targets_service_pb2_grpc import (
    DraftTargetsServiceServicer,
    add_DraftTargetsServiceServicer_to_server,
)
from postflow.drafts.v1.drafts_service_pb2 import GetDraftRequest, GetDraftResponse
from postflow.drafts.v1.drafts_service_pb2_grpc import DraftsServiceServicer, add_DraftsServiceServicer_to_server
from postflow.target.v1.target_pb2 import Target
from queue_service.adapters.drafts_client import DraftsClient
from queue_service.domain.draft import Draft
from servicekit.faults import DeadlineExceeded, LimitReached, NotFound, Unavailable
from servicekit.ids import Uuid7Source
from servicekit.rpc import RpcServer, open_channel

Context = Any
FEED = Target(social_account_id="page", channel="facebook")


@dataclass
class NewDrafts(DraftTargetsServiceServicer):
    """Knows all drafts but those missing. Answers at once, or once it may; at most `limit` drafts at a time."""

    missing: set[str] = field(default_factory=set)
    asked: list[list[tuple[str, str]]] = field(default_factory=list)
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)
    limit: int = 20

    async def FindDraftTargets(self, request: FindDraftTargetsRequest, context: Context) -> FindDraftTargetsResponse:
        self.asked.append([(each.organization_id, each.draft_id) for each in request.drafts])
        await self.may_answer.wait()
        if len(request.drafts) > self.limit:
            raise LimitReached("RESPONSE_TOO_LARGE", "ask for less")
        return FindDraftTargetsResponse(
            drafts=[
                DraftTargets(organization_id=each.organization_id, draft_id=each.draft_id, revision=3, targets=[FEED])
                for each in request.drafts
                if each.draft_id not in self.missing
            ]
        )


class OldDrafts(DraftsServiceServicer):
    async def GetDraft(self, request: GetDraftRequest, context: Context) -> GetDraftResponse:
        if request.draft_id == "missing":
            raise NotFound("DRAFT_NOT_FOUND", "no")
        approved = request.draft_id == "approved"
        return GetDraftResponse(draft=DraftMessage(id=request.draft_id, revision=2, targets=[FEED], approved=approved))

    async def CreateDraft(self, request: object, context: Context) -> NoReturn:
        raise AssertionError("Queue changes no draft")

    UpdateDraft = ApproveDraft = BatchCreateDrafts = BatchApproveDrafts = CreateDraft


@asynccontextmanager
async def client_of(servicers: Sequence[tuple[Callable[[Any, Any], None], Any]]) -> AsyncIterator[DraftsClient]:
    async with AsyncExitStack() as stack:
        server = RpcServer(listen="127.0.0.1:0", servicers=servicers, ids=Uuid7Source())
        await server.start()
        await server.set_serving(serving=True)
        stack.push_async_callback(server.stop, 0.0)
        yield DraftsClient(await stack.enter_async_context(open_channel(f"127.0.0.1:{server.port}")))


async def ask(client: DraftsClient, *keys: tuple[str, str], is_optional: bool = False) -> list[Draft | NotFound]:
    async def one(key: tuple[str, str]) -> Draft | NotFound:
        try:
            return await client.get_draft(*key, is_optional=is_optional)
        except NotFound as fault:
            return fault

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(key)) for key in keys]
    return [task.result() for task in tasks]


def keys(count: int) -> list[tuple[str, str]]:
    return [(f"org-{number % 3}", f"draft-{number}") for number in range(count)]


def names(found: Sequence[Draft | NotFound]) -> list[tuple[str, str] | None]:
    return [each.key if isinstance(each, Draft) else None for each in found]


async def test_calls_in_flight_ask_together_for_any_tenants() -> None:
    drafts = NewDrafts(missing={"draft-7"})
    async with client_of([(add_DraftTargetsServiceServicer_to_server, drafts)]) as client:
        drafts.may_answer.set()
        found = await ask(client, *keys(20))
    assert names(found) == [None if key[1] == "draft-7" else key for key in keys(20)]
    assert sum(len(each) for each in drafts.asked) == 20
    assert len(drafts.asked) <= 4
    assert {each.revision for each in found if isinstance(each, Draft)} == {3}


async def test_a_lone_call_that_finds_nothing_says_so() -> None:
    drafts = NewDrafts(missing={"d1"})
    drafts.may_answer.set()
    async with client_of([(add_DraftTargetsServiceServicer_to_server, drafts)]) as client:
        [missing] = await ask(client, ("acme", "d1"))
    assert isinstance(missing, NotFound)
    assert missing.reason == "DRAFT_NOT_FOUND"


async def test_drafts_too_large_for_one_answer_are_asked_for_alone() -> None:
    drafts = NewDrafts(limit=1)
    drafts.may_answer.set()
    async with client_of([(add_DraftTargetsServiceServicer_to_server, drafts)]) as client:
        assert names(await ask(client, *keys(6))) == keys(6)


async def test_an_optional_answer_is_waited_for_a_second() -> None:
    drafts = NewDrafts()
    async with client_of([(add_DraftTargetsServiceServicer_to_server, drafts)]) as client:
        with pytest.raises(DeadlineExceeded):
            await client.get_draft("acme", "d1", is_optional=True)
        drafts.may_answer.set()


async def test_the_previous_release_of_drafts_is_asked_one_by_one() -> None:
    async with client_of([(add_DraftsServiceServicer_to_server, OldDrafts())]) as client:
        found = await ask(client, ("acme", "d1"), ("acme", "missing"), ("umbrella", "d2"))
    assert names(found) == [("acme", "d1"), None, ("umbrella", "d2")]


async def test_all_callers_learn_that_drafts_is_away(free_port: Callable[[], int]) -> None:
    async with open_channel(f"127.0.0.1:{free_port()}") as channel:
        client = DraftsClient(channel)
        with pytest.raises(ExceptionGroup) as away:
            await ask(client, *keys(3))
    assert {type(each) for each in away.value.exceptions} <= {Unavailable, DeadlineExceeded}
    assert isinstance(channel, grpc.aio.Channel)


async def test_drafts_says_whether_a_draft_is_approved() -> None:
    async with client_of([(add_DraftsServiceServicer_to_server, OldDrafts())]) as client:
        assert await client.is_approved("acme", "approved") is True
        assert await client.is_approved("acme", "d1") is False
        with pytest.raises(NotFound):
            await client.is_approved("acme", "missing")
