"""BeginFollowUps: the next part of a post is due once there is proof of the one before, and once only."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from sqlalchemy import text

from publisher_service.adapters.providers.adapter import Adapter
from publisher_service.domain.outcome import Ambiguous, Rejected
from publisher_service.domain.resolution import Resolution, Said
from testkit.calls import call
from tests.usecase.publisher_service.follow_ups import (
    SilentAdapter,
    ThreadingAdapter,
    claim_part,
    claim_post,
    commented,
    due,
    id_of,
    jobs,
    publish,
    settle,
    states,
    write,
)
from tests.usecase.publisher_service.replica import Replica

LOST = Ambiguous(reason="CONNECTION_LOST", message="reset")
REFUSED = Rejected(reason="TEXT_TOO_LONG", message="too long")
OUT = Resolution(
    outcome=Said.PUBLISHED, external_id="seen", external_url="", publish_time=None, resolver="ann", note=""
)


@pytest.fixture
async def threads(replica: Replica, database_url: str) -> AsyncIterator[Replica]:
    async with _replica(ThreadingAdapter(), database_url) as threads:
        yield threads


@pytest.fixture
async def silent(replica: Replica, database_url: str) -> AsyncIterator[Replica]:
    async with _replica(SilentAdapter(), database_url) as silent:
        yield silent


@asynccontextmanager
async def _replica(adapter: Adapter, url: str) -> AsyncIterator[Replica]:
    replica = Replica(url, adapter=adapter)
    yield replica
    await replica.database.dispose()


async def test_a_draft_has_a_job_for_each_of_its_parts(replica: Replica) -> None:
    await write(replica)
    assert [(job.part, job.parts, job.id) for job in await jobs(replica)] == [
        (part, 2 - part, id_of(part)) for part in range(3)
    ]
    assert await states(replica) == ["PENDING"] * 3


async def test_a_comment_is_due_once_the_post_is_out(replica: Replica) -> None:
    await write(replica)
    post = await claim_post(replica)
    assert not await replica.begin_follow_ups(), "the post is being sent"
    await settle(replica, post)
    assert await due(replica) == 1
    assert await replica.begin_follow_ups()
    assert not await replica.begin_follow_ups()
    assert await states(replica) == ["PUBLISHED", "READY", "PENDING"]
    comment = (await jobs(replica))[1]
    assert (comment.follows, comment.slot_id, comment.called_run) == ("out-0", "", comment.run)
    assert comment.publish_now
    assert comment.over_cap
    assert comment.not_after - comment.schedule_time > timedelta(days=365), "the command of the post allows as much"


async def test_every_comment_follows_the_post(replica: Replica) -> None:
    await write(replica)
    await publish(replica, parts=3)
    assert await states(replica) == ["PUBLISHED"] * 3
    assert [job.follows for job in await jobs(replica)] == ["", "out-0", "out-0"]
    assert not await due(replica)


async def test_each_part_of_a_thread_follows_the_one_before(threads: Replica) -> None:
    await write(threads)
    await publish(threads, parts=3)
    assert [job.follows for job in await jobs(threads)] == ["", "out-0", "out-1"]


async def test_the_attempt_of_a_comment_carries_what_it_follows(replica: Replica) -> None:
    await write(replica)
    await publish(replica)
    await replica.begin_follow_ups()
    claimed = await claim_part(replica)
    assert (claimed.job.part, claimed.job.parts, claimed.job.follows) == (1, 1, "out-0")
    assert claimed.idempotency_key == f"{id_of(1)}-1"


@pytest.mark.parametrize("outcome", [LOST, REFUSED], ids=["lost", "refused"])
async def test_nothing_follows_a_comment_that_is_not_out(replica: Replica, outcome: Ambiguous | Rejected) -> None:
    await write(replica)
    await publish(replica)
    await replica.begin_follow_ups()
    await settle(replica, await claim_part(replica), outcome)
    assert not await replica.begin_follow_ups()
    assert (await states(replica))[2] == "PENDING"


async def test_the_comments_go_on_once_a_person_has_resolved_one(replica: Replica) -> None:
    await write(replica)
    await publish(replica)
    await replica.begin_follow_ups()
    await settle(replica, await claim_part(replica), LOST)
    await replica.resolve(call("ResolvePostJob"), id_of(1), OUT)
    assert await replica.begin_follow_ups()
    assert await states(replica) == ["PUBLISHED", "PUBLISHED", "READY"]


async def test_the_comments_go_on_after_a_retry(replica: Replica) -> None:
    await write(replica)
    await publish(replica)
    await replica.begin_follow_ups()
    await settle(replica, await claim_part(replica), REFUSED)
    retried = await replica.retry(id_of(1))
    assert (retried.follows, retried.is_sent_now, retried.over_cap) == ("out-0", True, True)
    await settle(replica, await claim_part(replica))
    assert await replica.begin_follow_ups()
    assert (await states(replica))[2] == "READY"


async def test_a_post_that_failed_is_followed_once_its_retry_is_out(replica: Replica) -> None:
    await write(replica)
    await settle(replica, await claim_post(replica), REFUSED)
    assert await states(replica) == ["FAILED TEXT_TOO_LONG", "PENDING", "PENDING"]
    assert not await replica.begin_follow_ups()
    await replica.retry(id_of(0))
    await settle(replica, await claim_part(replica))
    assert await replica.begin_follow_ups()
    assert (await states(replica))[1] == "READY"


async def test_nothing_can_follow_a_post_that_has_no_name(replica: Replica) -> None:
    await write(replica)
    await settle(replica, await claim_post(replica), LOST)
    seen = Resolution(
        outcome=Said.PUBLISHED,
        external_id="",
        external_url="https://out",
        publish_time=None,
        resolver="ann",
        note="",
    )
    await replica.resolve(call("ResolvePostJob"), id_of(0), seen)
    assert await replica.begin_follow_ups()
    assert await states(replica) == ["PUBLISHED", "FAILED PARENT_NOT_NAMED", "PENDING"]
    assert not await replica.begin_follow_ups()


async def test_all_parts_fail_where_the_provider_takes_none(silent: Replica) -> None:
    await write(silent)
    await publish(silent)
    while await silent.begin_follow_ups():
        pass
    assert await states(silent) == ["PUBLISHED", "FAILED FOLLOW_UPS_NOT_TAKEN", "FAILED FOLLOW_UPS_NOT_TAKEN"]
    assert not await due(silent)


async def test_parts_wait_for_a_process_that_knows_the_provider(replica: Replica) -> None:
    await write(replica)
    await publish(replica)
    await replica.write("update social_account set provider = 'newer'")
    assert not await replica.begin_follow_ups()
    assert await states(replica) == ["PUBLISHED", "PENDING", "PENDING"]
    assert await due(replica) == 1


async def test_two_processes_begin_a_comment_once(replica: Replica, another: Replica) -> None:
    await write(replica)
    await publish(replica)
    async with asyncio.TaskGroup() as group:
        for each in (replica, another) * 3:
            group.create_task(each.begin_follow_ups())
    assert (await jobs(replica))[1].version == 2


async def test_a_comment_that_is_locked_is_begun_later(replica: Replica) -> None:
    await write(replica)
    await publish(replica)
    async with replica.database.transaction() as tx:
        await tx.connection.execute(text("select from post_job where part = 1 for update"))
        assert not await replica.begin_follow_ups()
    assert await replica.begin_follow_ups()


async def test_a_post_that_got_its_comments_while_it_was_sent_is_followed(replica: Replica) -> None:
    await replica.posts(1)
    await replica.save(commented("d0"))
    post = await claim_post(replica)
    await replica.save(commented("d0", "late", revision=2))
    await settle(replica, post)
    assert await replica.begin_follow_ups()
    assert await states(replica) == ["PUBLISHED", "READY"]


async def test_comments_that_come_after_their_post_is_out_are_due(replica: Replica) -> None:
    await replica.posts(1)
    await replica.save(commented("d0"))
    await publish(replica)
    await replica.save(commented("d0", "late", revision=2))
    assert await replica.begin_follow_ups()
    assert await states(replica) == ["PUBLISHED", "READY"]


async def test_a_comment_that_the_draft_has_lost_is_not_begun(replica: Replica) -> None:
    await write(replica)
    post = await claim_post(replica)
    await replica.save(commented("d0", revision=2))
    await settle(replica, post)
    assert not await replica.begin_follow_ups()
    assert await states(replica) == ["PUBLISHED", "CANCELED TARGET_REMOVED", "CANCELED TARGET_REMOVED"]


async def test_no_organization_keeps_the_others_waiting(replica: Replica) -> None:
    await write(replica)
    await publish(replica)
    # Each of the busy organization stands for a post whose follow-up was begun.
    await replica.write("insert into follow_up_due select 'aaa', 'job-' || n, now() from generate_series(1, 500) as n")
    for _ in range(3):
        await replica.begin_follow_ups()
    assert (await states(replica))[1] == "READY"
