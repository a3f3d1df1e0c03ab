"""Settling slots whose targets other slots have sent, or that come and go."""

import asyncio
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from civil.weekly import WeeklySlot
from postflow.queue.v1.queue_slot_pb2 import QUEUE_SLOT_STATE_CANCELED, QUEUE_SLOT_STATE_PUBLISHED
from queue_service.domain.draft import Draft, SavedDraft, Target
from queue_service.domain.job import JobState
from queue_service.domain.settlement import JobReport
from testkit.clocks import START
from tests.usecase.queue_service.steps import channels, slots_of

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

HOUR = timedelta(hours=1)
FEED, STORY = ("page", "facebook", ""), ("page", "instagram_feed", "42")
DAILY = [WeeklySlot(day=day, hour=12, minute=0) for day in range(7)]


async def test_a_late_report_of_an_older_post_cancels_the_newer_slot(queue: "Queue") -> None:
    await queue.put_schedule("page", *DAILY)
    for draft in ("d1", "d2"):
        await queue.save_draft(draft, FEED)
    await queue.at("d1", queue.now)
    await queue.hand_over.dispatch()
    [command] = queue.stream.taken()
    await queue.settle(queue.report(command, JobState.FAILED, 3))
    [again] = await queue.add("d1")
    await queue.settle(queue.report(command, JobState.PUBLISHED, 4))
    first, second = await slots_of(queue)
    assert (first.state, second.id) == (QUEUE_SLOT_STATE_PUBLISHED, again.id)
    assert (second.state, second.state_reason) == (QUEUE_SLOT_STATE_CANCELED, "DRAFT_PUBLISHED")
    assert not second.HasField("publish_time")
    [free] = await queue.add("d2")
    assert free.schedule_time == again.schedule_time


async def test_a_slot_left_without_targets_is_canceled_and_can_be_replaced(queue: "Queue") -> None:
    await queue.save_draft("d1", FEED, STORY)
    [slot] = await queue.at("d1", START + HOUR)
    feed = queue.report_on(slot, JobState.CANCELED, 3)
    await queue.settle(feed)
    assert await queue.states() == {"d1": "SCHEDULED"}
    await queue.settle(feed._replace(channel="instagram_feed", destination="42"))
    assert await queue.states() == {"d1": "CANCELED"}
    await queue.save_draft("d2", "page")
    await queue.at("d2", START + HOUR)
    await queue.save_draft("d1", FEED, revision=2, version=2)
    [again] = await queue.at("d1", START + 2 * HOUR)
    assert channels(again) == ["facebook"]


async def test_a_slot_that_is_settled_while_a_target_joins_stays_open_for_it(queue: "Queue") -> None:
    await queue.save_draft("d1", FEED)
    await queue.at("d1", queue.now)
    await queue.hand_over.dispatch()
    [command] = queue.stream.taken()
    async with asyncio.TaskGroup() as group, queue.database.transaction() as tx:
        targets = (Target(social_account_id="page", channel="instagram_feed", destination="42"),)
        draft = Draft(organization_id="acme", id="d1", revision=2, targets=targets)
        await queue.follow_drafts(tx, [SavedDraft(draft=draft, version=2)], queue.now)
        group.create_task(queue.settle(queue.report(command, JobState.PUBLISHED, 3)))
        await queue.until_waiting()
    assert await queue.states() == {"d1": "DISPATCHED"}
    await queue.hand_over.repeat()
    [joined] = [each for each in queue.stream.taken() if each.channel == "instagram_feed"]
    await queue.settle(queue.report(joined, JobState.PUBLISHED, 3))
    assert await queue.states() == {"d1": "PUBLISHED"}


async def test_a_target_that_lost_the_time_of_a_live_slot_gets_it_back(queue: "Queue") -> None:
    """Covers a target that came back before Queue heard that it was gone."""
    await queue.save_draft("d1", FEED)
    [slot] = await queue.at("d1", START + HOUR)
    await queue.settle(queue.report_on(slot, JobState.SCHEDULED, 2))
    lost = queue.report_on(slot, JobState.PENDING, 4)
    for _ in range(2):
        await queue.settle(lost, queue.report_on(slot, JobState.CANCELED, 3))
    first, again = await queue.announced()
    assert (again.slot_id, again.slot_sequence, again.revision) == (first.slot_id, first.slot_sequence, 2)
    assert (again.schedule_time, again.not_after) == (first.schedule_time, first.not_after)
    await queue.settle(lost._replace(state=JobState.CANCELED, slot_revision=2, version=5))
    assert await queue.states() == {"d1": "CANCELED"}


async def test_a_target_that_comes_back_without_a_slot_gets_no_time(queue: "Queue") -> None:
    await queue.save_draft("d1", FEED)
    [slot] = await queue.at("d1", START + HOUR)
    await queue.settle(queue.report_on(slot, JobState.CANCELED, 3))
    await queue.settle(queue.report_on(slot, JobState.PENDING, 4))
    assert await queue.states() == {"d1": "CANCELED"}
    assert len(await queue.announced()) == 1


@pytest.mark.parametrize(
    "unusual",
    [
        {},
        {"error_message": "an earlier attempt failed"},
        {"state_reason": "RETRY"},
        {"next_action_time": START},
        {"publish_time": None},
        {"external_url": ""},
    ],
)
async def test_a_publication_is_stored_with_all_that_was_reported(queue: "Queue", unusual: dict[str, object]) -> None:
    for draft in ("d1", "d2", "d3"):
        await queue.save_draft(draft, draft)
        await queue.at(draft, START)
    await queue.hand_over.dispatch()
    first, second, failed = sorted(queue.stream.taken(), key=lambda each: each.draft_id)
    queue.now = START + timedelta(seconds=5)
    report = queue.report(first, JobState.PUBLISHED, 3, **unusual)
    await queue.settle(queue.report(failed, JobState.FAILED, 3), report, queue.report(second, JobState.PUBLISHED, 4))
    assert await queue.states() == {"d1": "PUBLISHED", "d2": "PUBLISHED", "d3": "FAILED"}
    [row] = await queue.rows("""
        select t.*, s.publish_time as sent, s.next_emit_at, s.expected_time, s.is_answered, s.state_reason as reason,
            s.update_time
        from slot_target t join slot s on s.id = t.slot_id where s.draft_id = 'd1'
    """)
    assert (row.post_job_id, row.job_state, row.job_version) == (report.job_id, "PUBLISHED", 3)
    assert (row.external_url, row.error_message) == (report.external_url, report.error_message)
    assert (row.state_reason, row.next_action_time) == (report.state_reason, report.next_action_time)
    assert (row.publish_time, row.sent) == (report.publish_time, report.publish_time or queue.now)
    assert (row.next_emit_at, row.expected_time, row.is_answered, row.reason) == (None, None, True, "")
    assert (row.of_another_slot, row.update_time) == (False, queue.now)


@pytest.mark.parametrize("due", [START, START + timedelta(seconds=30), START + HOUR], ids=["due", "soon", "early"])
@pytest.mark.parametrize("before", [None, JobState.READY, JobState.CANCELED, JobState.FAILED])
@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("second", [False, True], ids=["one target", "two targets"])
@pytest.mark.parametrize("taking_back", ["", "RETURN", "CANCEL"])
async def test_a_publication_reported_once_or_twice_settles_alike(
    queue: "Queue", due: datetime, before: JobState | None, version: int, taking_back: str, *, second: bool
) -> None:
    """A target reported once takes one statement, others the rules: both must agree."""
    reports: list[JobReport] = []
    for account in ("one", "two"):
        targets = [(account, "facebook", "")] + ([(account, "facebook", "42")] if second else [])
        await queue.put_schedule(account, *DAILY)
        await queue.save_draft(account, *targets)
        await queue.save_draft(f"{account}-next", account)
        [slot] = await queue.at(account, due)
        await queue.add(f"{account}-next")  # the queue is filled up to this slot
        if before:
            await queue.settle(queue.report_on(slot, before, 2, job_id="job"))
        reports.append(queue.report_on(slot, JobState.PUBLISHED, version, publish_time=START, job_id="job"))
    async with queue.database.transaction() as tx:
        await tx.connection.execute(text("update slot set taking_back = :taking_back"), {"taking_back": taking_back})
    queue.now = START + timedelta(seconds=1)
    await queue.settle(reports[0], reports[1], reports[1])
    once, twice = await queue.rows("""
        select to_jsonb(s) - array['id', 'draft_id', 'social_account_id', 'sequence'] as slot,
            to_jsonb(a) - array['social_account_id', 'last_sequence'] as account,
            (select jsonb_agg(to_jsonb(t) - 'slot_id' order by t.destination) from slot_target t where t.slot_id = s.id)
        from slot s join account_queue a using (organization_id, social_account_id)
        where s.draft_id = s.social_account_id order by s.draft_id
    """)
    assert once == twice
