"""Answers of PublisherService at the sizes that its rules allow, with errors as long as they are kept."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sqlalchemy import text

from postflow.publisher.v1 import publisher_service_pb2 as pb
from postflow.target.v1.target_pb2 import Target as TargetMessage
from publisher_service.adapters.postgres.jobs import insert_jobs
from publisher_service.domain.post_job import JobState, PostJob, Target, job_id
from servicekit.pg.database import Database

if TYPE_CHECKING:
    from postflow.publisher.v1.publisher_service_pb2_grpc import PublisherServiceAsyncStub

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
PAGE = Target(social_account_id="page", channel="facebook")
ERROR = "no " * 666
JOB = PostJob(
    organization_id="acme",
    id="",
    draft_id="",
    target=PAGE,
    state=JobState.FAILED,
    slot_id="slot",
    slot_revision=1,
    slot_sequence=1,
    error_reason="REJECTED",
    error_message=ERROR,
    create_time=NOW,
    update_time=NOW,
)
ATTEMPTS = text("""
    insert into attempt (organization_id, post_job_id, run, number, fence, state, idempotency_key, content_revision,
        content_digest, start_time, end_time, external_id, error_reason, error_message)
    select 'acme', :id, n, 1, n, 'REJECTED', :id || '-' || n, 1, '', :now, :now, '', 'REJECTED', :error
    from generate_series(1, 400) as n
""")


async def fill(database: Database, count: int) -> list[PostJob]:
    names = [f"draft-{number:03}" for number in range(count)]
    jobs = [replace(JOB, id=job_id("acme", name, PAGE), draft_id=name) for name in names]
    async with database.transaction() as tx:
        await insert_jobs(tx.connection, jobs)
    return jobs


async def test_the_most_posts_are_taken_back_and_listed(
    publisher: PublisherServiceAsyncStub, database: Database
) -> None:
    jobs = await fill(database, 500)
    target = TargetMessage(social_account_id="page", channel="facebook")
    posts = [
        pb.SlotPost(draft_id=job.draft_id, target=target, slot_id="slot", slot_revision=1, slot_sequence=1)
        for job in jobs
    ]
    answer = await publisher.CancelPostJobs(pb.CancelPostJobsRequest(organization_id="acme", posts=posts))
    assert {result.outcome for result in answer.results} == {pb.CANCEL_OUTCOME_ENDED}
    assert [result.post_job.id for result in answer.results] == [job.id for job in jobs]
    page = await publisher.ListPostJobs(pb.ListPostJobsRequest(organization_id="acme", page_size=200))
    assert len(page.post_jobs) == 200


async def test_a_post_is_shown_with_many_attempts(publisher: PublisherServiceAsyncStub, database: Database) -> None:
    (job,) = await fill(database, 1)
    async with database.transaction() as tx:
        await tx.connection.execute(ATTEMPTS, {"id": job.id, "now": NOW, "error": ERROR})
    shown = await publisher.GetPostJob(pb.GetPostJobRequest(organization_id="acme", post_job_id=job.id))
    assert [attempt.run for attempt in shown.attempts] == list(range(1, 401))
