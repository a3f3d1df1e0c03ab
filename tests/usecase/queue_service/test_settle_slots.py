"""Settling slots by what Publisher announces."""

import asyncio
import random
from datetime import UTC, timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from civil.weekly import WeeklySlot
from postflow.queue.v1.queue_slot_pb2 import QueueSlot
from queue_service.domain.command import Command
from queue_service.domain.frontier import EPOCH
from queue_service.domain.job import JobState
from queue_service.domain.listing import Filter, Position
from queue_service.domain.settlement import JobReport, outcome
from queue_service.wire.slots import queue_slot
from servicekit import failpoints
from servicekit.pg.database import Transaction
from testkit.clocks import START
from testkit.eventually import eventually

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue, Statements

NOON = START.replace(hour=12)
DAILY = [WeeklySlot(day=day, hour=12, minute=0) for day in range(7)]
BOTH = (("page", "facebook", ""), ("page", "instagram_feed", "42"))


async def handed_over(queue: "Queue", *targets: tuple[str, str, str]) -> list[Command]:
    """Hands over a slot at START. Returns its commands in the order of their channels."""
    await queue.save_draft("d1", *targets or BOTH[:1])
    await queue.at("d1", START)
    await queue.hand_over.dispatch()
    return sorted(queue.stream.taken(), key=lambda each: each.channel)


async def shown(queue: "Queue", draft_id: str = "d1") -> QueueSlot:
    page = await queue.list(Filter(organization_id="acme", draft_id=draft_id), after=Position(), size=1)
    return queue_slot(page.slots[0])


async def test_a_published_post_settles_its_slot(queue: "Queue") -> None:
    [command] = await handed_over(queue)
    queue.now = START + timedelta(seconds=1)
    await queue.settle(queue.report(command, JobState.PUBLISHED, 3))
    slot = await shown(queue)
    assert await queue.states() == {"d1": "PUBLISHED"}
    assert slot.publish_time.ToDatetime(UTC) == START
    assert slot.update_time.ToDatetime(UTC) == queue.now
    [target] = slot.targets
    assert (target.post_job_id, target.post_job_state) == ("job-d1-facebook-", "PUBLISHED")
    assert target.external_url == "https://example.org/1"


async def test_a_slot_of_several_targets_is_settled_by_the_last(queue: "Queue") -> None:
    feed, story = await handed_over(queue, *BOTH)
    await queue.settle(queue.report(feed, JobState.FAILED, 3))
    assert await queue.states() == {"d1": "DISPATCHED"}
    await queue.settle(queue.report(story, JobState.PUBLISHED, 3))
    assert await queue.states() == {"d1": "PARTIALLY_PUBLISHED"}


async def test_a_batch_may_hold_everything_about_a_slot(queue: "Queue") -> None:
    feed, story = await handed_over(queue, *BOTH)
    await queue.settle(
        queue.report(story, JobState.PUBLISHED, 4),
        queue.report(feed, JobState.PUBLISHED, 3, publish_time=START + timedelta(seconds=3)),
        queue.report(story, JobState.SENDING, 3),
        queue.report(feed, JobState.SENDING, 2),
    )
    slot = await shown(queue)
    assert await queue.states() == {"d1": "PUBLISHED"}
    assert slot.publish_time.ToDatetime(UTC) == START


async def test_an_old_report_changes_nothing(queue: "Queue") -> None:
    [command] = await handed_over(queue)
    await queue.settle(queue.report(command, JobState.PUBLISHED, 3))
    before = await shown(queue)
    queue.now = START + timedelta(minutes=1)
    await queue.settle(queue.report(command, JobState.PUBLISHED, 3), queue.report(command, JobState.SENDING, 2))
    assert await shown(queue) == before


async def test_a_deferral_shows_when_the_post_is_expected(queue: "Queue") -> None:
    [command] = await handed_over(queue)
    until = START + timedelta(minutes=7)
    await queue.settle(queue.report(command, JobState.WAITING, 2, next_action_time=until, state_reason="RATE_LIMITED"))
    slot = await shown(queue)
    assert slot.expected_time.ToDatetime(UTC) == until
    assert (slot.targets[0].state_reason, slot.targets[0].error_message) == ("RATE_LIMITED", "")
    await queue.settle(queue.report(command, JobState.PUBLISHED, 3))
    assert not (await shown(queue)).HasField("expected_time")


async def test_a_post_published_early_settles_its_slot(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    for draft in ("d1", "d2"):
        await queue.save_draft(draft, "page")
    [slot] = await queue.add("d1")
    await queue.settle(queue.report_on(slot, JobState.PUBLISHED, 3, publish_time=START))
    assert await queue.states() == {"d1": "PUBLISHED"}
    [again] = await queue.add("d2")
    assert queue.time_of(again) == NOON
    queue.now = NOON
    await queue.hand_over.dispatch()
    assert [each.draft_id for each in queue.stream.taken()] == ["d2"]


async def test_a_newer_slot_does_not_send_a_target_that_was_sent(queue: "Queue") -> None:
    first, other = await handed_over(queue, *BOTH)
    await queue.settle(queue.report(first, JobState.FAILED, 3), queue.report(other, JobState.MISSED, 3))
    await queue.at("d1", START + timedelta(minutes=5))
    queue.now = START + timedelta(minutes=5)
    await queue.hand_over.dispatch()
    _, story = sorted(queue.stream.taken(), key=lambda each: each.channel)
    # Publisher answers with the job as it is, which still names the slot that sent it.
    await queue.settle(queue.report(first, JobState.PUBLISHED, 4))
    [live] = await queue.rows("select id from slot where state = 'DISPATCHED'")
    [reported] = await queue.rows(
        "select * from slot_target where slot_id = :id and job_state = 'PUBLISHED'", id=live.id
    )
    assert (reported.channel, reported.of_another_slot) == ("facebook", True)
    queue.now += timedelta(seconds=4)
    await queue.hand_over.repeat()
    assert [each.channel for each in queue.stream.taken()] == ["instagram_feed"]
    later = queue.now + timedelta(seconds=1)
    await queue.settle(queue.report(story, JobState.PUBLISHED, 4, publish_time=later))
    [slot] = await queue.rows("select state, publish_time from slot where id = :id", id=live.id)
    assert (slot.state, slot.publish_time) == ("PUBLISHED", later)


async def test_a_slot_settled_by_its_own_and_an_older_post_in_one_batch_ends(queue: "Queue") -> None:
    first, other = await handed_over(queue, *BOTH)
    await queue.settle(queue.report(first, JobState.FAILED, 3), queue.report(other, JobState.MISSED, 3))
    await queue.at("d1", START + timedelta(minutes=5))
    queue.now = START + timedelta(minutes=5)
    await queue.hand_over.dispatch()
    _, story = sorted(queue.stream.taken(), key=lambda each: each.channel)
    out_before = queue.report(first, JobState.PUBLISHED, 4)
    await queue.settle(queue.report(story, JobState.PUBLISHED, 4, publish_time=queue.now), out_before)
    [slot] = await queue.rows("select state from slot where id = :id", id=story.slot_id)
    assert slot.state == "PUBLISHED"


async def test_reports_without_a_known_slot_are_ignored(queue: "Queue") -> None:
    [command] = await handed_over(queue)
    await queue.settle(
        queue.report(command, JobState.PENDING, 1, slot_id="", slot_revision=0, draft_id="other"),
        queue.report(command, JobState.FAILED, 9, slot_id="unknown"),
        queue.report(command, JobState.FAILED, 9, slot_revision=2),
        queue.report(command, JobState.FAILED, 9, organization_id="umbrella"),
    )
    assert await queue.states() == {"d1": "DISPATCHED"}


async def test_a_post_in_time_leaves_the_account_alone(queue: "Queue", statements: "Statements") -> None:
    """Keeps the fast path off the account's row, for which every caller waits."""
    await queue.put_schedule("page", *DAILY, cap=3)
    [command] = await handed_over(queue)
    statements.clear()
    await queue.settle(queue.report(command, JobState.PUBLISHED, 3))
    assert len(statements.texts) == 3  # the plans, the lock, the update


async def test_two_reports_at_once_settle_the_slot_together(queue: "Queue") -> None:
    feed, story = await handed_over(queue, *BOTH)
    waiting = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
    async with asyncio.TaskGroup() as group, queue.database.transaction() as tx:
        await queue.settle_slots(tx, [queue.report(feed, JobState.FAILED, 3)], START)
        other = group.create_task(queue.settle(queue.report(story, JobState.PUBLISHED, 3)))
        await eventually(lambda: queue.rows(waiting))
        assert not other.done()
    assert await queue.states() == {"d1": "PARTIALLY_PUBLISHED"}


async def test_consumers_at_once_in_any_order_agree(queue: "Queue") -> None:
    slots = 30
    for index in range(slots):
        await queue.save_draft(f"d{index}", (f"a{index}", "facebook", ""), (f"a{index}", "instagram_feed", ""))
        await queue.at(f"d{index}", START)
    await queue.hand_over.dispatch()
    ends = [JobState.PUBLISHED, JobState.FAILED, JobState.MISSED]
    reports: list[JobReport] = []
    for number, command in enumerate(queue.stream.taken()):
        reports += [queue.report(command, JobState.SENDING, 2), queue.report(command, ends[number % 3], 3)]
    reports *= 2
    random.Random(7).shuffle(reports)

    async def consume(share: list[JobReport]) -> None:
        for start in range(0, len(share), 16):
            await queue.settle(*share[start : start + 16])

    async with asyncio.TaskGroup() as group:
        for worker in range(4):
            group.create_task(consume(reports[worker::4]))
    rows = await queue.rows("""
        select s.state, array_agg(t.job_state order by t.channel) as ends from slot s
        join slot_target t on t.organization_id = s.organization_id and t.slot_id = s.id group by s.id, s.state
    """)
    assert len(rows) == slots
    for row in rows:
        assert row.state == outcome(JobState(each) for each in row.ends)
    assert await queue.rows("select 1 from slot where next_emit_at is not null") == []


async def test_a_crash_before_the_commit_settles_nothing_until_it_is_repeated(queue: "Queue") -> None:
    [command] = await handed_over(queue)
    failpoints.install("queue.settle.applied=raise", "development")
    try:
        with pytest.raises(failpoints.FailpointHit):
            await queue.settle(queue.report(command, JobState.PUBLISHED, 3))
    finally:
        failpoints.install("", "development")
    assert await queue.states() == {"d1": "DISPATCHED"}
    await queue.settle(queue.report(command, JobState.PUBLISHED, 3))
    assert await queue.states() == {"d1": "PUBLISHED"}


async def test_an_early_end_and_a_claim_at_once_resolve_their_deadlock(queue: "Queue") -> None:
    """Takes the locks of account and slot in opposite orders; the deadlock is resolved by running again."""
    await queue.put_schedule("page", *DAILY)
    await queue.save_draft("d1", "page")
    [slot] = await queue.add("d1")
    early = queue.report_on(slot, JobState.PUBLISHED, 3, publish_time=START)
    queue.now = NOON - queue.policy.lead
    claimed = asyncio.Event()
    runs = 0

    async def settle(tx: Transaction) -> None:
        nonlocal runs
        runs += 1
        await tx.connection.execute(text("select from slot for update"))
        claimed.set()
        if runs == 1:
            await asyncio.sleep(0.2)
        await queue.settle_slots(tx, [early], START)
        await tx.connection.execute(text("select from account_queue for update"))

    async with asyncio.TaskGroup() as group:
        group.create_task(queue.database.run(settle))
        await claimed.wait()
        group.create_task(queue.hand_over.dispatch())
    assert (await queue.states())["d1"] == "PUBLISHED"


async def test_a_saved_draft_updates_its_live_slots(queue: "Queue") -> None:
    await queue.save_draft("d1", "page")
    await queue.at("d1", NOON)
    await queue.save_draft("d1", "page", revision=3, version=4)
    await queue.save_draft("d1", "page", revision=2, version=3)  # late, and old
    queue.now = NOON
    await queue.hand_over.dispatch()
    assert [each.content_revision for each in queue.stream.taken()] == [3]


async def test_an_end_after_the_slots_time_reopens_nothing(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    await queue.save_draft("d1", "page")
    await queue.add("d1")
    queue.now = NOON
    await queue.hand_over.dispatch()
    [before] = await queue.rows("select search_from from account_queue")
    assert before.search_from > EPOCH
    await queue.settle(queue.report(queue.stream.taken()[0], JobState.FAILED))
    [after] = await queue.rows("select search_from from account_queue")
    assert after == before


@pytest.mark.parametrize("state", JobState)
async def test_a_follow_up_says_nothing_about_the_slot_of_its_post(queue: "Queue", state: JobState) -> None:
    [command] = await handed_over(queue)
    comment = queue.report(command, state, 9, slot_id="", slot_revision=0, part=1, job_id="job-d1-1")
    await queue.settle(comment)
    assert await queue.states() == {"d1": "DISPATCHED"}
    await queue.settle(queue.report(command, JobState.FAILED, 3), comment)
    assert await queue.states() == {"d1": "FAILED"}
