"""ResolvePostJob: a person decides where nothing could be proven."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from sqlalchemy import text

from postflow.bus.v1.bus_pb2 import Envelope
from postflow.publisher.v1 import publisher_service_pb2 as pb
from postflow.publisher.v1.post_job_pb2 import (
    POST_JOB_STATE_FAILED,
    POST_JOB_STATE_PUBLISHED,
)
from postflow.publisher.v1.publisher_events_pb2 import PostJobChanged
from publisher_service.adapters.postgres.jobs import insert_jobs, lock_jobs, save_jobs
from publisher_service.application.late_evidence import LateEvidence
from publisher_service.domain.outcome import Found
from publisher_service.domain.post_job import JobState, PostJob, Target, begun_again, job_id, moved
from servicekit.ids import Uuid7Source
from servicekit.pg.database import Database
from servicekit.pg.outbox import Outbox
from testkit.refusals import refusal_of

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
    state=JobState.NEEDS_ATTENTION,
    attempts=1,
    fence=1,
    in_doubt=True,
    schedule_time=NOW,
    not_after=NOW + timedelta(days=1),
    last_attempt_time=NOW,
    error_reason="TIMEOUT_AFTER_WRITE",
    create_time=NOW,
    update_time=NOW,
)
ATTEMPT = """
    insert into attempt (organization_id, post_job_id, run, number, fence, state, idempotency_key, content_revision,
        content_digest, start_time, external_id, error_reason, error_message)
    values ('acme', :id, 1, 1, 1, 'UNKNOWN', 'key', 1, '', :now, '', '', '')
"""


async def put(database: Database, state: JobState) -> None:
    moves = state is JobState.UNKNOWN
    job = replace(JOB, state=state, next_action_time=NOW if moves else None, unknown_until=NOW if moves else None)
    async with database.transaction() as tx:
        await insert_jobs(tx.connection, [job])
        await tx.connection.execute(text(ATTEMPT), {"id": job.id, "now": NOW})


def saying(outcome: pb.ResolveOutcome, **more: Any) -> pb.ResolvePostJobRequest:
    named = {"organization_id": "acme", "post_job_id": JOB.id, "resolver": "ann", "note": "looked at the page"}
    return pb.ResolvePostJobRequest(outcome=outcome, **named | more)


def published(**more: Any) -> pb.ResolvePostJobRequest:
    return saying(pb.RESOLVE_OUTCOME_PUBLISHED, **{"external_url": "https://x/1"} | more)


def not_published(**more: Any) -> pb.ResolvePostJobRequest:
    return saying(pb.RESOLVE_OUTCOME_NOT_PUBLISHED, **more)


async def announced(database: Database) -> list[Any]:
    async with database.read() as connection:
        rows = list(await connection.execute(text("select payload from outbox order by position")))
    events = [event for row in rows for event in Envelope.FromString(row.payload).events]
    return [PostJobChanged.FromString(event.payload).post_job for event in events]


@pytest.mark.parametrize("state", [JobState.UNKNOWN, JobState.NEEDS_ATTENTION])
async def test_a_post_that_a_person_has_seen_is_published(
    publisher: PublisherServiceAsyncStub, database: Database, state: JobState
) -> None:
    await put(database, state)
    job = (await publisher.ResolvePostJob(published())).post_job
    assert (job.state, job.evidence_kind, job.external_url) == (POST_JOB_STATE_PUBLISHED, "PERSON", "https://x/1")
    assert (job.in_doubt, job.publish_time.ToDatetime(UTC)) == (False, NOW)
    assert await announced(database) == [job]
    shown = await publisher.GetPostJob(pb.GetPostJobRequest(organization_id="acme", post_job_id=JOB.id))
    assert [attempt.state for attempt in shown.attempts] == ["ACCEPTED"]
    (said,) = shown.resolutions
    assert (said.run, said.outcome, said.resolver, said.note) == (
        1,
        pb.RESOLVE_OUTCOME_PUBLISHED,
        "ann",
        "looked at the page",
    )


@pytest.mark.parametrize("state", [JobState.UNKNOWN, JobState.NEEDS_ATTENTION])
async def test_a_post_that_a_person_does_not_find_has_failed(
    publisher: PublisherServiceAsyncStub, database: Database, state: JobState
) -> None:
    await put(database, state)
    job = (await publisher.ResolvePostJob(not_published())).post_job
    assert (job.state, job.error_reason, job.in_doubt) == (POST_JOB_STATE_FAILED, "RESOLVED_NOT_PUBLISHED", False)
    assert job.error_message == "ann said that it is not out: looked at the page"
    shown = await publisher.GetPostJob(pb.GetPostJobRequest(organization_id="acme", post_job_id=JOB.id))
    assert [attempt.state for attempt in shown.attempts] == ["ABSENT"]


@pytest.mark.parametrize("state", sorted({JobState.PENDING, JobState.SCHEDULED, JobState.PUBLISHED, JobState.FAILED}))
async def test_a_job_that_is_not_in_question_is_not_resolved(
    publisher: PublisherServiceAsyncStub, database: Database, state: JobState
) -> None:
    out = state is JobState.PUBLISHED
    job = replace(
        JOB,
        state=state,
        in_doubt=False,
        publish_time=NOW if out else None,
        evidence_kind="PROVIDER_ID" if out else "",
    )
    async with database.transaction() as tx:
        await insert_jobs(tx.connection, [job])
    code, fault = await refusal_of(publisher.ResolvePostJob(not_published()))
    assert (code, fault.reason) == (Code.FAILED_PRECONDITION, "POST_JOB_NOT_RESOLVABLE")
    assert fault.metadata == {"post_job_id": JOB.id, "state": state}


async def test_a_repeated_request_has_the_same_answer(publisher: PublisherServiceAsyncStub, database: Database) -> None:
    await put(database, JobState.UNKNOWN)
    first = await publisher.ResolvePostJob(published(request_id="r1"))
    assert await publisher.ResolvePostJob(published(request_id="r1")) == first
    assert len(await announced(database)) == 1


async def test_unknown_jobs_and_other_organizations_are_not_found(
    publisher: PublisherServiceAsyncStub, database: Database
) -> None:
    await put(database, JobState.UNKNOWN)
    for changes in ({"post_job_id": "other"}, {"organization_id": "other"}):
        code, fault = await refusal_of(publisher.ResolvePostJob(published(**changes)))
        assert (code, fault.reason) == (Code.NOT_FOUND, "POST_JOB_NOT_FOUND")


@pytest.mark.parametrize(
    ("request_of", "field"),
    [
        (published(external_url=""), "external_id"),
        (not_published(external_id="x"), "outcome"),
        (saying(pb.RESOLVE_OUTCOME_UNSPECIFIED), "outcome"),
        (published(resolver=""), "resolver"),
        (published(resolver=" \n"), "resolver"),
        (published(external_url="", external_id=" "), "external_id"),
        (published(external_url=" "), "external_id"),
        (published(external_url="javascript:alert(1)"), "external_url"),
        (published(external_url="example.com/1"), "external_url"),
        (published(external_url="https://x/1 2"), "external_url"),
        (published(publish_time=datetime(2126, 1, 1, tzinfo=UTC)), "publish_time"),
    ],
)
async def test_a_bad_field_is_named(
    publisher: PublisherServiceAsyncStub, database: Database, request_of: pb.ResolvePostJobRequest, field: str
) -> None:
    await put(database, JobState.UNKNOWN)
    code, fault = await refusal_of(publisher.ResolvePostJob(request_of))
    assert code is Code.INVALID_ARGUMENT
    assert [violation.field for violation in fault.violations] == [field]


@pytest.mark.parametrize("next_run", [False, True])
async def test_proof_against_a_person_counts_and_is_logged_as_critical(
    publisher: PublisherServiceAsyncStub, database: Database, caplog: pytest.LogCaptureFixture, next_run: bool
) -> None:
    await put(database, JobState.UNKNOWN)
    await publisher.ResolvePostJob(not_published())
    late = LateEvidence(Outbox(Uuid7Source(), lambda rows: None))
    async with database.transaction() as tx:
        jobs = await lock_jobs(tx.connection, [("acme", JOB.id)])
        if next_run:
            again = begun_again(jobs[0])
            jobs = [moved(again, JobState.SENDING, now=NOW, until=NOW, fence=2)]
            await save_jobs(tx.connection, jobs)
        await late(tx, [(jobs[0], 1, Found(external_id="sp-1", external_url="u"))], now=NOW)
    (record,) = [record for record in caplog.records if record.levelname == "CRITICAL"]
    assert "though a person said that it is not" in record.getMessage()
    shown = await publisher.GetPostJob(pb.GetPostJobRequest(organization_id="acme", post_job_id=JOB.id))
    assert (shown.post_job.state, shown.post_job.external_id) == (POST_JOB_STATE_PUBLISHED, "sp-1")
