"""ReplayPostJobEvents as an operator sees it: page after page, until every post job was announced."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from sqlalchemy import text

from postflow.bus.v1.bus_pb2 import Envelope
from postflow.publisher.v1 import publisher_admin_service_pb2 as pb
from postflow.publisher.v1.post_job_pb2 import POST_JOB_STATE_FAILED, POST_JOB_STATE_PENDING
from postflow.publisher.v1.publisher_events_pb2 import PostJobChanged
from publisher_service.adapters.postgres.jobs import insert_jobs
from publisher_service.domain.post_job import JobState, PostJob, Target, job_id
from publisher_service.wire.posts import post_job_changed
from servicekit.pg.database import Database
from testkit.refusals import fields_at_fault, refusal_of

if TYPE_CHECKING:
    from postflow.publisher.v1.publisher_admin_service_pb2_grpc import PublisherAdminServiceAsyncStub

Code = grpc.StatusCode
NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def a_job(number: int, organization: str) -> PostJob:
    """Returns one of two jobs of a draft; every third one has failed."""
    target = Target(social_account_id=f"page-{number % 2}", channel="facebook")
    draft = f"draft-{number // 2}"
    return PostJob(
        organization_id=organization,
        id=job_id(organization, draft, target),
        draft_id=draft,
        target=target,
        state=JobState.PENDING if number % 3 else JobState.FAILED,
        error_reason="" if number % 3 else "REJECTED",
        version=number + 1,
        create_time=NOW,
        update_time=NOW + timedelta(minutes=number),
    )


@pytest.fixture
async def jobs(database: Database) -> list[PostJob]:
    """Twelve jobs of each of two organizations."""
    all_jobs = [a_job(number, organization) for organization in ("acme", "umbrella") for number in range(12)]
    async with database.transaction() as tx:
        await insert_jobs(tx.connection, all_jobs)
    return all_jobs


async def announced(database: Database) -> list[PostJobChanged]:
    async with database.read() as connection:
        rows = list(await connection.execute(text("select payload from outbox order by position")))
    return [PostJobChanged.FromString(each.payload) for row in rows for each in Envelope.FromString(row.payload).events]


async def replay(admin: PublisherAdminServiceAsyncStub, **fields: Any) -> list[int]:
    """Calls until the last page, and returns how many each has announced."""
    counts: list[int] = []
    token = ""
    while not counts or token:
        answer = await admin.ReplayPostJobEvents(pb.ReplayPostJobEventsRequest(page_token=token, **fields))
        counts.append(answer.announced)
        token = answer.next_page_token
    return counts


async def test_every_job_is_announced_once_as_it_stands(
    admin: PublisherAdminServiceAsyncStub, database: Database, jobs: list[PostJob]
) -> None:
    assert await replay(admin, page_size=5) == [5, 5, 5, 5, 4]
    expected = sorted(jobs, key=lambda job: job.key)
    assert await announced(database) == [post_job_changed(job).message for job in expected]


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        ({"organization_id": "acme"}, 12),
        ({"organization_id": "acme", "draft_id": "draft-1"}, 2),
        ({"organization_id": "nobody"}, 0),
        ({"states": [POST_JOB_STATE_FAILED]}, 8),
        ({"states": [POST_JOB_STATE_FAILED, POST_JOB_STATE_PENDING], "organization_id": "umbrella"}, 12),
        ({"changed_since": NOW + timedelta(minutes=10)}, 4),
        ({"changed_since": NOW + timedelta(minutes=10), "organization_id": "acme", "draft_id": "draft-0"}, 0),
    ],
)
@pytest.mark.parametrize("page_size", [0, 1, 4])
async def test_only_what_is_asked_for_is_announced(
    admin: PublisherAdminServiceAsyncStub,
    database: Database,
    jobs: list[PostJob],
    fields: dict[str, Any],
    count: int,
    page_size: int,
) -> None:
    assert sum(await replay(admin, page_size=page_size, **fields)) == count
    changes = await announced(database)
    assert len({(each.organization_id, each.post_job.id) for each in changes}) == len(changes) == count
    assert {each.organization_id for each in changes} <= {fields.get("organization_id") or "acme", "umbrella"}


async def test_a_job_in_a_state_of_a_newer_release_is_left_out(
    admin: PublisherAdminServiceAsyncStub, database: Database, jobs: list[PostJob]
) -> None:
    async with database.transaction() as tx:
        await tx.connection.execute(text("alter table post_job drop constraint post_job_state_check"))
        newer = replace(a_job(40, "acme"), state="MELTED")
        await insert_jobs(tx.connection, [newer])
    assert sum(await replay(admin, organization_id="acme")) == 12


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"draft_id": "draft-1"}, "organization_id"),
        ({"page_size": 10_001}, "page_size"),
        ({"page_token": "nonsense"}, "page_token"),
        ({"organization_id": "a b"}, "organization_id"),
    ],
)
async def test_a_bad_field_is_named(
    admin: PublisherAdminServiceAsyncStub, database: Database, jobs: list[PostJob], fields: dict[str, Any], field: str
) -> None:
    code, fault = await refusal_of(admin.ReplayPostJobEvents(pb.ReplayPostJobEventsRequest(**fields)))
    assert (code, fields_at_fault(fault)) == (Code.INVALID_ARGUMENT, [field])
    assert await announced(database) == []
