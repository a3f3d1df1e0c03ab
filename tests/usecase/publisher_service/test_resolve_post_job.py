"""A person says whether a post is out whose outcome nothing has proven."""

import pytest

from publisher_service.application.read_jobs import ReadJobs
from publisher_service.domain.post_job import JobState, PostJob
from publisher_service.domain.resolution import Resolution, Said
from servicekit.faults import NotFound, Refused
from testkit.calls import call
from tests.usecase.publisher_service.replica import Replica, a_command, claims_in


def saying(outcome: Said) -> Resolution:
    return Resolution(
        outcome=outcome,
        external_id="seen" if outcome is Said.PUBLISHED else "",
        external_url="",
        publish_time=None,
        resolver="ann",
        note="looked at the page",
    )


@pytest.fixture
async def unknown(replica: Replica, hasty: Replica) -> str:
    """The id of a job whose sender was lost."""
    (name,) = await replica.posts(1)
    (claimed,) = claims_in(await hasty.claim([a_command(name)]))
    await replica.recover()
    assert await replica.states() == {"UNKNOWN": 1}
    return claimed.job.id


@pytest.mark.parametrize(
    ("outcome", "state", "attempt"),
    [(Said.PUBLISHED, JobState.PUBLISHED, "ACCEPTED"), (Said.NOT_PUBLISHED, JobState.FAILED, "ABSENT")],
)
async def test_a_resolution_ends_the_job_and_its_doubtful_attempt(
    replica: Replica, unknown: str, outcome: Said, state: JobState, attempt: str
) -> None:
    resolved: PostJob = await replica.resolve(call("ResolvePostJob"), unknown, saying(outcome))
    job, attempts, ((run, said, _),) = await ReadJobs(replica.database).get("acme", unknown)
    assert (job.state, job.in_doubt, job.version) == (state, False, resolved.version)
    assert [each.state for each in attempts] == [attempt]
    assert (run, said) == (1, saying(outcome))


async def test_a_repeated_resolution_is_answered_and_announced_once(replica: Replica, unknown: str) -> None:
    first: PostJob = await replica.resolve(call("R", request_id="r1"), unknown, saying(Said.PUBLISHED))
    before = await replica.rows("select count(*) from outbox")
    assert await replica.resolve(call("R", request_id="r1"), unknown, saying(Said.PUBLISHED)) == first
    assert await replica.rows("select count(*) from outbox") == before


async def test_a_resolved_job_cannot_be_resolved_again(replica: Replica, unknown: str) -> None:
    await replica.resolve(call("ResolvePostJob"), unknown, saying(Said.NOT_PUBLISHED))
    with pytest.raises(Refused) as refused:
        await replica.resolve(call("ResolvePostJob"), unknown, saying(Said.PUBLISHED))
    assert refused.value.reason == "POST_JOB_NOT_RESOLVABLE"
    assert await replica.states() == {"FAILED": 1}


async def test_the_job_of_another_organization_is_not_found(replica: Replica, unknown: str) -> None:
    with pytest.raises(NotFound):
        await replica.resolve(call("ResolvePostJob", organization_id="other"), unknown, saying(Said.PUBLISHED))
