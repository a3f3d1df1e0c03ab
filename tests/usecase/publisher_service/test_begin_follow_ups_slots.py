"""Slots, calls and withdrawals are about the post: its follow-ups go their own way, one after the other."""

from dataclasses import replace
from datetime import timedelta

from publisher_service.adapters.postgres.jobs import find_job_of_channels
from publisher_service.application.read_jobs import ReadJobs
from publisher_service.domain.outcome import Rejected
from publisher_service.domain.post_job import JobFilter, JobState
from publisher_service.domain.take_back import CancelOutcome
from tests.usecase.publisher_service.follow_ups import (
    claim_part,
    claim_post,
    commented,
    id_of,
    jobs,
    publish,
    settle,
    states,
    write,
)
from tests.usecase.publisher_service.replica import DUE, Replica, a_slot_post
from tests.usecase.publisher_service.restoring import a_slot


async def test_a_slot_gives_its_time_to_the_post_alone(replica: Replica) -> None:
    await write(replica)
    await replica.take(a_slot("d0", DUE))
    assert await states(replica) == ["SCHEDULED", "PENDING", "PENDING"]
    assert [job.slot_id for job in await jobs(replica)] == ["slot", "", ""]


async def test_a_slot_that_comes_before_its_draft_makes_the_post_alone(replica: Replica) -> None:
    await replica.take(a_slot("d0", DUE))
    await write(replica)
    assert [(job.part, job.parts, job.state) for job in await jobs(replica)] == [
        (0, 2, "SCHEDULED"),
        (1, 1, "PENDING"),
        (2, 0, "PENDING"),
    ]


async def test_a_canceled_slot_leaves_follow_ups_as_they_are(replica: Replica) -> None:
    await write(replica)
    await replica.take(a_slot("d0", DUE))
    await replica.drop(a_slot_post("d0"))
    assert await states(replica) == ["PENDING"] * 3
    assert [job.version for job in await jobs(replica)][1:] == [1, 1]


async def test_a_post_that_is_taken_back_keeps_its_follow_ups_waiting(replica: Replica) -> None:
    await write(replica)
    await replica.take(a_slot("d0", DUE))
    (taken,) = await replica.take_back(a_slot_post("d0"))
    assert (taken.outcome, taken.job.id) == (CancelOutcome.CANCELED, id_of(0))
    assert await states(replica) == ["CANCELED TAKEN_BACK", "PENDING", "PENDING"]


async def test_to_take_a_post_back_is_too_late_once_it_is_out(replica: Replica) -> None:
    await write(replica)
    await publish(replica)
    await replica.begin_follow_ups()
    (taken,) = await replica.take_back(a_slot_post("d0"))
    assert taken.outcome is CancelOutcome.TOO_LATE
    assert await states(replica) == ["PUBLISHED", "READY", "PENDING"]


async def test_what_is_published_at_once_is_the_post(replica: Replica) -> None:
    await write(replica)
    (result,) = await replica.publish(commented("d0", "one", "two"))
    assert (result.reason, result.job.id, result.job.part) == ("", id_of(0), 0)
    assert await states(replica) == ["READY", "PENDING", "PENDING"]
    await settle(replica, await claim_part(replica))
    assert await replica.begin_follow_ups()
    assert await states(replica) == ["PUBLISHED", "READY", "PENDING"]


async def test_publishing_at_once_does_not_repeat_what_is_out(replica: Replica) -> None:
    await write(replica)
    await publish(replica)
    await replica.begin_follow_ups()
    (result,) = await replica.publish(commented("d0", "one", "two"))
    assert (result.reason, result.job.id) == ("ALREADY_PUBLISHED", id_of(0))
    assert await states(replica) == ["PUBLISHED", "READY", "PENDING"]


async def test_a_withdrawal_comes_too_late_once_the_post_is_out(replica: Replica) -> None:
    await write(replica)
    await publish(replica)
    withdrawal = await replica.withdraw("acme", "d0", 2)
    assert [(job.id, job.part) for job in withdrawal.published] == [(id_of(0), 0)]


async def test_a_withdrawal_covers_every_part(replica: Replica) -> None:
    await write(replica)
    assert not (await replica.withdraw("acme", "d0", 2)).published
    assert {job.withdrawn_below for job in await jobs(replica)} == {2}


async def test_a_draft_that_loses_its_target_loses_the_follow_ups(replica: Replica) -> None:
    await write(replica)
    await replica.save(replace(commented("d0", "one", "two", revision=2), targets=()))
    assert await states(replica) == ["CANCELED TARGET_REMOVED"] * 3
    await replica.save(commented("d0", "one", "two", revision=3))
    assert await states(replica) == ["PENDING"] * 3
    await publish(replica)
    assert await replica.begin_follow_ups()
    assert (await states(replica))[1] == "READY"


async def test_a_regained_post_does_not_go_by_the_slot_of_a_follow_up(replica: Replica) -> None:
    """A follow-up without a slot is no sign that a slot is alive."""
    await write(replica)
    await replica.take(a_slot("d0", DUE))
    await replica.save(replace(commented("d0", "one", "two", revision=2), targets=()))
    await replica.save(commented("d0", "one", "two", revision=3))
    assert await states(replica) == ["PENDING"] * 3


async def test_follow_ups_follow_the_brand_of_their_draft(replica: Replica) -> None:
    await write(replica)
    await replica.save(replace(commented("d0", "one", "two", revision=2), brand_id="brand"))
    assert {job.brand_id for job in await jobs(replica)} == {"brand"}


async def test_the_jobs_of_a_draft_are_listed_by_post_and_part(replica: Replica) -> None:
    await replica.posts(1)
    await replica.save(commented("d0", "one"))
    # A comment that came later belongs to the same post.
    await replica.save(commented("d0", "one", "two", "three", revision=2), now=DUE + timedelta(days=1))
    read = ReadJobs(replica.database)
    wanted = JobFilter(organization_id="acme", draft_id="d0")
    assert [job.part for job in await read.list(wanted, before=None, limit=50)] == [0, 1, 2, 3]
    seen, last = [], None
    while page := await read.list(wanted, before=last, limit=1):
        seen += [job.part for job in page]
        last = (page[-1].create_time, page[-1].id)
    assert seen == [0, 1, 2, 3]
    await publish(replica)
    pending = replace(wanted, states=(JobState.PENDING,))
    assert [job.part for job in await read.list(pending, before=None, limit=50)] == [1, 2, 3]


async def test_follow_ups_behind_a_post_that_failed_keep_no_channel_in_use(replica: Replica) -> None:
    async def found() -> tuple[str, str] | None:
        async with replica.database.read() as connection:
            return await find_job_of_channels(connection, ("acme", "page-d0"), ["facebook"])

    await write(replica)
    assert await found() == (id_of(0), "facebook")
    await settle(replica, await claim_post(replica), Rejected(reason="TEXT_TOO_LONG", message="too long"))
    assert await found() is None
    await replica.retry(id_of(0))
    assert await found() == (id_of(0), "facebook")
