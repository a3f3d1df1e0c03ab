"""Post jobs are read with their attempts and resolutions, or listed newest first."""

from dataclasses import replace
from datetime import timedelta

import pytest

from publisher_service.application.read_jobs import ReadJobs
from publisher_service.domain.outcome import Rejected
from publisher_service.domain.post_job import JobFilter, JobState, expected_time
from servicekit.faults import NotFound
from tests.usecase.publisher_service.outreach import SPACING, Outreach
from tests.usecase.publisher_service.replica import DUE, Replica, a_command, a_draft, a_sent, claims_in


@pytest.fixture
def read(replica: Replica) -> ReadJobs:
    return ReadJobs(replica.database)


async def test_a_job_is_read_with_its_attempts(replica: Replica, read: ReadJobs) -> None:
    (name,) = await replica.posts(1)
    (claimed,) = claims_in(await replica.claim([a_command(name)]))
    await replica.settle([a_sent(claimed, Rejected(reason="TOO_LONG", message="m"))])
    job, (attempt,), resolutions = await read.get("acme", claimed.job.id)
    assert (job.state, job.attempts) == (JobState.FAILED, 1)
    assert (attempt.state, attempt.idempotency_key) == ("REJECTED", claimed.idempotency_key)
    assert (attempt.error_reason, attempt.error_message) == ("TOO_LONG", "m")
    assert resolutions == []


@pytest.mark.parametrize("organization", ["acme", "other"])
async def test_an_unknown_job_is_not_found(replica: Replica, read: ReadJobs, organization: str) -> None:
    await replica.posts(1)
    (row,) = await replica.rows("select id from post_job")
    name = "nothing" if organization == "acme" else row.id
    with pytest.raises(NotFound) as refused:
        await read.get(organization, name)
    assert refused.value.metadata == {"post_job_id": name}


async def test_a_page_holds_the_newest_jobs_before_the_last_one(replica: Replica, read: ReadJobs) -> None:
    for minute, name in enumerate(("first", "second", "third")):
        await replica.save(a_draft(name, "page"), now=DUE + timedelta(minutes=minute))
    wanted = JobFilter(organization_id="acme", states=(JobState.PENDING,))
    newest, second = await read.list(wanted, before=None, limit=2)
    assert [newest.draft_id, second.draft_id] == ["third", "second"]
    (first,) = await read.list(wanted, before=(second.create_time, second.id), limit=2)
    assert first.draft_id == "first"


@pytest.mark.parametrize(
    ("states", "listed"),
    [
        ([JobState.SENDING], ["d1"]),
        ([JobState.SCHEDULED], ["d2"]),
        ([JobState.SENDING, JobState.FAILED], ["d1", "d0"]),
        ([JobState.SENDING, JobState.SCHEDULED], ["d2", "d1"]),
        ([], ["d3", "d2", "d1", "d0"]),
    ],
)
@pytest.mark.parametrize("account", ["", "page-d1"])
async def test_what_is_sent_and_what_is_scheduled_is_listed_apart(
    replica: Replica, read: ReadJobs, states: list[JobState], listed: list[str], account: str
) -> None:
    names = await replica.posts(4)
    failed, _ = claims_in(await replica.claim([a_command(name) for name in names[:2]]))
    await replica.settle([a_sent(failed, Rejected(reason="TOO_LONG", message="m"))])
    await replica.write("update post_job set state = 'SCHEDULED' where draft_id = 'd2'")
    await replica.write("update post_job set create_time = create_time + right(draft_id, 1)::int * interval '1 minute'")
    wanted = JobFilter(organization_id="acme", states=tuple(states), social_account_id=account)
    found = [job.draft_id for job in await read.list(wanted, before=None, limit=10)]
    assert found == [name for name in listed if account in ("", f"page-{name}")]
    behind = await read.list(wanted, before=(DUE + timedelta(minutes=1, seconds=30), ""), limit=10)
    assert [job.draft_id for job in behind] == [name for name in found if name in ("d0", "d1")]
    assert await read.list(replace(wanted, organization_id="other"), before=None, limit=10) == []


async def test_posts_that_wait_together_show_when_the_next_of_them_may_go(outreach: Outreach) -> None:
    read = ReadJobs(outreach.replica.database)
    waiting = JobFilter(organization_id="acme", states=(JobState.WAITING,))
    for claimed in await outreach.claim(await outreach.save(4)):
        await outreach.settle(claimed)
    assert await outreach.turns() == []
    for left in (3, 2, 1):
        jobs = await read.list(waiting, before=None, limit=10)
        assert [expected_time(job) for job in jobs] == [outreach.now + SPACING] * left
        job, _, _ = await read.get("acme", jobs[0].id)
        assert job.expected_time == outreach.now + SPACING
        (claimed,) = await outreach.pass_time(SPACING)
        await outreach.settle(claimed)


@pytest.mark.parametrize(
    "closing",
    [
        "update account_gate set resume_time = now() + cast(:time as interval)",
        "insert into provider_quota (provider, closed_until) values ('sandbox', now() + cast(:time as interval))",
    ],
)
@pytest.mark.parametrize(("hours", "is_shown"), [(1, True), (-1, False)])
async def test_a_post_in_line_shows_until_when_its_provider_takes_nothing(
    replica: Replica, read: ReadJobs, closing: str, hours: int, is_shown: bool
) -> None:
    names = await replica.posts(2, account="page")
    await replica.claim([a_command(name, "page") for name in names])
    in_line = JobFilter(organization_id="acme", states=(JobState.READY,))
    (job,) = await read.list(in_line, before=None, limit=10)
    assert (job.state_reason, expected_time(job)) == ("IN_LINE", None)
    await replica.write(closing, time=timedelta(hours=hours))
    (job,) = await read.list(in_line, before=None, limit=10)
    assert (expected_time(job) is not None) is is_shown
