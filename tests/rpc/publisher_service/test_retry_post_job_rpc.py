"""RetryPostJob as a client sees it: one more run of what has failed or was missed, and every refusal."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from sqlalchemy import text

from postflow.publisher.v1 import publisher_service_pb2 as pb
from postflow.publisher.v1.post_job_pb2 import POST_JOB_STATE_READY
from publisher_service.adapters.postgres.contents import lock_contents
from publisher_service.adapters.postgres.jobs import insert_jobs
from publisher_service.domain.post_job import WITH_NEXT_ACTION, JobState, PostJob, Target, job_id
from servicekit.clock import SystemClock
from servicekit.pg.database import Database
from testkit.refusals import fields_at_fault, refusal_of

if TYPE_CHECKING:
    from postflow.publisher.v1.publisher_service_pb2_grpc import PublisherServiceAsyncStub

Code = grpc.StatusCode
NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
PAGE = Target(social_account_id="page", channel="facebook")
JOB = PostJob(
    organization_id="acme",
    id=job_id("acme", "draft", PAGE),
    draft_id="draft",
    target=PAGE,
    state=JobState.FAILED,
    slot_id="slot",
    slot_revision=1,
    schedule_time=NOW,
    not_after=NOW,
    attempts=5,
    error_reason="REJECTED",
    create_time=NOW,
    update_time=NOW,
)


async def put(database: Database, **changes: Any) -> None:
    async with database.transaction() as tx:
        await insert_jobs(tx.connection, [replace(JOB, **changes)])


def retry(**changes: Any) -> pb.RetryPostJobRequest:
    return pb.RetryPostJobRequest(**{"organization_id": "acme", "post_job_id": JOB.id} | changes)


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.MISSED])
async def test_a_run_that_has_ended_is_followed_by_the_next(
    publisher: PublisherServiceAsyncStub, database: Database, state: JobState
) -> None:
    await put(database, state=state)
    job = (await publisher.RetryPostJob(retry())).post_job
    assert (job.state, job.run, job.attempts, job.error_reason) == (POST_JOB_STATE_READY, 2, 0, "")
    assert (job.slot_id, job.publish_now) == ("slot", False)
    began = job.schedule_time.ToDatetime(UTC)
    assert abs(began - SystemClock().now()) < timedelta(minutes=1)
    assert job.not_after.ToDatetime(UTC) == began + timedelta(days=1)
    shown = await publisher.GetPostJob(pb.GetPostJobRequest(organization_id="acme", post_job_id=JOB.id))
    assert shown.post_job == job


async def test_a_repeated_request_has_the_same_answer(publisher: PublisherServiceAsyncStub, database: Database) -> None:
    await put(database)
    until = SystemClock().now() + timedelta(hours=3)
    first = await publisher.RetryPostJob(retry(request_id="r1", not_after=until))
    assert first.post_job.not_after.ToDatetime(UTC) == until
    assert await publisher.RetryPostJob(retry(request_id="r1", not_after=until)) == first


@pytest.mark.parametrize("state", sorted(set(JobState) - {JobState.FAILED, JobState.MISSED}))
async def test_any_other_job_is_refused(
    publisher: PublisherServiceAsyncStub, database: Database, state: JobState
) -> None:
    out = {"publish_time": NOW, "evidence_kind": "PROVIDER_ID"} if state is JobState.PUBLISHED else {}
    await put(database, state=state, next_action_time=NOW if state in WITH_NEXT_ACTION else None, **out)
    code, fault = await refusal_of(publisher.RetryPostJob(retry()))
    assert (code, fault.reason) == (Code.FAILED_PRECONDITION, "POST_JOB_NOT_RETRYABLE")
    assert fault.metadata == {"post_job_id": JOB.id, "state": state}


async def test_a_target_that_the_draft_has_lost_is_refused(
    publisher: PublisherServiceAsyncStub, database: Database
) -> None:
    await put(database)
    async with database.transaction() as tx:
        await lock_contents(tx.connection, [("acme", "draft")])
        await tx.connection.execute(text("update content set version = 2, revision = 2"))
    code, fault = await refusal_of(publisher.RetryPostJob(retry()))
    assert (code, fault.reason) == (Code.FAILED_PRECONDITION, "TARGET_REMOVED")


async def test_foreign_and_unknown_jobs_are_not_found_alike(
    publisher: PublisherServiceAsyncStub, database: Database
) -> None:
    await put(database)
    code, foreign = await refusal_of(publisher.RetryPostJob(retry(organization_id="other")))
    assert (code, foreign.reason) == (Code.NOT_FOUND, "POST_JOB_NOT_FOUND")
    async with database.transaction() as tx:
        await tx.connection.execute(text("delete from post_job"))
    _, unknown = await refusal_of(publisher.RetryPostJob(retry(organization_id="other")))
    assert repr(unknown) == repr(foreign)


@pytest.mark.parametrize("away", [timedelta(seconds=-1), timedelta(days=31)])
async def test_a_latest_time_out_of_bounds_is_named(
    publisher: PublisherServiceAsyncStub, database: Database, away: timedelta
) -> None:
    await put(database)
    code, fault = await refusal_of(publisher.RetryPostJob(retry(not_after=SystemClock().now() + away)))
    assert (code, fields_at_fault(fault)) == (Code.INVALID_ARGUMENT, ["not_after"])
    assert (await publisher.RetryPostJob(retry())).post_job.run == 2


SANDBOX = """
    insert into social_account (organization_id, id, provider, external_account_id, display_name, channels, state,
        error_message, version, create_time, update_time, credentials)
    values ('acme', 'page', 'sandbox', 'ext', '', '{facebook}', 'CONNECTED', '', 1, now(), now(), '')
"""


@pytest.mark.parametrize(
    ("post", "account", "reason"),
    [
        ({"state": JobState.FAILED}, SANDBOX, "PARENT_NOT_PUBLISHED"),
        ({"state": JobState.PUBLISHED, "external_id": ""}, SANDBOX, "PARENT_NOT_NAMED"),
        ({"state": JobState.PUBLISHED, "external_id": "out"}, "select 1", "FOLLOW_UPS_NOT_TAKEN"),
    ],
)
async def test_a_follow_up_without_anything_to_follow_is_refused(
    publisher: PublisherServiceAsyncStub, database: Database, post: dict[str, Any], account: str, reason: str
) -> None:
    out = {"publish_time": NOW, "evidence_kind": "PERSON"} if post["state"] is JobState.PUBLISHED else {}
    await put(database, parts=1, **post | out)
    comment = job_id("acme", "draft", PAGE, 1)
    await put(database, id=comment, part=1, slot_id="", error_reason="PARENT_NOT_NAMED")
    async with database.transaction() as tx:
        await tx.connection.execute(text(account))
    code, fault = await refusal_of(publisher.RetryPostJob(retry(post_job_id=comment)))
    assert (code, fault.reason) == (Code.FAILED_PRECONDITION, reason)


async def test_a_follow_up_is_retried_below_its_post(publisher: PublisherServiceAsyncStub, database: Database) -> None:
    await put(
        database, state=JobState.PUBLISHED, external_id="out", publish_time=NOW, evidence_kind="PROVIDER_ID", parts=1
    )
    comment = job_id("acme", "draft", PAGE, 1)
    await put(database, id=comment, part=1, slot_id="", error_reason="FOLLOW_UPS_NOT_TAKEN")
    async with database.transaction() as tx:
        await tx.connection.execute(text(SANDBOX))
    job = (await publisher.RetryPostJob(retry(post_job_id=comment))).post_job
    assert (job.state, job.part, job.follows) == (POST_JOB_STATE_READY, 1, "out")
