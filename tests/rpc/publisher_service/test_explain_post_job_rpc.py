"""Explanations as a client sees them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import grpc
import pytest

from postflow.publisher.v1 import explanation_pb2
from postflow.publisher.v1 import publisher_service_pb2 as pb
from publisher_service.adapters.postgres.jobs import insert_jobs
from publisher_service.domain.post_job import JobState, PostJob, Target, job_id
from servicekit.pg.database import Database
from testkit.refusals import refusal_of

if TYPE_CHECKING:
    from postflow.publisher.v1.publisher_service_pb2_grpc import PublisherServiceAsyncStub

Code = grpc.StatusCode
DUE = datetime(2126, 3, 2, 9, 0, tzinfo=UTC)
PAGE = Target(social_account_id="page", channel="facebook")


def a_job(organization: str = "acme") -> PostJob:
    return PostJob(
        organization_id=organization,
        id=job_id(organization, "draft", PAGE),
        draft_id="draft",
        target=PAGE,
        state=JobState.SCHEDULED,
        slot_id="slot",
        slot_revision=1,
        schedule_time=DUE,
        not_after=DUE + timedelta(hours=1),
        create_time=DUE,
        update_time=DUE,
    )


@pytest.fixture
async def job(database: Database) -> PostJob:
    """A job of acme; another organization has one, too."""
    job = a_job()
    async with database.transaction() as tx:
        await insert_jobs(tx.connection, [job, a_job("other")])
    return job


async def test_the_check_that_keeps_a_post_back_is_shown(publisher: PublisherServiceAsyncStub, job: PostJob) -> None:
    request = pb.ExplainPostJobRequest(organization_id="acme", post_job_id=job.id)
    explained = await publisher.ExplainPostJob(request)
    assert (explained.post_job.id, explained.verdict) == (job.id, "NOT_DUE")
    assert explained.clear_time.ToDatetime(UTC) == DUE
    assert explained.sentence == "Its time, 2126-03-02 09:00:00 UTC, has not come."
    assert explained.HasField("read_time")
    due = explained.checks[[check.name for check in explained.checks].index("DUE")]
    assert (due.state, due.verdict) == (explanation_pb2.CHECK_STATE_OPEN, "NOT_DUE")
    assert dict(due.values) == {"schedule_time": "2126-03-02T09:00:00Z"}
    assert (due.sentence, due.clear_time) == (explained.sentence, explained.clear_time)
    passed = explained.checks[0]
    assert (passed.state, passed.verdict) == (explanation_pb2.CHECK_STATE_PASSED, "")
    assert not passed.HasField("clear_time")


async def test_another_organizations_job_looks_like_no_job(publisher: PublisherServiceAsyncStub, job: PostJob) -> None:
    ask = publisher.ExplainPostJob
    _, nothing = await refusal_of(ask(pb.ExplainPostJobRequest(organization_id="acme", post_job_id="nothing")))
    for organization, name in (("acme", a_job("other").id), ("nobody", job.id)):
        request = pb.ExplainPostJobRequest(organization_id=organization, post_job_id=name)
        code, fault = await refusal_of(ask(request))
        assert (code, fault.reason) == (Code.NOT_FOUND, "POST_JOB_NOT_FOUND")
        assert (fault.message, fault.metadata) == (nothing.message, {"post_job_id": name})
