"""Post jobs as a client sees them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from sqlalchemy import text

from postflow.publisher.v1 import publisher_service_pb2 as pb
from postflow.publisher.v1.post_job_pb2 import POST_JOB_STATE_PENDING, POST_JOB_STATE_SCHEDULED, POST_JOB_STATE_SENDING
from publisher_service.adapters.postgres.jobs import insert_jobs
from publisher_service.domain.post_job import JobState, PostJob, Target, job_id
from servicekit.pg.database import Database
from testkit.refusals import refusal_of

if TYPE_CHECKING:
    from postflow.publisher.v1.publisher_service_pb2_grpc import PublisherServiceAsyncStub

Code = grpc.StatusCode
NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
JOBS = 23


def a_job(number: int, organization: str = "acme", account: str = "") -> PostJob:
    """Returns one of three jobs created at an instant; every second one is scheduled."""
    target = Target(social_account_id=account or f"page-{number % 2}", channel="facebook")
    draft = f"draft-{number // 2}"
    return PostJob(
        organization_id=organization,
        id=job_id(organization, draft, target),
        draft_id=draft,
        target=target,
        state=JobState.SCHEDULED if number % 2 else JobState.PENDING,
        schedule_time=NOW if number % 2 else None,
        create_time=NOW + timedelta(seconds=number // 3),
        update_time=NOW,
    )


@pytest.fixture
async def jobs(database: Database) -> list[PostJob]:
    """The jobs of acme, newest first; another organization has as many."""
    mine = [a_job(number) for number in range(JOBS)]
    async with database.transaction() as tx:
        await insert_jobs(tx.connection, [*mine, *(a_job(number, "other") for number in range(JOBS))])
    return sorted(mine, key=lambda job: (job.create_time, job.id), reverse=True)


async def attempt(database: Database, job: PostJob, revision: int) -> None:
    async with database.transaction() as tx:
        await tx.connection.execute(
            text("""
                insert into attempt
                values ('acme', :id, 1, 1, 1, 'SENDING', :key, :revision, '', :now, null, '', '', '')
            """),
            {"id": job.id, "key": f"{job.id}-1", "revision": revision, "now": NOW},
        )
        await tx.connection.execute(
            text("""
                update post_job set state = 'SENDING', content_revision = :revision, next_action_time = :now
                where organization_id = 'acme' and id = :id
            """),
            {"id": job.id, "revision": revision, "now": NOW},
        )
        await tx.connection.execute(
            text("""
                update account_gate set open_job_id = :id
                where organization_id = 'acme' and social_account_id = :account and open_job_id is null
            """),
            {"id": job.id, "account": job.target.social_account_id},
        )


async def listed(publisher: PublisherServiceAsyncStub, size: int, **wanted: Any) -> list[list[str]]:
    """Returns the ids of each page."""
    pages: list[list[str]] = []
    token = ""
    while True:
        request = pb.ListPostJobsRequest(organization_id="acme", page_size=size, page_token=token, **wanted)
        response = await publisher.ListPostJobs(request)
        pages.append([job.id for job in response.post_jobs])
        token = response.next_page_token
        if not token:
            return pages


async def test_a_job_is_shown_with_its_attempts(
    publisher: PublisherServiceAsyncStub, database: Database, jobs: list[PostJob]
) -> None:
    await attempt(database, jobs[0], revision=3)
    response = await publisher.GetPostJob(pb.GetPostJobRequest(organization_id="acme", post_job_id=jobs[0].id))
    assert (response.post_job.id, response.post_job.draft_id) == (jobs[0].id, jobs[0].draft_id)
    (shown,) = response.attempts
    assert (shown.state, shown.idempotency_key, shown.content_revision) == ("SENDING", f"{jobs[0].id}-1", 3)


async def test_another_organizations_job_looks_like_no_job(
    publisher: PublisherServiceAsyncStub, jobs: list[PostJob]
) -> None:
    foreign = a_job(0, "other").id
    _, nothing = await refusal_of(
        publisher.GetPostJob(pb.GetPostJobRequest(organization_id="acme", post_job_id="nothing"))
    )
    for organization, name in (("acme", foreign), ("nobody", jobs[0].id)):
        code, fault = await refusal_of(
            publisher.GetPostJob(pb.GetPostJobRequest(organization_id=organization, post_job_id=name))
        )
        assert (code, fault.reason) == (Code.NOT_FOUND, "POST_JOB_NOT_FOUND")
        assert (fault.message, fault.metadata) == (nothing.message, {"post_job_id": name})


@pytest.mark.parametrize("size", [1, 5, 22, 23, 24, 200])
async def test_pages_hold_every_job_once_newest_first(
    publisher: PublisherServiceAsyncStub, jobs: list[PostJob], size: int
) -> None:
    pages = await listed(publisher, size)
    assert [name for page in pages for name in page] == [job.id for job in jobs]
    assert all(len(page) == size for page in pages[:-1])
    assert pages[-1]


@pytest.mark.parametrize(
    ("wanted", "kept"),
    [
        ({"draft_id": "draft-3"}, lambda job: job.draft_id == "draft-3"),
        ({"social_account_id": "page-1"}, lambda job: job.target.social_account_id == "page-1"),
        ({"states": [POST_JOB_STATE_PENDING]}, lambda job: job.state is JobState.PENDING),
        ({"states": [POST_JOB_STATE_PENDING, POST_JOB_STATE_SCHEDULED]}, lambda job: True),
        (
            {"states": [POST_JOB_STATE_SCHEDULED], "social_account_id": "page-1"},
            lambda job: job.target.social_account_id == "page-1",
        ),
        ({"states": [POST_JOB_STATE_SCHEDULED], "social_account_id": "page-0"}, lambda job: False),
        ({"draft_id": "draft-3", "states": [POST_JOB_STATE_SCHEDULED]}, lambda job: job.draft_id == "draft-3"),
        ({"draft_id": "nothing"}, lambda job: False),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
async def test_a_list_holds_what_was_asked_for(
    publisher: PublisherServiceAsyncStub, jobs: list[PostJob], wanted: dict[str, Any], kept: Any
) -> None:
    expected = [job.id for job in jobs if kept(job)]
    if "draft_id" in wanted and "states" in wanted:
        expected = [job.id for job in jobs if kept(job) and job.state is JobState.SCHEDULED]
    pages = await listed(publisher, 2, **wanted)
    assert [name for page in pages for name in page] == expected


@pytest.mark.parametrize("size", [2, 200])
async def test_jobs_in_flight_keep_their_place_in_the_list(
    publisher: PublisherServiceAsyncStub, database: Database, jobs: list[PostJob], size: int
) -> None:
    """Each is on an account of its own, which has one in flight."""
    in_flight = [
        replace(a_job(number, account=f"page-{number}"), create_time=job.create_time)
        for number, job in enumerate(jobs[3:12:2], start=101)
    ]
    async with database.transaction() as tx:
        await insert_jobs(tx.connection, in_flight)
    for job in in_flight:
        await attempt(database, job, revision=1)
    in_order = sorted([*jobs, *in_flight], key=lambda job: (job.create_time, job.id), reverse=True)
    pages = await listed(publisher, size)
    assert [name for page in pages for name in page] == [job.id for job in in_order]
    sending = await listed(publisher, size, states=[POST_JOB_STATE_SENDING])
    assert [name for page in sending for name in page] == [job.id for job in in_order if job in in_flight]
    of_account = await listed(publisher, size, states=[POST_JOB_STATE_SENDING], social_account_id="page-103")
    assert of_account == [[in_flight[2].id]]


async def test_pages_stay_complete_while_newer_jobs_arrive(
    publisher: PublisherServiceAsyncStub, database: Database, jobs: list[PostJob]
) -> None:
    first = await publisher.ListPostJobs(pb.ListPostJobsRequest(organization_id="acme", page_size=10))
    async with database.transaction() as tx:
        await insert_jobs(tx.connection, [a_job(number) for number in range(100, 110)])
    token = first.next_page_token
    rest = await publisher.ListPostJobs(pb.ListPostJobsRequest(organization_id="acme", page_token=token))
    assert [job.id for job in [*first.post_jobs, *rest.post_jobs]] == [job.id for job in jobs]


async def test_another_organization_sees_none_of_the_jobs(
    publisher: PublisherServiceAsyncStub, jobs: list[PostJob]
) -> None:
    response = await publisher.ListPostJobs(pb.ListPostJobsRequest(organization_id="nobody"))
    assert list(response.post_jobs) == []
    other = await publisher.ListPostJobs(pb.ListPostJobsRequest(organization_id="other", page_size=200))
    assert len(other.post_jobs) == JOBS
    assert not {job.id for job in other.post_jobs} & {job.id for job in jobs}


@pytest.mark.parametrize(
    "changes",
    [
        {"organization_id": "other"},
        {"draft_id": "draft-1"},
        {"social_account_id": "page-1"},
        {"states": [POST_JOB_STATE_PENDING]},
    ],
    ids="-".join,
)
async def test_a_page_token_is_refused_by_another_request(
    publisher: PublisherServiceAsyncStub, jobs: list[PostJob], changes: dict[str, Any]
) -> None:
    first = await publisher.ListPostJobs(pb.ListPostJobsRequest(organization_id="acme", page_size=2))
    wanted = {"organization_id": "acme"} | changes
    code, fault = await refusal_of(
        publisher.ListPostJobs(pb.ListPostJobsRequest(page_token=first.next_page_token, **wanted))
    )
    assert code is Code.INVALID_ARGUMENT
    assert [violation.field for violation in fault.violations] == ["page_token"]


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (pb.ListPostJobsRequest(organization_id="acme", page_size=-1), "page_size"),
        (pb.ListPostJobsRequest(organization_id="acme", page_size=201), "page_size"),
        (pb.ListPostJobsRequest(organization_id="acme", page_token="nonsense"), "page_token"),
        (pb.ListPostJobsRequest(organization_id="acme", draft_id="a b"), "draft_id"),
        (pb.ListPostJobsRequest(organization_id="acme", states=[99]), "states[0]"),  # type: ignore[list-item]
        (pb.ListPostJobsRequest(), "organization_id"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_an_invalid_list_request_is_refused(
    publisher: PublisherServiceAsyncStub, request_: pb.ListPostJobsRequest, field: str
) -> None:
    code, fault = await refusal_of(publisher.ListPostJobs(request_))
    assert code is Code.INVALID_ARGUMENT
    assert [violation.field for violation in fault.violations] == [field]


@pytest.mark.parametrize("method", ["GetPostJob", "ListPostJobs", "WithdrawContent"])
async def test_bytes_that_do_not_decode_are_refused(channel: grpc.aio.Channel, method: str) -> None:
    raw: Any = channel.unary_unary(f"/postflow.publisher.v1.PublisherService/{method}")
    code, fault = await refusal_of(raw(b"\xff\xff"))
    assert code is Code.INVALID_ARGUMENT
    assert fault.reason
