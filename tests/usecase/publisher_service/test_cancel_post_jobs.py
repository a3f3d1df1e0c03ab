"""CancelPostJobs: what it answers with CANCELED never begins from that slot."""

import asyncio
import random
from dataclasses import replace
from datetime import timedelta

import pytest

from publisher_service.domain.claim import Command
from publisher_service.domain.outcome import Ambiguous, RateLimited
from publisher_service.domain.plan import Slot
from publisher_service.domain.post_job import Target
from publisher_service.domain.take_back import CancelOutcome
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

CANCELED, TOO_LATE, ENDED = CancelOutcome.CANCELED, CancelOutcome.TOO_LATE, CancelOutcome.ENDED


def a_slot(draft: str, *, slot: str = "slot", revision: int = 1, sequence: int = 0) -> Slot:
    return Slot(
        organization_id="acme",
        slot_id=slot,
        sequence=sequence,
        revision=revision,
        draft_id=draft,
        targets=(Target(social_account_id=f"page-{draft}", channel="facebook"),),
        schedule_time=DUE,
        not_after=FAR,
        target_month="2026-03-01",
        traceparent="",
    )


async def outcomes(replica: Replica, *drafts: str, revision: int = 1) -> list[CancelOutcome]:
    results = await replica.take_back(*(a_slot_post(draft, revision=revision) for draft in drafts))
    return [each.outcome for each in results]


async def test_a_post_that_has_not_started_is_canceled_for_good(replica: Replica) -> None:
    (name,) = await replica.posts(1)
    await replica.take(a_slot(name))
    assert await outcomes(replica, name) == [CANCELED]
    assert await replica.states() == {"CANCELED TAKEN_BACK": 1}
    for command in (a_command(name), replace(a_command(name), emission=7)):
        assert claims_in(await replica.claim([command])) == []
    await replica.take(a_slot(name))
    assert await replica.states() == {"CANCELED TAKEN_BACK": 1}


async def test_a_post_is_canceled_before_its_slot_and_command_have_come(replica: Replica) -> None:
    (name,) = await replica.posts(1)
    assert await outcomes(replica, name) == [CANCELED]
    await replica.take(a_slot(name))
    assert claims_in(await replica.claim([a_command(name)])) == []
    (job,) = await replica.rows("select * from post_job")
    assert (job.state, job.state_reason, job.run, job.slot_id) == ("CANCELED", "TAKEN_BACK", 1, "slot")


async def test_a_post_is_canceled_before_its_draft_is_known(replica: Replica) -> None:
    assert await outcomes(replica, "d0") == [CANCELED]
    await replica.posts(1)
    assert claims_in(await replica.claim([a_command("d0")])) == []
    assert await replica.states() == {"CANCELED TAKEN_BACK": 1}


async def test_a_later_revision_and_a_newer_slot_revive_the_post(replica: Replica) -> None:
    names = await replica.posts(2)
    assert await outcomes(replica, *names) == [CANCELED, CANCELED]
    await replica.take(a_slot("d0", revision=2), a_slot("d1", slot="another", sequence=1))
    assert await replica.states() == {"SCHEDULED": 2}
    again = [
        replace(a_command("d0"), slot_revision=2),
        replace(a_command("d1"), slot_id="another", slot_sequence=1),
    ]
    claimed = claims_in(await replica.claim(again))
    assert [(each.job.draft_id, each.job.run) for each in claimed] == [("d0", 2), ("d1", 2)]


async def test_a_command_of_a_later_revision_alone_revives_the_post(replica: Replica) -> None:
    (name,) = await replica.posts(1)
    await outcomes(replica, name)
    (claimed,) = claims_in(await replica.claim([replace(a_command(name), slot_revision=2)]))
    assert (claimed.job.run, claimed.idempotency_key) == (2, f"{claimed.job.id}-2")


async def test_a_post_that_is_sent_or_out_is_too_late(replica: Replica) -> None:
    names = await replica.posts(3)
    claimed = claims_in(await replica.claim([a_command(name) for name in names]))
    await replica.settle([a_sent(claimed[1]), a_sent(claimed[2], Ambiguous(reason="LOST", message=""))])
    before = await replica.rows("select * from post_job order by id")
    results = await replica.take_back(*map(a_slot_post, names))
    assert [(each.outcome, each.job.state) for each in results] == [
        (TOO_LATE, "SENDING"),
        (TOO_LATE, "PUBLISHED"),
        (TOO_LATE, "UNKNOWN"),
    ]
    assert await replica.rows("select * from post_job order by id") == before


async def test_a_post_that_waits_in_doubt_is_too_late(replica: Replica, hasty: Replica) -> None:
    (name,) = await replica.posts(1)
    await hasty.claim([a_command(name)])
    await replica.recover()
    (question,) = (await replica.recover()).questions
    await replica.look_up(question.job)
    assert await replica.states() == {"WAITING RETRY": 1}
    assert await outcomes(replica, name) == [TOO_LATE]


async def test_a_post_that_has_failed_or_has_a_newer_slot_has_ended(replica: Replica) -> None:
    names = await replica.posts(2)
    await replica.take(a_slot("d0"), a_slot("d1", revision=2))
    await replica.write(
        "update post_job set state = 'FAILED', error_reason = 'REJECTED', next_action_time = null where draft_id = 'd0'"
    )
    assert await outcomes(replica, *names) == [ENDED, ENDED]
    assert await replica.states() == {"FAILED": 1, "SCHEDULED": 1}


async def test_a_waiting_post_is_canceled_and_its_copy_is_done(replica: Replica) -> None:
    (name,) = await replica.posts(1)
    (claimed,) = claims_in(await replica.claim([a_command(name)]))
    await replica.settle([a_sent(claimed, RateLimited(message="", retry_after=timedelta(seconds=90)))])
    assert await outcomes(replica, name) == [CANCELED]
    assert claims_in(await replica.claim([a_command(name)])) == []


async def test_a_line_goes_on_without_the_posts_that_were_taken_back(replica: Replica) -> None:
    names = await replica.posts(4, account="page")
    (claimed,) = claims_in(await replica.claim([a_command(name, "page") for name in names]))
    in_line = [name for name in names if name != claimed.job.draft_id]
    results = await replica.take_back(*(a_slot_post(name, "page") for name in in_line[:2]))
    assert [each.outcome for each in results] == [CANCELED, CANCELED]
    await replica.settle([a_sent(claimed)])
    (last,) = await replica.next_in_line()
    assert last.job.draft_id == in_line[2]
    await replica.settle([a_sent(last)])
    assert await replica.next_in_line() == []
    assert await replica.rows("select 1 from account_gate where lined or wake_time is not null") == []


async def test_a_held_line_is_emptied(replica: Replica) -> None:
    names = await replica.posts(2, account="page")
    await replica.hold("page")
    await replica.claim([a_command(name, "page") for name in names])
    results = await replica.take_back(*(a_slot_post(name, "page") for name in names))
    assert [each.outcome for each in results] == [CANCELED, CANCELED]
    await replica.release()
    assert await replica.next_in_line() == []
    assert await replica.rows("select 1 from account_gate where lined or wake_time is not null") == []


async def test_a_taken_back_post_is_not_revived_by_its_draft(replica: Replica) -> None:
    (name,) = await replica.posts(1)
    await replica.take(a_slot(name))
    await replica.write("update post_job set state = 'CANCELED', state_reason = 'TARGET_REMOVED'")
    assert await outcomes(replica, name) == [CANCELED]
    await replica.save(a_draft(name, f"page-{name}", version=2))
    assert await replica.states() == {"CANCELED TAKEN_BACK": 1}


async def test_repeated_and_repeating_calls_answer_the_same(replica: Replica) -> None:
    (name,) = await replica.posts(1)
    first = await replica.take_back(a_slot_post(name), a_slot_post(name))
    assert [each.outcome for each in first] == [CANCELED, CANCELED]
    again = await replica.take_back(a_slot_post(name))
    assert again[0] == first[1]


async def test_nothing_starts_after_a_take_back_was_answered(replica: Replica, another: Replica) -> None:
    """Two replicas claim, and slots and cancellations come in any order."""
    names = await replica.posts(200)
    canceled: set[str] = set()

    async def take_back(some: list[str]) -> None:
        await asyncio.sleep(random.uniform(0, 0.02))
        results = await another.take_back(*map(a_slot_post, some))
        canceled.update(each.job.draft_id for each in results if each.outcome is CANCELED)

    async def claim(mine: Replica, commands: list[Command]) -> None:
        await asyncio.sleep(random.uniform(0, 0.02))
        await mine.claim(commands)

    for start in range(0, 200, 20):
        round_of = names[start : start + 20]
        async with asyncio.TaskGroup() as group:
            group.create_task(take_back(random.sample(round_of, 20)))
            group.create_task(replica.take(*map(a_slot, round_of[::2])))
            for mine, half in ((replica, round_of[:10]), (another, round_of[10:])):
                group.create_task(claim(mine, [a_command(name) for name in half]))
        assert not claims_in(await replica.claim([a_command(name) for name in round_of]))

    started = {row.draft_id for row in await replica.rows("select draft_id from post_job where state = 'SENDING'")}
    assert started == set(names) - canceled
    assert await replica.states() == {"SENDING": len(started), "CANCELED TAKEN_BACK": len(canceled)}


async def test_takers_of_the_same_unknown_posts_make_one_job_each(replica: Replica, another: Replica) -> None:
    drafts = [f"unknown-{number}" for number in range(20)]
    async with asyncio.TaskGroup() as group:
        for mine in (replica, another, replica, another):
            group.create_task(mine.take_back(*map(a_slot_post, random.sample(drafts, 20))))
    assert await replica.states() == {"CANCELED TAKEN_BACK": 20}


@pytest.mark.parametrize("moved_on", [False, True])
async def test_a_taken_back_post_is_announced_and_comes_again(start: Start, moved_on: bool) -> None:
    async with start() as rig:
        await rig.connect()
        await rig.hold()
        await rig.save_draft("d1")
        slot = await rig.go("d1")
        await rig.in_state("BLOCKED", "d1")
        assert [each.outcome for each in (await rig.take_back("d1", slot)).results] == [1]
        assert (await rig.kinds("d1"))[-1] == "CANCELED"
        assert (await rig.announced("d1"))[-1].post_job.state_reason == "TAKEN_BACK"
        await rig.release()
        due = rig.clock.now()
        if moved_on:
            await rig.move("d1", slot, due)
            await rig.in_state("SCHEDULED", "d1")
        await rig.command("d1", slot, due, slot_revision=2)
        job = await rig.in_state("PUBLISHED", "d1")
        assert (job.run, len(rig.sandbox.effects())) == (2, 1)
