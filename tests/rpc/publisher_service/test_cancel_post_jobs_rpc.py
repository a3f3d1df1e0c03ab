"""CancelPostJobs as Queue sees it: an outcome for each post, in the order of the request."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from sqlalchemy import text

from postflow.bus.v1.bus_pb2 import Envelope
from postflow.publisher.v1 import publisher_service_pb2 as pb
from postflow.publisher.v1.post_job_pb2 import POST_JOB_STATE_CANCELED, POST_JOB_STATE_SENDING
from postflow.publisher.v1.publisher_events_pb2 import POST_JOB_EVENT_KIND_CANCELED, PostJobChanged
from postflow.target.v1.target_pb2 import Target as TargetMessage
from publisher_service.adapters.postgres.jobs import insert_jobs
from publisher_service.domain.post_job import JobState, PostJob, Target, job_id
from servicekit.pg.database import Database
from testkit.refusals import refusal_of

if TYPE_CHECKING:
    from postflow.publisher.v1.publisher_service_pb2_grpc import PublisherServiceAsyncStub

Code = grpc.StatusCode
NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
PAGE = Target(social_account_id="page", channel="facebook")


def a_job(draft: str, state: JobState, **changes: Any) -> PostJob:
    job = PostJob(
        organization_id="acme",
        id=job_id("acme", draft, PAGE),
        draft_id=draft,
        target=PAGE,
        state=state,
        slot_id="slot",
        slot_revision=1,
        slot_sequence=1,
        schedule_time=NOW,
        not_after=NOW,
        create_time=NOW,
        update_time=NOW,
    )
    return replace(job, **changes)


def a_post(draft: str = "d1", **changes: Any) -> pb.SlotPost:
    target = TargetMessage(social_account_id="page", channel="facebook")
    named: dict[str, Any] = {"target": target, "slot_id": "slot", "slot_revision": 1, "slot_sequence": 1}
    return pb.SlotPost(draft_id=draft, **named | changes)


def canceling(*posts: pb.SlotPost, organization: str = "acme", request_id: str = "") -> pb.CancelPostJobsRequest:
    return pb.CancelPostJobsRequest(organization_id=organization, posts=posts, request_id=request_id)


async def store(database: Database, *jobs: PostJob) -> None:
    async with database.transaction() as tx:
        await insert_jobs(tx.connection, jobs)


async def test_each_post_has_its_outcome_in_the_order_of_the_request(
    publisher: PublisherServiceAsyncStub, database: Database
) -> None:
    await store(
        database,
        a_job("d1", JobState.SCHEDULED),
        a_job("d2", JobState.SENDING, next_action_time=NOW),
        a_job("d3", JobState.FAILED, error_reason="REJECTED"),
        a_job("d4", JobState.SCHEDULED, slot_sequence=2),
    )
    posts = [a_post(draft) for draft in ("d4", "d3", "d2", "d1", "unknown")]
    results = (await publisher.CancelPostJobs(canceling(*posts))).results
    assert [result.outcome for result in results] == [
        pb.CANCEL_OUTCOME_ENDED,
        pb.CANCEL_OUTCOME_ENDED,
        pb.CANCEL_OUTCOME_TOO_LATE,
        pb.CANCEL_OUTCOME_CANCELED,
        pb.CANCEL_OUTCOME_CANCELED,
    ]
    assert [result.post_job.draft_id for result in results] == ["d4", "d3", "d2", "d1", "unknown"]
    assert results[2].post_job.state == POST_JOB_STATE_SENDING
    for result in results[3:]:
        assert (result.post_job.state, result.post_job.state_reason) == (POST_JOB_STATE_CANCELED, "TAKEN_BACK")
    request = pb.GetPostJobRequest(organization_id="acme", post_job_id=results[4].post_job.id)
    assert (await publisher.GetPostJob(request)).post_job == results[4].post_job


async def test_what_was_canceled_is_announced(publisher: PublisherServiceAsyncStub, database: Database) -> None:
    await store(database, a_job("d1", JobState.SCHEDULED), a_job("d2", JobState.PUBLISHED, **_OUT))
    results = (await publisher.CancelPostJobs(canceling(a_post("d1"), a_post("d2"), a_post("d3")))).results

    async with database.read() as connection:
        rows = list(await connection.execute(text("select payload from outbox order by position")))
    events = [event for row in rows for event in Envelope.FromString(row.payload).events]
    changes = [PostJobChanged.FromString(event.payload) for event in events]
    assert {change.kind for change in changes} == {POST_JOB_EVENT_KIND_CANCELED}
    assert sorted(change.post_job.id for change in changes) == sorted(results[index].post_job.id for index in (0, 2))


async def test_another_organizations_posts_are_untouched(
    publisher: PublisherServiceAsyncStub, database: Database
) -> None:
    await store(database, a_job("d1", JobState.SCHEDULED))
    (result,) = (await publisher.CancelPostJobs(canceling(a_post(), organization="other"))).results
    assert result.post_job.id != job_id("acme", "d1", PAGE)
    request = pb.GetPostJobRequest(organization_id="acme", post_job_id=job_id("acme", "d1", PAGE))
    assert (await publisher.GetPostJob(request)).post_job.version == 1


async def test_a_repeated_call_gets_its_first_answer(publisher: PublisherServiceAsyncStub) -> None:
    first = await publisher.CancelPostJobs(canceling(a_post(), request_id="one"))
    assert await publisher.CancelPostJobs(canceling(a_post(), request_id="one")) == first
    # Without the id the answer is the same as well.
    assert await publisher.CancelPostJobs(canceling(a_post())) == first
    code, fault = await refusal_of(publisher.CancelPostJobs(canceling(a_post("d2"), request_id="one")))
    assert (code, fault.reason) == (Code.INVALID_ARGUMENT, "REQUEST_ID_REUSED")


async def test_500_posts_are_canceled_in_a_call(publisher: PublisherServiceAsyncStub) -> None:
    posts = [a_post(f"d{number}") for number in range(500)]
    results = (await publisher.CancelPostJobs(canceling(*posts))).results
    assert {result.outcome for result in results} == {pb.CANCEL_OUTCOME_CANCELED}
    code, fault = await refusal_of(publisher.CancelPostJobs(canceling(*posts, a_post("one more"))))
    assert (code, [each.field for each in fault.violations][:1]) == (Code.INVALID_ARGUMENT, ["posts"])


@pytest.mark.parametrize(
    ("post", "field"),
    [
        (a_post(""), "posts[0].draft_id"),
        (a_post(slot_id=""), "posts[0].slot_id"),
        (a_post(slot_revision=0), "posts[0].slot_revision"),
        (a_post(slot_sequence=-1), "posts[0].slot_sequence"),
        (a_post(target=None), "posts[0].target"),
        (a_post(target=TargetMessage(channel="facebook")), "posts[0].target.social_account_id"),
        (a_post(target=TargetMessage(social_account_id="page", channel="billboard")), "posts[0].target.channel"),
    ],
    ids=["draft", "slot", "revision", "sequence", "target", "account", "channel"],
)
async def test_a_bad_post_is_refused(publisher: PublisherServiceAsyncStub, post: pb.SlotPost, field: str) -> None:
    code, fault = await refusal_of(publisher.CancelPostJobs(canceling(post)))
    assert code is Code.INVALID_ARGUMENT
    assert [violation.field for violation in fault.violations] == [field]


async def test_a_call_without_posts_is_refused(publisher: PublisherServiceAsyncStub) -> None:
    code, fault = await refusal_of(publisher.CancelPostJobs(canceling()))
    assert (code, [violation.field for violation in fault.violations]) == (Code.INVALID_ARGUMENT, ["posts"])


_OUT: dict[str, Any] = {"evidence_kind": "PROVIDER_ID", "publish_time": NOW, "external_id": "7"}
