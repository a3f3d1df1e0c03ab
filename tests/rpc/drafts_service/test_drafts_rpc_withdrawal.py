"""UpdateDraft against a Publisher that is up, down, slow or broken, over real gRPC on both sides."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp
from sqlalchemy import text

from postflow.drafts.v1 import drafts_service_pb2 as pb
from postflow.drafts.v1.draft_pb2 import DRAFT_STATE_PUBLISHED, Draft, DraftContent
from postflow.publisher.v1.publisher_service_pb2 import (
    WITHDRAW_OUTCOME_PUBLISHED,
    WITHDRAW_OUTCOME_TOO_LATE,
    WITHDRAW_OUTCOME_UNSPECIFIED,
    WITHDRAW_OUTCOME_WITHDRAWN,
    PublishedTarget,
    WithdrawContentRequest,
    WithdrawContentResponse,
)
from postflow.publisher.v1.publisher_service_pb2_grpc import (
    PublisherServiceServicer,
    add_PublisherServiceServicer_to_server,
)
from postflow.target.v1.target_pb2 import Target
from servicekit.faults import InvalidField, LimitReached, Refused
from servicekit.ids import Uuid7Source
from servicekit.pg.database import Database
from servicekit.rpc import RpcServer
from testkit.eventually import eventually
from testkit.refusals import refusal_of

if TYPE_CHECKING:
    from postflow.drafts.v1.drafts_service_pb2_grpc import DraftsServiceAsyncStub


@dataclass
class FakePublisher(PublisherServiceServicer):
    """Answers `WithdrawContent` alone; records the requests, and what Drafts had committed when they came."""

    database: Database
    answer: WithdrawContentResponse | Exception = field(
        default_factory=lambda: WithdrawContentResponse(outcome=WITHDRAW_OUTCOME_WITHDRAWN)
    )
    asked: list[WithdrawContentRequest] = field(default_factory=list)
    committed: list[tuple[str, int | None]] = field(default_factory=list)

    async def WithdrawContent(self, request: WithdrawContentRequest, context: Any) -> WithdrawContentResponse:
        self.asked.append(request)
        async with self.database.read() as connection:
            row = (await connection.execute(text("select content, withdraw_below from draft"))).one()
        self.committed.append((DraftContent.FromString(row.content).text, row.withdraw_below))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def GetPostJob(self, request: object, context: object) -> Any:
        raise NotImplementedError

    def ListPostJobs(self, request: object, context: object) -> Any:
        raise NotImplementedError

    def ResolvePostJob(self, request: object, context: object) -> Any:
        raise NotImplementedError

    def CancelPostJobs(self, request: object, context: object) -> Any:
        raise NotImplementedError

    def PutHold(self, request: object, context: object) -> Any:
        raise NotImplementedError

    def ReleaseHold(self, request: object, context: object) -> Any:
        raise NotImplementedError

    def ListHolds(self, request: object, context: object) -> Any:
        raise NotImplementedError


@pytest.fixture
async def publisher(database: Database, publisher_port: int) -> AsyncIterator[FakePublisher]:
    fake = FakePublisher(database)  # type: ignore[abstract]  # serves what is asked here
    server = await started(fake, publisher_port)
    yield fake
    await server.stop(0)


async def started(fake: FakePublisher, port: int) -> RpcServer:
    server = RpcServer(
        listen=f"127.0.0.1:{port}", servicers=[(add_PublisherServiceServicer_to_server, fake)], ids=Uuid7Source()
    )
    await server.start()
    await server.set_serving(serving=True)
    return server


@pytest.fixture
async def approved(drafts: DraftsServiceAsyncStub) -> Draft:
    draft = Draft(content=DraftContent(text="old"), targets=[Target(social_account_id="account", channel="facebook")])
    await drafts.CreateDraft(pb.CreateDraftRequest(organization_id="org", draft_id="draft", draft=draft))
    answer = await drafts.ApproveDraft(pb.ApproveDraftRequest(organization_id="org", draft_id="draft", approver="ann"))
    return answer.draft


def change(etag: str) -> pb.UpdateDraftRequest:
    return pb.UpdateDraftRequest(
        organization_id="org",
        draft=Draft(id="draft", content=DraftContent(text="new"), etag=etag),
        update_mask=FieldMask(paths=["content.text"]),
        request_id="request",
    )


async def assert_withdraw_is_pending(drafts: DraftsServiceAsyncStub, etag: str) -> None:
    code, fault = await refusal_of(drafts.UpdateDraft(change(etag)))
    assert (code, fault.reason) == (grpc.StatusCode.UNAVAILABLE, "WITHDRAW_PENDING")
    assert fault.metadata == {"draft_id": "draft", "revision": "2"}
    assert fault.retry_after
    assert fault.retry_after > timedelta(0)


async def test_publisher_forbids_older_revisions_before_the_edit_is_made(
    drafts: DraftsServiceAsyncStub, publisher: FakePublisher, approved: Draft
) -> None:
    answer = await drafts.UpdateDraft(change(approved.etag))
    assert publisher.asked == [WithdrawContentRequest(organization_id="org", draft_id="draft", below_revision=2)]
    assert publisher.committed == [("old", 2)]
    assert (answer.draft.revision, answer.draft.approved, list(answer.in_flight_post_job_ids)) == (2, False, [])


async def test_jobs_in_flight_are_listed(
    drafts: DraftsServiceAsyncStub, publisher: FakePublisher, approved: Draft
) -> None:
    publisher.answer = WithdrawContentResponse(
        outcome=WITHDRAW_OUTCOME_TOO_LATE, in_flight_post_job_ids=["job-1", "job-2"]
    )
    answer = await drafts.UpdateDraft(change(approved.etag))
    assert list(answer.in_flight_post_job_ids) == ["job-1", "job-2"]
    assert await drafts.UpdateDraft(change(approved.etag)) == answer
    assert len(publisher.asked) == 1


async def test_the_same_request_completes_an_edit_after_an_outage(
    drafts: DraftsServiceAsyncStub, approved: Draft, database: Database, publisher_port: int
) -> None:
    await assert_withdraw_is_pending(drafts, approved.etag)
    assert (await drafts.GetDraft(pb.GetDraftRequest(organization_id="org", draft_id="draft"))).draft == approved
    fake = FakePublisher(database)  # type: ignore[abstract]  # serves what is asked here
    server = await started(fake, publisher_port)

    async def completed() -> pb.UpdateDraftResponse | None:
        try:
            return await drafts.UpdateDraft(change(approved.etag))
        except grpc.aio.AioRpcError:
            return None

    # The channel has yet to notice that the server listens now.
    answer = await eventually(completed)
    assert answer
    assert (answer.draft.content.text, answer.draft.approved, answer.draft.revision) == ("new", False, 2)
    assert {asked.below_revision for asked in fake.asked} == {2}
    await server.stop(0)


@pytest.mark.parametrize(
    "answer",
    [
        RuntimeError("a defect"),
        InvalidField("draft_id", "a defect in Drafts"),
        LimitReached("BUSY", "come back later"),
        WithdrawContentResponse(outcome=WITHDRAW_OUTCOME_UNSPECIFIED),
        WithdrawContentResponse(outcome=WITHDRAW_OUTCOME_PUBLISHED),
        Refused("REVISION_NOT_KNOWN", "not announced here yet"),
    ],
    ids=["defect", "refusal", "busy", "unknown outcome", "no evidence", "not announced"],
)
async def test_any_other_answer_leaves_the_withdrawal_pending(
    drafts: DraftsServiceAsyncStub,
    approved: Draft,
    publisher: FakePublisher,
    answer: WithdrawContentResponse | Exception,
) -> None:
    publisher.answer, confirmation = answer, publisher.answer
    await assert_withdraw_is_pending(drafts, approved.etag)
    publisher.answer = confirmation
    assert (await drafts.UpdateDraft(change(approved.etag))).draft.revision == 2


async def test_the_refusal_of_a_published_draft_names_its_post(
    drafts: DraftsServiceAsyncStub, publisher: FakePublisher, approved: Draft
) -> None:
    out = PublishedTarget(
        post_job_id="job",
        target=approved.targets[0],
        content_revision=1,
        publish_time=Timestamp(seconds=1_772_442_000),
        external_url="https://social.example/1",
        version=4,
    )
    publisher.answer = WithdrawContentResponse(outcome=WITHDRAW_OUTCOME_PUBLISHED, published=[out])
    code, fault = await refusal_of(drafts.UpdateDraft(change(approved.etag)))
    assert (code, fault.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "DRAFT_PUBLISHED")
    assert fault.metadata == {
        "draft_id": "draft",
        "post_job_id": "job",
        "external_url": "https://social.example/1",
        "publish_time": "2026-03-02T09:00:00+00:00",
    }
    after = (await drafts.GetDraft(pb.GetDraftRequest(organization_id="org", draft_id="draft"))).draft
    assert (after.content.text, after.approved, after.state) == ("old", True, DRAFT_STATE_PUBLISHED)
    (target,) = after.target_states
    assert (target.post_job_state, target.external_url) == ("PUBLISHED", "https://social.example/1")


async def test_an_approved_draft_stays_approved_while_its_edit_is_pending(
    drafts: DraftsServiceAsyncStub, approved: Draft
) -> None:
    await assert_withdraw_is_pending(drafts, approved.etag)
    again = await drafts.ApproveDraft(pb.ApproveDraftRequest(organization_id="org", draft_id="draft", approver="bob"))
    assert again.draft == approved
