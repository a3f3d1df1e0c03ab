"""The sweep: ends leases, asks about unknown outcomes until their deadline, and sets broken rows aside."""

import asyncio
import random
from collections import Counter
from datetime import timedelta
from typing import Any

from sqlalchemy import text

from postflow.bus.v1.bus_pb2 import Envelope
from publisher_service.adapters.postgres.counts import moving
from publisher_service.adapters.postgres.open_claims import lock_expired_jobs
from publisher_service.application.disown_claims import FailedClaim
from publisher_service.application.recover_jobs import RecoverJobs
from publisher_service.domain.outcome import RateLimited
from publisher_service.domain.policy import Policy
from servicekit.clock import SystemClock
from servicekit.ids import Uuid7Source
from servicekit.pg.clock import DatabaseClock, SteadyClock
from servicekit.pg.outbox import Outbox
from testkit.eventually import eventually
from tests.usecase.publisher_service.replica import Replica, a_command, a_sent, claims_in
from tests.usecase.publisher_service.rig import Rig, Start

POLICY = Policy(last_look=timedelta(minutes=1), lookup_again=timedelta(seconds=30))
# The process itself does not sweep: a look-up that it would begin stays in the backlog.
QUIET = {"sweep_period": timedelta(hours=1), "unknown_settle": timedelta(seconds=60)}


def sweep(rig: Rig) -> RecoverJobs:
    return RecoverJobs(
        database=rig.database,
        clock=DatabaseClock(),
        steady=SteadyClock(SystemClock()),
        outbox=Outbox(Uuid7Source(), lambda rows: None),
        policies=lambda name: POLICY,
    )


async def events(replica: Replica) -> int:
    return sum(len(Envelope.FromString(row.payload).events) for row in await replica.rows("select payload from outbox"))


async def unknown(rig: Rig) -> None:
    await rig.connect()
    await rig.sandbox.faults({"fault": "effect_then_reset", "count": 1})
    await rig.save_draft("d1")
    await rig.go("d1")
    await rig.in_state("UNKNOWN", "d1")


async def test_the_end_of_a_lease_wakes_the_line(replica: Replica, hasty: Replica) -> None:
    names = await replica.posts(3, account="page")
    await hasty.claim([a_command(name, "page") for name in names])
    assert await replica.next_in_line() == []
    await replica.recover()
    assert len(await replica.next_in_line()) == 1
    assert await replica.states() == {"UNKNOWN": 1, "SENDING": 1, "READY IN_LINE": 1}


async def test_a_lease_of_the_previous_release_ends_too(replica: Replica) -> None:
    names = await replica.posts(3)
    await replica.claim([a_command(name) for name in names])
    await replica.write("update post_job set next_action_time = now(), lease_end = null")
    await replica.write("delete from open_claim")
    await replica.recover()
    assert await replica.states() == {"UNKNOWN": 3}


async def test_a_sweep_ends_more_leases_than_it_takes_at_once(replica: Replica, hasty: Replica) -> None:
    names = await replica.posts(250)
    await hasty.claim([a_command(name) for name in names])
    assert (await replica.recover()).more
    assert await replica.states() == {"UNKNOWN": 200, "SENDING": 50}
    await replica.recover()
    assert await replica.states() == {"UNKNOWN": 250}
    assert await replica.rows("select 1 from open_claim") == []


async def test_a_locked_job_keeps_its_claim_for_the_next_sweep(replica: Replica, hasty: Replica) -> None:
    names = await replica.posts(2)
    await hasty.claim([a_command(name) for name in names])
    async with replica.database.transaction() as tx:
        await tx.connection.execute(text("select from post_job where draft_id = 'd0' for update"))
        await replica.recover()
        assert await replica.states() == {"UNKNOWN": 1, "SENDING": 1}
    await replica.recover()
    assert await replica.states() == {"UNKNOWN": 2}
    assert await replica.rows("select 1 from open_claim") == []


async def test_a_claim_whose_jobs_ended_otherwise_is_dropped(replica: Replica, hasty: Replica) -> None:
    """The row is left to the sweep, and that waits for the end of the lease."""
    names = await replica.posts(1)
    for claimer, left in ((replica, 1), (hasty, 0)):
        (claimed,) = claims_in(await claimer.claim([a_command(name) for name in names]))
        (open_claim,) = await replica.rows("select sender from open_claim")
        await replica.disown(FailedClaim(sender=open_claim.sender, jobs=[claimed.job.key]))
        await replica.recover()
        assert len(await replica.rows("select 1 from open_claim")) == left
        await replica.write("update open_claim set lease_end = now()")
        await replica.recover()
        assert await replica.rows("select 1 from open_claim") == []
        await replica.write("update post_job set next_action_time = now() - interval '1 minute'")


async def test_a_job_of_two_open_claims_ends_once(replica: Replica, hasty: Replica) -> None:
    """A claim lists its jobs until the last one is settled, and meanwhile another claim may take one of them."""
    (again, _) = claims_in(await hasty.claim([a_command(name) for name in await replica.posts(2)]))
    limited = RateLimited(message="m", retry_after=timedelta(0))
    await hasty.settle([a_sent(again, limited)])
    await replica.write("update account_gate set resume_time = now() - interval '1 minute', wake_time = null")
    await replica.write("update post_job set next_action_time = now() - interval '1 minute' where state <> 'SENDING'")
    await hasty.claim([a_command(again.job.draft_id)])
    assert len(await replica.rows("select 1 from open_claim")) == 2
    async with replica.database.read() as connection:
        assert (await moving(connection)).by_state == {"SENDING": 2}
    before = await events(replica)
    await replica.recover()
    assert await replica.states() == {"UNKNOWN": 2}
    assert await events(replica) == before + 2


async def test_only_what_is_still_sent_counts_as_expired(replica: Replica, hasty: Replica) -> None:
    names = await replica.posts(3)
    settled, *_ = claims_in(await hasty.claim([a_command(name) for name in names]))
    await replica.settle([a_sent(settled)])
    async with replica.database.transaction() as tx:
        now = await DatabaseClock().now(tx)
        expired = await lock_expired_jobs(tx.connection, before=now, limit=10)
    assert {job.draft_id for job in expired} == set(names) - {settled.job.draft_id}
    assert all(job.next_action_time and job.next_action_time <= now for job in expired)


async def test_an_answer_that_races_the_end_of_its_lease_is_recorded_once(replica: Replica, hasty: Replica) -> None:
    names = await replica.posts(200)
    for start in range(0, 200, 20):
        claimed = claims_in(await hasty.claim([a_command(name) for name in names[start : start + 20]]))
        assert len(claimed) == 20
        async with asyncio.TaskGroup() as group:
            group.create_task(replica.recover())
            await asyncio.sleep(random.uniform(0, 0.003))
            group.create_task(hasty.settle([a_sent(each) for each in claimed]))
    assert await replica.states() == {"PUBLISHED": 200}
    attempts = await replica.rows("select state, external_id from attempt")
    assert Counter(row.state for row in attempts) == {"ACCEPTED": 200}
    assert {row.external_id for row in attempts} == {f"out-{name}" for name in names}
    assert await replica.rows("select 1 from account_gate where open_job_id is not null") == []
    await replica.recover()
    assert await replica.rows("select 1 from open_claim") == []


async def test_the_sweep_leaves_a_job_whose_look_ups_hang_to_a_person(start: Start) -> None:
    async with start(**QUIET) as rig:
        await unknown(rig)
        # The look-up at its deadline may still be running.
        await rig.write(
            "update post_job set unknown_until = now() - interval '50 seconds',"
            " next_action_time = now() - interval '1 second'"
        )
        assert len((await sweep(rig)()).questions) == 1
        await rig.write(
            "update post_job set unknown_until = now() - interval '70 seconds',"
            " next_action_time = now() - interval '1 second'"
        )
        assert (await sweep(rig)()).questions == []
        job = await rig.in_state("NEEDS_ATTENTION", "d1")
        assert (job.error_reason, job.in_doubt, job.unknown_until) == ("CONNECTION_LOST", True, None)
        assert "the last look has not ended; attempts 1 of 5" in job.error_message
        assert (await rig.kinds("d1"))[-1] == "NEEDS_ATTENTION"


async def test_a_sweep_after_the_deadline_asks_once_before_it_gives_up(start: Start) -> None:
    async with start(**QUIET) as rig:
        await unknown(rig)
        await rig.write(
            "update post_job set unknown_until = now() - interval '1 hour',"
            " next_action_time = now() - interval '1 hour'"
        )
        assert len((await sweep(rig)()).questions) == 1
        assert (await rig.job("d1")).state == "UNKNOWN"


async def test_the_first_question_sets_the_deadline_of_an_unknown_job(start: Start) -> None:
    async with start(**QUIET) as rig:
        await unknown(rig)
        await rig.write("update post_job set unknown_until = null, next_action_time = now() - interval '1 second'")
        (question,) = (await sweep(rig)()).questions
        job = await rig.job("d1")
        assert job.unknown_until == question.job.unknown_until
        assert job.unknown_until - job.next_action_time == POLICY.unknown_deadline - POLICY.lookup_again


async def test_a_post_without_its_times_is_set_aside_and_others_go_out(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.save_draft("odd")
        await rig.schedule("odd", rig.clock.now() + timedelta(days=1))
        await rig.in_state("SCHEDULED", "odd")
        await rig.write("update post_job set state = 'READY', next_action_time = now(), not_after = null")
        job = await eventually(lambda: put_off(rig))
        assert (job.state, job.version) == ("READY", 2)
        await rig.save_draft("even")
        await rig.go("even")
        await rig.in_state("PUBLISHED", "even")


async def put_off(rig: Rig) -> Any:
    job = await rig.job("odd")
    assert job.next_action_time > rig.clock.now()
    return job
