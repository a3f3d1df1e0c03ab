"""WithdrawContent as Drafts sees it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import grpc
import pytest
from sqlalchemy import text

from postflow.publisher.v1 import publisher_service_pb2 as pb
from publisher_service.adapters.postgres.contents import lock_contents
from publisher_service.adapters.postgres.jobs import get_job, insert_jobs
from publisher_service.domain.post_job import JobState, PostJob, Target, job_id
from servicekit.pg.database import Database
from testkit.refusals import refusal_of

if TYPE_CHECKING:
    from postflow.publisher.v1.publisher_service_pb2_grpc import PublisherServiceAsyncStub

Code = grpc.StatusCode


def a_job(organization: str = "acme") -> PostJob:
    target, now = Target(social_account_id="page", channel="facebook"), datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
    return PostJob(
        organization_id=organization,
        id=job_id(organization, "draft", target),
        draft_id="draft",
        target=target,
        state=JobState.PENDING,
        create_time=now,
        update_time=now,
    )


@pytest.fixture
async def job(database: Database) -> PostJob:
    """A job of a draft whose id another organization uses too."""
    async with database.transaction() as tx:
        await insert_jobs(tx.connection, [a_job(), a_job("other")])
    return a_job()


async def test_a_withdrawal_before_any_attempt_is_in_time(
    publisher: PublisherServiceAsyncStub, database: Database, job: PostJob
) -> None:
    await known(database, job.draft_id, revision=1)
    response = await withdraw(publisher, job.draft_id, 2)
    assert response.outcome == pb.WITHDRAW_OUTCOME_WITHDRAWN
    assert list(response.in_flight_post_job_ids) == []
    assert (await withdrawn_below(database, job), await withdrawn_below(database, a_job("other"))) == (2, 0)


async def test_a_withdrawal_names_attempts_with_older_texts(
    publisher: PublisherServiceAsyncStub, database: Database, job: PostJob
) -> None:
    await known(database, job.draft_id, revision=3)
    await become(database, job, "state = 'SENDING', content_revision = 3, next_action_time = create_time")
    early = await withdraw(publisher, job.draft_id, 3)
    assert early.outcome == pb.WITHDRAW_OUTCOME_WITHDRAWN
    late = await withdraw(publisher, job.draft_id, 4)
    assert late.outcome == pb.WITHDRAW_OUTCOME_TOO_LATE
    assert list(late.in_flight_post_job_ids) == [job.id]


async def test_withdrawals_may_come_in_any_order(
    publisher: PublisherServiceAsyncStub, database: Database, job: PostJob
) -> None:
    await known(database, job.draft_id, revision=4)
    for below in (5, 3):
        await withdraw(publisher, job.draft_id, below)
    assert await withdrawn_below(database, job) == 5


@pytest.mark.parametrize(("revision", "below"), [(0, 2), (0, 2**63 - 1), (3, 5), (3, 2**63 - 1)])
async def test_a_revision_beyond_the_next_cannot_be_withdrawn(
    publisher: PublisherServiceAsyncStub, database: Database, revision: int, below: int
) -> None:
    if revision:
        await known(database, "draft", revision=revision)
    request = pb.WithdrawContentRequest(organization_id="acme", draft_id="draft", below_revision=below)
    code, fault = await refusal_of(publisher.WithdrawContent(request))
    assert (code, fault.reason) == (Code.FAILED_PRECONDITION, "REVISION_NOT_KNOWN")
    assert fault.metadata == {"draft_id": "draft", "known_revision": str(revision)}
    async with database.transaction() as tx:
        contents = await lock_contents(tx.connection, [("acme", "draft")])
    assert contents["acme", "draft"][:3] == (revision, 0, revision)


async def test_withdrawing_a_published_draft_withdraws_nothing(
    publisher: PublisherServiceAsyncStub, database: Database, job: PostJob
) -> None:
    await known(database, job.draft_id, revision=1)
    await become(
        database,
        job,
        "state = 'PUBLISHED', content_revision = 1, evidence_kind = 'PROVIDER_ID', publish_time = create_time,"
        " external_id = '7', external_url = 'https://social.example/7'",
    )
    answer = await withdraw(publisher, job.draft_id, 2)
    assert answer.outcome == pb.WITHDRAW_OUTCOME_PUBLISHED
    (out,) = answer.published
    assert (out.post_job_id, out.content_revision, out.external_url) == (job.id, 1, "https://social.example/7")
    assert (out.target.social_account_id, out.HasField("publish_time")) == (job.target.social_account_id, True)
    assert await withdrawn_below(database, job) == 0


@pytest.mark.parametrize(
    "change",
    [
        "state = 'UNKNOWN', next_action_time = create_time",
        "state = 'NEEDS_ATTENTION'",
        "state = 'READY', in_doubt = true, next_action_time = create_time",
        "state = 'WAITING', in_doubt = true, next_action_time = create_time",
    ],
)
async def test_a_withdrawal_names_posts_that_may_be_out(
    publisher: PublisherServiceAsyncStub, database: Database, job: PostJob, change: str
) -> None:
    await known(database, job.draft_id, revision=1)
    await become(database, job, f"content_revision = 1, {change}")
    answer = await withdraw(publisher, job.draft_id, 2)
    assert answer.outcome == pb.WITHDRAW_OUTCOME_TOO_LATE
    assert list(answer.in_flight_post_job_ids) == [job.id]


@pytest.mark.parametrize(("draft", "below", "field"), [("", 2, "draft_id"), ("a b", 2, "draft_id")])
async def test_a_withdrawal_without_a_draft_is_refused(
    publisher: PublisherServiceAsyncStub, draft: str, below: int, field: str
) -> None:
    request = pb.WithdrawContentRequest(organization_id="acme", draft_id=draft, below_revision=below)
    code, fault = await refusal_of(publisher.WithdrawContent(request))
    assert code is Code.INVALID_ARGUMENT
    assert [violation.field for violation in fault.violations] == [field]


@pytest.mark.parametrize("below", [0, -1])
async def test_a_withdrawal_below_no_revision_is_refused(publisher: PublisherServiceAsyncStub, below: int) -> None:
    request = pb.WithdrawContentRequest(organization_id="acme", draft_id="d", below_revision=below)
    code, fault = await refusal_of(publisher.WithdrawContent(request))
    assert code is Code.INVALID_ARGUMENT
    assert [violation.field for violation in fault.violations] == ["below_revision"]


async def known(database: Database, draft: str, *, revision: int) -> None:
    """Makes the draft known up to this revision."""
    async with database.transaction() as tx:
        await lock_contents(tx.connection, [("acme", draft)])
        await tx.connection.execute(
            text("update content set version = :revision, revision = :revision where draft_id = :draft"),
            {"draft": draft, "revision": revision},
        )


async def withdrawn_below(database: Database, job: PostJob) -> int:
    async with database.read() as connection:
        stored = await get_job(connection, job.organization_id, job.id)
    assert stored
    return stored.withdrawn_below


async def become(database: Database, job: PostJob, change: str) -> None:
    statement = f"update post_job set {change} where organization_id = 'acme' and id = :id"  # noqa: S608
    async with database.transaction() as tx:
        await tx.connection.execute(text(statement), {"id": job.id})


async def withdraw(publisher: PublisherServiceAsyncStub, draft: str, below: int) -> pb.WithdrawContentResponse:
    return await publisher.WithdrawContent(
        pb.WithdrawContentRequest(organization_id="acme", draft_id=draft, below_revision=below)
    )
