"""Queue's calls to Publisher: posts are taken back and accounts held only when Publisher says so."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

import pytest

from postflow.publisher.v1 import post_job_pb2, publisher_service_pb2
from postflow.publisher.v1.hold_pb2 import HOLD_SCOPE_ACCOUNT
from postflow.publisher.v1.publisher_service_pb2 import (
    CANCEL_OUTCOME_CANCELED,
    CANCEL_OUTCOME_ENDED,
    CANCEL_OUTCOME_TOO_LATE,
    CancelPostJobsRequest,
    CancelPostJobsResponse,
    CancelResult,
    PutHoldRequest,
    PutHoldResponse,
    ReleaseHoldRequest,
    ReleaseHoldResponse,
)
from postflow.publisher.v1.publisher_service_pb2_grpc import (
    PublisherServiceServicer,
    add_PublisherServiceServicer_to_server,
)
from postflow.publisher.v1.social_account_pb2 import (
    SOCIAL_ACCOUNT_STATE_CONNECTED,
    SOCIAL_ACCOUNT_STATE_DISCONNECTED,
    SocialAccount,
    SocialAccountState,
)
from postflow.publisher.v1.social_account_service_pb2 import GetAccountRequest, GetAccountResponse
from postflow.publisher.v1.social_account_service_pb2_grpc import (
    SocialAccountServiceServicer,
    add_SocialAccountServiceServicer_to_server,
)
from queue_service.adapters.publisher_client import PublisherClient
from queue_service.domain.account import Connection
from queue_service.domain.hold import Hold, HoldSuperseded
from queue_service.domain.job import JobState
from queue_service.domain.slot import TakingBack
from queue_service.domain.take_back import CancelOutcome, SlotPost
from servicekit.faults import DeadlineExceeded, Fault, NotFound, Refused, Unavailable
from servicekit.ids import Uuid7Source
from servicekit.rpc import RpcServer, open_channel

Context = Any
JOB: dict[str, Any] = {
    "id": "j1",
    "draft_id": "d1",
    "version": 7,
    "slot_id": "s1",
    "slot_revision": 2,
    "target": {"social_account_id": "page"},
}
CANCELED: dict[str, Any] = {"state": post_job_pb2.POST_JOB_STATE_CANCELED, "state_reason": "TAKEN_BACK"}
HOLD = Hold(organization_id="acme", social_account_id="page", revision=3, in_force=True, reason="why", holder="who")


def post(slot_id: str = "s1", revision: int = 2) -> SlotPost:
    return SlotPost(
        organization_id="acme",
        social_account_id="page",
        slot_id=slot_id,
        slot_revision=revision,
        slot_sequence=5,
        draft_id="d1",
        channel="facebook",
        destination="42",
        purpose=TakingBack.RETURN,
        reason="",
    )


@dataclass
class Publisher(PublisherServiceServicer):
    """Answers with what it is given."""

    results: list[CancelResult] = field(default_factory=list)
    fault: Fault | None = None
    asked: list[Any] = field(default_factory=list)

    async def CancelPostJobs(self, request: CancelPostJobsRequest, context: Context) -> CancelPostJobsResponse:
        self._take(request)
        return CancelPostJobsResponse(results=self.results)

    async def PutHold(self, request: PutHoldRequest, context: Context) -> PutHoldResponse:
        self._take(request)
        return PutHoldResponse(in_flight_post_job_ids=["j1"])

    async def ReleaseHold(self, request: ReleaseHoldRequest, context: Context) -> ReleaseHoldResponse:
        self._take(request)
        return ReleaseHoldResponse()

    def _take(self, request: object) -> None:
        self.asked.append(request)
        if self.fault:
            raise self.fault

    async def GetPostJob(self, request: object, context: Context) -> NoReturn:
        raise AssertionError("Queue does not ask for it")

    ListPostJobs = WithdrawContent = ResolvePostJob = ListHolds = GetPostJob


@asynccontextmanager
async def client_of(*servicers: tuple[Callable[[Any, Any], None], Any]) -> AsyncIterator[PublisherClient]:
    async with AsyncExitStack() as stack:
        server = RpcServer(listen="127.0.0.1:0", servicers=servicers, ids=Uuid7Source())
        await server.start()
        await server.set_serving(serving=True)
        stack.push_async_callback(server.stop, 0.0)
        yield PublisherClient(await stack.enter_async_context(open_channel(f"127.0.0.1:{server.port}")))


@asynccontextmanager
async def client(publisher: Publisher) -> AsyncIterator[PublisherClient]:
    async with client_of((add_PublisherServiceServicer_to_server, publisher)) as made:
        yield made


def result(outcome: publisher_service_pb2.CancelOutcome, **job: Any) -> CancelResult:
    return CancelResult(outcome=outcome, post_job=post_job_pb2.PostJob(**JOB | job))


async def test_each_post_has_an_outcome_and_a_report() -> None:
    publisher = Publisher(  # type: ignore[abstract]  # serves what is asked here
        [
            result(CANCEL_OUTCOME_CANCELED, **CANCELED),
            result(CANCEL_OUTCOME_TOO_LATE, state=post_job_pb2.POST_JOB_STATE_SENDING),
            result(CANCEL_OUTCOME_ENDED, state=post_job_pb2.POST_JOB_STATE_MISSED),
        ]
    )
    async with client(publisher) as made:
        answers = await made.cancel_posts("acme", [post()] * 3)
    assert [answer.outcome for answer in answers] == list(CancelOutcome)
    assert [answer.job.state for answer in answers] == [JobState.CANCELED, JobState.SENDING, JobState.MISSED]
    first = answers[0].job
    assert (first.slot_key, first.slot_revision, first.version) == (("acme", "s1"), 2, 7)
    [asked] = publisher.asked
    [named] = {each.SerializeToString() for each in asked.posts}
    assert publisher_service_pb2.SlotPost.FromString(named) == publisher_service_pb2.SlotPost(
        draft_id="d1",
        target={"social_account_id": "page", "channel": "facebook", "destination": "42"},
        slot_id="s1",
        slot_revision=2,
        slot_sequence=5,
    )


@pytest.mark.parametrize(
    "job",
    [
        {"state_reason": "TARGET_REMOVED"},
        {"slot_revision": 3},
        {"slot_id": "s2"},
        {"state": post_job_pb2.POST_JOB_STATE_SCHEDULED, "state_reason": ""},
    ],
)
async def test_what_was_canceled_otherwise_is_not_taken_back(job: dict[str, Any]) -> None:
    async with client(Publisher([result(CANCEL_OUTCOME_CANCELED, **CANCELED | job)])) as made:  # type: ignore[abstract]  # serves what is asked here
        [answer] = await made.cancel_posts("acme", [post()])
    assert answer.outcome is CancelOutcome.ENDED


@pytest.mark.parametrize(
    "results",
    [
        [],
        [CancelResult(outcome=CANCEL_OUTCOME_CANCELED)],
        [CancelResult(post_job=post_job_pb2.PostJob(**JOB | CANCELED))],
    ],
    ids=["none", "without job", "without outcome"],
)
async def test_an_incomplete_answer_is_none(results: list[CancelResult]) -> None:
    async with client(Publisher(results)) as made:  # type: ignore[abstract]  # serves what is asked here
        with pytest.raises(Unavailable):
            await made.cancel_posts("acme", [post()])


@pytest.mark.parametrize(
    "fault",
    [Unavailable("DATABASE_DOWN", "no"), DeadlineExceeded("DEADLINE_EXCEEDED", "no"), Refused("NEW", "no")],
)
async def test_without_an_answer_nothing_counts_as_done(fault: Fault) -> None:
    async with client(Publisher(fault=fault)) as made:  # type: ignore[abstract]  # serves what is asked here
        with pytest.raises(Unavailable):
            await made.cancel_posts("acme", [post()])
        with pytest.raises(Unavailable):
            await made.put_hold(HOLD)
        with pytest.raises(Unavailable):
            await made.release_hold(HOLD)


async def test_a_hold_without_an_answer_says_what_the_queue_does_meanwhile() -> None:
    async with client(Publisher(fault=Unavailable("DATABASE_DOWN", "no"))) as made:  # type: ignore[abstract]  # serves what is asked here
        with pytest.raises(Unavailable, match=r"the queue is paused, but .* may still start; repeat the request"):
            await made.put_hold(HOLD)
        with pytest.raises(Unavailable, match=r"the queue is resumed, but .* does not post yet; repeat the request"):
            await made.release_hold(HOLD)


async def test_the_previous_release_takes_nothing_back() -> None:
    async with client_of() as made:
        for call in (made.cancel_posts("acme", [post()]), made.put_hold(HOLD), made.release_hold(HOLD)):
            with pytest.raises(Unavailable):
                await call


async def test_a_hold_covers_the_account_and_says_why() -> None:
    publisher = Publisher()  # type: ignore[abstract]  # serves what is asked here
    async with client(publisher) as made:
        assert await made.put_hold(HOLD) == ("j1",)
        await made.release_hold(HOLD)
    put, released = publisher.asked
    assert (put.hold_id, put.scope, put.scope_id, put.revision) == ("queue-page", HOLD_SCOPE_ACCOUNT, "page", 3)
    assert (put.reason, put.holder) == ("why", "who")
    assert (released.hold_id, released.revision) == ("queue-page", 3)


async def test_a_newer_revision_of_the_hold_is_named() -> None:
    async with client(Publisher(fault=Refused("HOLD_SUPERSEDED", "no", metadata={"revision": "9"}))) as made:  # type: ignore[abstract]  # serves what is asked here
        with pytest.raises(HoldSuperseded) as newer:
            await made.put_hold(HOLD)
        assert newer.value.revision == 9
        with pytest.raises(HoldSuperseded):
            await made.release_hold(HOLD)


@dataclass
class Accounts(SocialAccountServiceServicer):
    """Knows one account."""

    account: SocialAccount = field(default_factory=SocialAccount)
    fault: Fault | None = None
    asked: list[GetAccountRequest] = field(default_factory=list)

    async def GetAccount(self, request: GetAccountRequest, context: Context) -> GetAccountResponse:
        self.asked.append(request)
        if self.fault:
            raise self.fault
        return GetAccountResponse(social_account=self.account)

    async def ConnectAccount(self, request: object, context: Context) -> NoReturn:
        raise AssertionError("Queue does not ask for it")

    ListAccounts = ConnectAccount


def client_of_accounts(accounts: Accounts) -> AbstractAsyncContextManager[PublisherClient]:
    return client_of((add_SocialAccountServiceServicer_to_server, accounts))


@pytest.mark.parametrize(
    ("state", "is_connected"),
    [(SOCIAL_ACCOUNT_STATE_CONNECTED, True), (SOCIAL_ACCOUNT_STATE_DISCONNECTED, False)],
)
async def test_an_account_is_connected_or_not(state: SocialAccountState, is_connected: bool) -> None:
    accounts = Accounts(SocialAccount(id="page", state=state, version=4))  # type: ignore[abstract]  # serves what is asked here
    async with client_of_accounts(accounts) as made:
        found = await made.find_connection("acme", "page")
        assert await made.is_connected("acme", "page") == is_connected
    assert found == Connection(organization_id="acme", social_account_id="page", version=4, is_connected=is_connected)
    asked = GetAccountRequest(organization_id="acme", social_account_id="page")
    assert accounts.asked == [asked, asked]


@pytest.mark.parametrize("fault", [NotFound("ACCOUNT_NOT_FOUND", "no"), Unavailable("DATABASE_DOWN", "no")])
async def test_a_refusal_to_say_what_an_account_is_reaches_the_caller(fault: Fault) -> None:
    async with client_of_accounts(Accounts(fault=fault)) as made:  # type: ignore[abstract]  # serves what is asked here
        with pytest.raises(type(fault)) as raised:
            await made.find_connection("acme", "page")
    assert raised.value.reason == fault.reason


async def test_a_publisher_without_accounts_says_nothing_of_them() -> None:
    async with client_of() as made:
        assert await made.find_connection("acme", "page") is None
        assert await made.is_connected("acme", "page")
