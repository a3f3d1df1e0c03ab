"""RetryPostJob: the next run of what failed or was missed goes out at once, through every check."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from publisher_service.domain.claim import Claimed, Command
from publisher_service.domain.outcome import Rejected
from publisher_service.domain.take_back import CancelOutcome
from servicekit.faults import NotFound, Refused
from tests.usecase.publisher_service.replica import (
    DUE,
    FAR,
    Replica,
    a_command,
    a_draft,
    a_sent,
    a_slot_post,
    claims_in,
)
from tests.usecase.publisher_service.rig import Start

LOST = "update content set version = version + 1, post_job_ids = '{}'"


@pytest.fixture
async def failed(replica: Replica) -> str:
    """The id of a job that the provider has refused."""
    (name,) = await replica.posts(1)
    (claimed,) = claims_in(await replica.claim([a_command(name)]))
    await replica.settle([a_sent(claimed, Rejected(reason="REJECTED", message="too long"))])
    assert await replica.states() == {"FAILED": 1}
    return claimed.job.id


async def claim_own(replica: Replica) -> list[Claimed]:
    """Sweeps, and claims what the sweep hands on."""
    return claims_in(await replica.claim((await replica.recover()).due))


async def test_a_retried_post_goes_out_in_its_next_run(replica: Replica, failed: str) -> None:
    retried = await replica.retry(failed)
    assert (retried.state, retried.run, retried.attempts, retried.slot_id) == ("READY", 2, 0, "slot")
    (claimed,) = await claim_own(replica)
    assert (claimed.job.run, claimed.job.attempts, claimed.idempotency_key) == (2, 1, f"{failed}-2")
    assert claimed.job.is_called
    await replica.settle([a_sent(claimed)])
    assert await replica.states() == {"PUBLISHED": 1}
    assert [row.run for row in await replica.rows("select run from attempt order by fence")] == [1, 2]


async def test_a_missed_post_is_retried(replica: Replica) -> None:
    (name,) = await replica.posts(1)
    await replica.claim([replace(a_command(name), not_after=DUE)])
    (job,) = await replica.rows("select * from post_job")
    assert job.state == "MISSED"
    until = (await replica.retry(job.id)).not_after
    (claimed,) = await claim_own(replica)
    assert (claimed.job.run, claimed.job.not_after) == (2, until)


@pytest.mark.parametrize("not_after", [DUE, FAR])
async def test_a_late_command_of_the_old_slot_neither_ends_nor_sends_it(
    replica: Replica, failed: str, not_after: datetime
) -> None:
    """One that is missed by now, and one that could still go out."""
    late = [replace(a_command("d0"), emission=emission, not_after=not_after) for emission in (1, 2)]
    assert claims_in(await replica.claim(late[:1])) == []
    before = await replica.retry(failed)
    for command in late:
        assert claims_in(await replica.claim([command])) == []
    (job,) = await replica.rows("select * from post_job")
    assert (job.state, job.version, job.not_after) == ("READY", before.version, before.not_after)
    assert len(await claim_own(replica)) == 1
    for command in late:
        assert claims_in(await replica.claim([command])) == []
    assert await replica.states() == {"SENDING": 1}


async def test_the_old_slot_is_too_late_to_be_taken_back(replica: Replica, failed: str) -> None:
    await replica.retry(failed)
    (result,) = await replica.take_back(a_slot_post("d0"))
    assert result.outcome is CancelOutcome.TOO_LATE
    await replica.drop(a_slot_post("d0", revision=2))
    assert await replica.states() == {"READY": 1}
    assert len(await claim_own(replica)) == 1


async def test_a_held_post_waits_and_goes_out_when_released(replica: Replica, failed: str) -> None:
    await replica.hold("page-d0")
    await replica.retry(failed)
    assert await claim_own(replica) == []
    assert await replica.states() == {"BLOCKED ACCOUNT_ON_HOLD": 1}
    await replica.release()
    (claimed,) = await replica.next_in_line()
    assert (claimed.job.run, claimed.job.is_called) == (2, True)


async def test_a_post_behind_another_waits_for_its_turn(replica: Replica) -> None:
    names = await replica.posts(2, account="page")
    (first,) = claims_in(await replica.claim([a_command("d0", "page")]))
    await replica.settle([a_sent(first, Rejected(reason="REJECTED", message=""))])
    (second,) = claims_in(await replica.claim([a_command("d1", "page")]))
    await replica.retry(first.job.id)
    assert await claim_own(replica) == []
    await replica.settle([a_sent(second)])
    (again,) = await replica.next_in_line()
    assert (again.job.draft_id, again.job.run) == (names[0], 2)


async def test_a_withdrawn_text_is_not_retried(replica: Replica, failed: str) -> None:
    await replica.withdraw("acme", "d0", 2)
    await replica.retry(failed)
    assert await claim_own(replica) == []
    assert await replica.states() == {"BLOCKED WITHDRAWN": 1}


async def test_a_target_that_the_draft_loses_later_ends_the_run(replica: Replica, failed: str) -> None:
    await replica.retry(failed)
    await replica.save(replace(a_draft("d0", "other", version=2), revision=2))
    states = await replica.states()
    assert states["CANCELED TARGET_REMOVED"] == 1


async def test_what_is_refused_changes_nothing(replica: Replica, failed: str) -> None:
    await replica.write(LOST)
    before = await replica.rows("select * from post_job")
    with pytest.raises(Refused) as refused:
        await replica.retry(failed)
    assert refused.value.reason == "TARGET_REMOVED"
    for unknown in ("other", ""):
        with pytest.raises(NotFound):
            await replica.retry(unknown)
    assert await replica.rows("select * from post_job") == before


async def test_repeated_and_concurrent_calls_begin_one_run(replica: Replica, another: Replica, failed: str) -> None:
    async with asyncio.TaskGroup() as group:
        same = [group.create_task(mine.retry(failed, request_id="r")) for mine in (replica, another, replica)]
    assert {task.result().run for task in same} == {2}
    with pytest.raises(Refused) as refused:
        await another.retry(failed)
    assert refused.value.metadata == {"post_job_id": failed, "state": "READY"}


async def test_two_publishers_send_a_retried_post_once(replica: Replica, another: Replica, failed: str) -> None:
    await replica.retry(failed)
    due: list[Command] = list((await replica.recover()).due)
    async with asyncio.TaskGroup() as group:
        claims = [group.create_task(mine.claim(due)) for mine in (replica, another)]
    assert sum(len(claims_in(task.result())) for task in claims) == 1


async def test_a_retried_post_is_sent_at_once_and_announced(start: Start) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.save_draft("d1")
        await rig.sandbox.faults({"fault": "status", "status": 422, "count": 1})
        slot = await rig.go("d1")
        failed = await rig.in_state("FAILED", "d1")
        await rig.retry(failed.id)
        job = await rig.in_state("PUBLISHED", "d1")
        assert (job.run, job.slot_id, job.last_attempt_time - job.schedule_time < timedelta(seconds=2)) == (
            2,
            slot,
            True,
        )
        assert (await rig.kinds("d1"))[-3:] == ["FAILED", "ACCEPTED", "SUCCEEDED"]
        assert len(rig.sandbox.effects()) == 1
