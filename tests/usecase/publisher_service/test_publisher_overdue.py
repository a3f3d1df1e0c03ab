"""The deadline of an unknown outcome holds although no look ends: the sweep itself asks a person."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Any

from publisher_service.application.recover_jobs import RecoverJobs
from publisher_service.domain.policy import Policy
from servicekit.clock import SystemClock
from servicekit.ids import Uuid7Source
from servicekit.pg.clock import DatabaseClock, SteadyClock
from servicekit.pg.outbox import Outbox

Start = Callable[..., AbstractAsyncContextManager[Any]]

POLICY = Policy(last_look=timedelta(minutes=1), lookup_again=timedelta(seconds=30))
# The process itself does not sweep: its looks are those of a backlog that never gets there.
QUIET = {"sweep_period": timedelta(hours=1), "unknown_settle": timedelta(seconds=60)}


def sweep(rig: Any) -> RecoverJobs:
    return RecoverJobs(
        database=rig.database,
        clock=DatabaseClock(),
        steady=SteadyClock(SystemClock()),
        outbox=Outbox(Uuid7Source(), lambda rows: None),
        policies=lambda name: POLICY,
    )


async def unknown(rig: Any) -> None:
    await rig.connect()
    await rig.sandbox.faults({"fault": "effect_then_reset", "count": 1})
    await rig.save_draft("d1")
    await rig.go("d1")
    await rig.in_state("UNKNOWN", "d1")


async def test_a_job_whose_looks_do_not_end_is_left_to_a_person_by_the_sweep(start: Start) -> None:
    async with start(**QUIET) as rig:
        await unknown(rig)
        # It was asked about at its deadline, and the look may still be under way.
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


async def test_a_process_that_comes_back_after_the_deadline_looks_before_it_gives_up(start: Start) -> None:
    async with start(**QUIET) as rig:
        await unknown(rig)
        await rig.write(
            "update post_job set unknown_until = now() - interval '1 hour',"
            " next_action_time = now() - interval '1 hour'"
        )
        assert len((await sweep(rig)()).questions) == 1
        assert (await rig.job("d1")).state == "UNKNOWN"


async def test_an_unknown_job_without_a_deadline_gets_one_with_its_first_question(start: Start) -> None:
    async with start(**QUIET) as rig:
        await unknown(rig)
        await rig.write("update post_job set unknown_until = null, next_action_time = now() - interval '1 second'")
        (question,) = (await sweep(rig)()).questions
        job = await rig.job("d1")
        assert job.unknown_until == question.job.unknown_until
        assert job.unknown_until - job.next_action_time == POLICY.unknown_deadline - POLICY.lookup_again
