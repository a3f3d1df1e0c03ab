"""PublishNow as a client sees it: an outcome for each target, and every refusal."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from sqlalchemy import text

from postflow.drafts.v1.draft_pb2 import ChannelMedia, DraftContent, Media
from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from postflow.publisher.v1 import publisher_service_pb2 as pb
from postflow.publisher.v1.hold_pb2 import HOLD_SCOPE_ACCOUNT
from postflow.publisher.v1.post_job_pb2 import POST_JOB_STATE_PENDING, POST_JOB_STATE_READY
from postflow.publisher.v1.social_account_service_pb2 import ConnectAccountRequest, Credentials
from postflow.target.v1.target_pb2 import Target
from servicekit.clock import SystemClock
from servicekit.pg.database import Database
from testkit.refusals import fields_at_fault, refusal_of

if TYPE_CHECKING:
    from postflow.publisher.v1.publisher_service_pb2_grpc import PublisherServiceAsyncStub
    from postflow.publisher.v1.social_account_service_pb2_grpc import SocialAccountServiceAsyncStub

Code = grpc.StatusCode
CONTENT = DraftContent(text="hello").SerializeToString()
BLANK = DraftContent(text=" \n\u200b").SerializeToString()
OTHER = DraftContent(text="bye").SerializeToString()
PAGE = Target(social_account_id="page", channel="facebook")
AWAY = Target(social_account_id="away", channel="facebook")


def a_draft(*targets: Target, **changes: Any) -> DraftSaved:
    fields: dict[str, Any] = {
        "draft_id": "d1",
        "version": 3,
        "revision": 2,
        "content": CONTENT,
        "content_digest": hashlib.sha256(CONTENT).hexdigest(),
        "approved": True,
        "targets": targets or (PAGE,),
    }
    return DraftSaved(**fields | changes)


def publishing(draft: DraftSaved | None = None, **changes: Any) -> pb.PublishNowRequest:
    fields: dict[str, Any] = {"organization_id": "acme", "draft": draft or a_draft()}
    return pb.PublishNowRequest(**fields | changes)


@pytest.fixture
async def page(accounts: SocialAccountServiceAsyncStub) -> None:
    """The account `page` is connected."""
    await accounts.ConnectAccount(
        ConnectAccountRequest(
            organization_id="acme",
            social_account_id="page",
            provider="sandbox",
            external_account_id="ext",
            credentials=Credentials(access_token="sandbox-token"),
        )
    )


async def jobs_in(database: Database) -> list[Any]:
    async with database.read() as connection:
        return list(await connection.execute(text("select * from post_job")))


@pytest.mark.usefixtures("page")
async def test_each_target_is_started_or_refused(publisher: PublisherServiceAsyncStub) -> None:
    answer = await publisher.PublishNow(publishing(a_draft(PAGE, AWAY, organization_id="acme")))
    started, refused = answer.results
    assert (started.outcome, started.reason) == (pb.PUBLISH_NOW_OUTCOME_STARTED, "")
    assert (started.post_job.state, started.post_job.publish_now) == (POST_JOB_STATE_READY, True)
    began = started.post_job.schedule_time.ToDatetime(UTC)
    assert started.post_job.not_after.ToDatetime(UTC) == began + timedelta(hours=1)
    assert (refused.outcome, refused.reason) == (pb.PUBLISH_NOW_OUTCOME_REFUSED, "ACCOUNT_NOT_CONNECTED")
    assert (refused.post_job.state, refused.post_job.publish_now) == (POST_JOB_STATE_PENDING, False)
    for each in answer.results:
        named = pb.GetPostJobRequest(organization_id="acme", post_job_id=each.post_job.id)
        assert (await publisher.GetPostJob(named)).post_job == each.post_job


@pytest.mark.usefixtures("page")
@pytest.mark.parametrize(
    "content",
    [
        DraftContent(media=[Media(url="https://cdn.example/1.jpg")]),
        DraftContent(
            text=" ", channel_media=[ChannelMedia(channel="facebook", media=[Media(url="https://cdn.example/1.jpg")])]
        ),
    ],
)
async def test_media_needs_no_text(publisher: PublisherServiceAsyncStub, content: DraftContent) -> None:
    encoded = content.SerializeToString()
    draft = a_draft(content=encoded, content_digest=hashlib.sha256(encoded).hexdigest())
    (result,) = (await publisher.PublishNow(publishing(draft))).results
    assert result.outcome == pb.PUBLISH_NOW_OUTCOME_STARTED


@pytest.mark.usefixtures("page")
async def test_some_targets_are_asked_for_in_any_spelling_and_order(publisher: PublisherServiceAsyncStub) -> None:
    feed = Target(social_account_id="page", channel="Instagram")
    until = SystemClock().now() + timedelta(minutes=5)
    request = publishing(a_draft(PAGE, AWAY, feed), targets=[feed, PAGE], not_after=until)
    answer = await publisher.PublishNow(request)
    assert [each.post_job.target.channel for each in answer.results] == ["instagram_feed", "facebook"]
    assert {each.post_job.not_after.ToDatetime(UTC) for each in answer.results} == {until}


@pytest.mark.usefixtures("page")
async def test_a_repeated_request_has_the_same_answer(publisher: PublisherServiceAsyncStub) -> None:
    first = await publisher.PublishNow(publishing(request_id="r1"))
    assert await publisher.PublishNow(publishing(request_id="r1")) == first
    code, fault = await refusal_of(publisher.PublishNow(publishing(a_draft(approved=False), request_id="r1")))
    assert (code, fault.reason) == (Code.INVALID_ARGUMENT, "REQUEST_ID_REUSED")


@pytest.mark.usefixtures("page")
async def test_content_that_may_not_be_sent_is_refused(
    publisher: PublisherServiceAsyncStub, database: Database
) -> None:
    code, fault = await refusal_of(publisher.PublishNow(publishing(a_draft(approved=False))))
    assert (code, fault.reason) == (Code.FAILED_PRECONDITION, "NOT_APPROVED")
    assert fault.metadata == {"draft_id": "d1"}
    assert await jobs_in(database) == []
    await publisher.PublishNow(publishing())
    before = await jobs_in(database)
    code, fault = await refusal_of(publisher.PublishNow(publishing(a_draft(version=1, revision=1))))
    assert (code, fault.reason) == (Code.FAILED_PRECONDITION, "REVISION_OUTDATED")
    assert fault.metadata == {"draft_id": "d1", "known_revision": "2"}
    await publisher.WithdrawContent(pb.WithdrawContentRequest(organization_id="acme", draft_id="d1", below_revision=3))
    code, fault = await refusal_of(publisher.PublishNow(publishing(a_draft(version=4))))
    assert (code, fault.reason) == (Code.FAILED_PRECONDITION, "CONTENT_WITHDRAWN")
    assert [(job.id, job.state) for job in await jobs_in(database)] == [(job.id, job.state) for job in before]


@pytest.mark.usefixtures("page")
@pytest.mark.parametrize(
    ("draft", "field"),
    [
        (a_draft(content=OTHER, content_digest=hashlib.sha256(OTHER).hexdigest()), "draft.revision"),
        (a_draft(content=OTHER, content_digest=hashlib.sha256(OTHER).hexdigest(), version=4), "draft.revision"),
        (a_draft(AWAY), "draft.revision"),
        (a_draft(PAGE, AWAY, version=4), "draft.revision"),
        (a_draft(revision=3), "draft.version"),
        (a_draft(AWAY, revision=3, version=2), "draft.version"),
    ],
)
async def test_a_draft_that_contradicts_what_is_known_is_refused(
    publisher: PublisherServiceAsyncStub, database: Database, draft: DraftSaved, field: str
) -> None:
    await publisher.PublishNow(publishing())
    before = await jobs_in(database)
    code, fault = await refusal_of(publisher.PublishNow(publishing(draft)))
    assert (code, fields_at_fault(fault)) == (Code.INVALID_ARGUMENT, [field])
    assert await jobs_in(database) == before


@pytest.mark.usefixtures("page")
async def test_the_same_draft_of_another_organization_is_another_draft(publisher: PublisherServiceAsyncStub) -> None:
    await publisher.PublishNow(publishing())
    (result,) = (await publisher.PublishNow(publishing(organization_id="umbrella"))).results
    assert (result.outcome, result.reason) == (pb.PUBLISH_NOW_OUTCOME_REFUSED, "ACCOUNT_NOT_CONNECTED")


@pytest.mark.usefixtures("page")
async def test_a_hold_refuses_and_a_second_call_starts_after_it(publisher: PublisherServiceAsyncStub) -> None:
    hold: dict[str, Any] = {"organization_id": "acme", "hold_id": "h"}
    await publisher.PutHold(pb.PutHoldRequest(scope=HOLD_SCOPE_ACCOUNT, scope_id="page", reason="prices", **hold))
    (held,) = (await publisher.PublishNow(publishing())).results
    assert (held.outcome, held.reason) == (pb.PUBLISH_NOW_OUTCOME_REFUSED, "ACCOUNT_ON_HOLD")
    await publisher.ReleaseHold(pb.ReleaseHoldRequest(**hold))
    (released,) = (await publisher.PublishNow(publishing())).results
    assert released.outcome == pb.PUBLISH_NOW_OUTCOME_STARTED


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"draft": a_draft(organization_id="umbrella")}, "draft.organization_id"),
        ({"draft": a_draft(draft_id="")}, "draft.draft_id"),
        ({"draft": a_draft(version=0)}, "draft.version"),
        ({"draft": a_draft(revision=0)}, "draft.revision"),
        ({"draft": a_draft(content_digest="0" * 64)}, "draft.content"),
        ({"draft": a_draft(content=b"\xff", content_digest=hashlib.sha256(b"\xff").hexdigest())}, "draft.content"),
        ({"draft": a_draft(content=b"", content_digest=hashlib.sha256(b"").hexdigest())}, "draft.content.text"),
        ({"draft": a_draft(content=BLANK, content_digest=hashlib.sha256(BLANK).hexdigest())}, "draft.content.text"),
        ({"draft": a_draft(targets=[])}, "draft.targets"),
        ({"draft": a_draft(PAGE, PAGE)}, "draft.targets[1]"),
        ({"draft": a_draft(Target(social_account_id="page", channel="fax"))}, "draft.targets[0].channel"),
        ({"draft": a_draft(Target(social_account_id="a b", channel="facebook"))}, "draft.targets[0].social_account_id"),
        ({"targets": [AWAY]}, "targets[0]"),
        ({"targets": [PAGE, PAGE]}, "targets[1]"),
        ({"targets": [Target(social_account_id="page", channel="fax")]}, "targets[0].channel"),
        ({"not_after": datetime(2020, 1, 1, tzinfo=UTC)}, "not_after"),
        ({"not_after": datetime(2126, 1, 1, tzinfo=UTC)}, "not_after"),
    ],
)
async def test_a_bad_field_is_named_and_nothing_is_stored(
    publisher: PublisherServiceAsyncStub, database: Database, changes: Mapping[str, Any], field: str
) -> None:
    code, fault = await refusal_of(publisher.PublishNow(publishing(**changes)))
    assert (code, fields_at_fault(fault)) == (Code.INVALID_ARGUMENT, [field])
    assert await jobs_in(database) == []


async def test_content_that_cannot_be_read_is_named_in_plain_words(publisher: PublisherServiceAsyncStub) -> None:
    _, fault = await refusal_of(publisher.PublishNow(publishing(a_draft(content_digest="0" * 64))))
    assert fault.message == "draft.content: the content of a DraftSaved does not match its digest"


async def test_a_request_without_a_draft_is_refused(publisher: PublisherServiceAsyncStub) -> None:
    code, fault = await refusal_of(publisher.PublishNow(pb.PublishNowRequest(organization_id="acme")))
    assert (code, fields_at_fault(fault)) == (Code.INVALID_ARGUMENT, ["draft"])
