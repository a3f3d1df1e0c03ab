"""Taking dispatched slots back from Publisher."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from postflow.queue.v1.queue_events_pb2 import SLOT_CANCEL_REASON_REMOVED, SLOT_MOVE_REASON_TAKEN_BACK
from queue_service.adapters.postgres.accounts import lock_queues
from queue_service.domain.job import JobState
from queue_service.domain.slot import CancelReason
from queue_service.domain.take_back import CancelAnswer, SlotPost
from servicekit.faults import DeadlineExceeded, Unavailable
from servicekit.pg.database import Transaction
from testkit.clocks import START

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

HOUR = timedelta(hours=1)
FEED, STORY = ("page", "facebook", ""), ("page", "instagram_feed", "42")
PAGE = ("acme", "page")


async def dispatched(queue: "Queue", *drafts: str) -> None:
    for place, draft in enumerate(drafts):
        await queue.save_draft(draft, FEED)
        await queue.at(draft, START + place * timedelta(seconds=-60))
    await queue.hand_over.dispatch()


async def intend(
    queue: "Queue", slot_ids: Sequence[str] | None = None, *, reason: CancelReason | None = None
) -> list[SlotPost]:
    async def work(tx: Transaction) -> list[SlotPost]:
        await lock_queues(tx, [PAGE])
        if reason:
            return await queue.take_back.intend_cancel(tx, PAGE, slot_ids, reason=reason, now=queue.now)
        return await queue.take_back.intend_return(tx, PAGE, slot_ids, now=queue.now)

    return await queue.database.run(work)


async def apply(queue: "Queue", answers: Sequence[CancelAnswer]) -> None:
    await queue.database.run(lambda tx: queue.take_back.apply(tx, answers, queue.now))


async def take_back(queue: "Queue", *, reason: CancelReason | None = None) -> None:
    await apply(queue, await queue.take_back.ask(await intend(queue, reason=reason)))


async def intentions(queue: "Queue") -> dict[str, str]:
    return {row.draft_id: row.taking_back for row in await queue.rows("select draft_id, taking_back from slot")}


async def test_a_slot_that_is_given_back_is_dispatched_again(queue: "Queue") -> None:
    await dispatched(queue, "d1")
    [command] = queue.stream.taken()
    await queue.settle(queue.report(command, JobState.READY, 2))
    await take_back(queue)
    assert await queue.states() == {"d1": "SCHEDULED"}
    [moved] = await queue.moves()
    assert (moved.reason, moved.revision, moved.slot_id) == (SLOT_MOVE_REASON_TAKEN_BACK, 2, command.slot_id)
    assert moved.schedule_time == moved.previous_schedule_time
    assert [target.channel for target in moved.targets] == ["facebook"]
    await queue.hand_over.dispatch()
    [again] = queue.stream.taken()
    assert (again.revision, again.emission) == (2, 2)
    await queue.settle(queue.report(again, JobState.PUBLISHED, 20))
    assert await queue.states() == {"d1": "PUBLISHED"}


async def test_a_slot_in_the_future_is_due_at_its_time_again(queue: "Queue") -> None:
    await queue.save_draft("d1", FEED)
    await queue.at("d1", START + timedelta(seconds=20))
    await queue.hand_over.dispatch()
    await queue.save_draft("d2", FEED)
    await queue.at("d2", START + HOUR)
    await take_back(queue)
    [row] = await queue.rows("select next_due_time from account_queue")
    assert row.next_due_time == START + timedelta(seconds=20)


async def test_the_event_and_the_answer_are_applied_once(queue: "Queue") -> None:
    await dispatched(queue, "d1")
    answers = await queue.take_back.ask(await intend(queue))
    for _ in range(2):
        await queue.settle(answers[0].job)
        await apply(queue, answers)
    assert [moved.revision for moved in await queue.moves()] == [2]
    assert await queue.states() == {"d1": "SCHEDULED"}


async def test_a_canceled_slot_is_announced_and_frees_its_time(queue: "Queue") -> None:
    await dispatched(queue, "d1")
    await take_back(queue, reason=CancelReason.REMOVED)
    [row] = await queue.rows("select state, state_reason, taking_back from slot")
    assert tuple(row) == ("CANCELED", "REMOVED", "")
    [canceled] = await queue.cancellations()
    assert (canceled.reason, canceled.draft_id) == (SLOT_CANCEL_REASON_REMOVED, "d1")
    await queue.save_draft("d2", FEED)
    await queue.at("d2", START)


async def test_a_cancellation_prevails_over_a_return(queue: "Queue") -> None:
    await dispatched(queue, "d1")
    await intend(queue, reason=CancelReason.REMOVED)
    await take_back(queue)
    assert await queue.states() == {"d1": "CANCELED"}
    [canceled] = await queue.cancellations()
    assert canceled.reason == SLOT_CANCEL_REASON_REMOVED


async def test_only_the_named_slots_are_asked_for(queue: "Queue") -> None:
    await dispatched(queue, "d1", "d2")
    [slot] = await queue.rows("select id from slot where draft_id = 'd2'")
    posts = await intend(queue, [slot.id])
    assert [post.draft_id for post in posts] == ["d2"]
    assert await intentions(queue) == {"d1": "", "d2": "RETURN"}


async def test_scheduled_and_ended_slots_are_not_asked_for(queue: "Queue") -> None:
    await dispatched(queue, "d1")
    [command] = queue.stream.taken()
    await queue.settle(queue.report(command, JobState.FAILED, 2))
    await queue.save_draft("d2", FEED)
    [slot] = await queue.at("d2", START + HOUR)
    assert await intend(queue) == []
    assert await intend(queue, [slot.id, command.slot_id]) == []


@pytest.mark.parametrize("state", [JobState.SENDING, JobState.UNKNOWN])
async def test_too_late_leaves_the_slot_to_its_reports(queue: "Queue", state: JobState) -> None:
    await dispatched(queue, "d1")
    [command] = queue.stream.taken()
    queue.publisher.states["d1", "facebook", ""] = state
    await take_back(queue, reason=CancelReason.REMOVED)
    [row] = await queue.rows("select state, state_reason, taking_back from slot")
    assert tuple(row) == ("DISPATCHED", "", "")
    await queue.settle(queue.report(command, JobState.FAILED, 30))
    assert await queue.states() == {"d1": "FAILED"}


@pytest.mark.parametrize("end", [JobState.MISSED, JobState.FAILED])
async def test_a_post_that_had_ended_settles_its_slot(queue: "Queue", end: JobState) -> None:
    await dispatched(queue, "d1")
    queue.publisher.states["d1", "facebook", ""] = end
    await take_back(queue)
    assert await queue.states() == {"d1": end}
    assert await intentions(queue) == {"d1": ""}


async def test_one_target_returns_while_the_other_goes_out(queue: "Queue") -> None:
    await queue.save_draft("d1", FEED, STORY)
    await queue.at("d1", START)
    await queue.hand_over.dispatch()
    story = next(each for each in queue.stream.taken() if each.channel == "instagram_feed")
    queue.publisher.states["d1", "instagram_feed", "42"] = JobState.SENDING
    await take_back(queue)
    assert await queue.states() == {"d1": "DISPATCHED"}
    assert await intentions(queue) == {"d1": "RETURN"}
    await queue.settle(queue.report(story, JobState.PUBLISHED, 30))
    assert await queue.states() == {"d1": "SCHEDULED"}
    [moved] = await queue.moves()
    assert [target.channel for target in moved.targets] == ["facebook"]
    await queue.hand_over.dispatch()
    [again] = queue.stream.taken()
    assert (again.channel, again.revision) == ("facebook", 2)
    await queue.settle(queue.report(again, JobState.PUBLISHED, 30))
    assert await queue.states() == {"d1": "PUBLISHED"}


async def test_of_a_removed_slot_one_target_may_be_out(queue: "Queue") -> None:
    await queue.save_draft("d1", FEED, STORY)
    await queue.at("d1", START)
    await queue.hand_over.dispatch()
    story = next(each for each in queue.stream.taken() if each.channel == "instagram_feed")
    queue.publisher.states["d1", "instagram_feed", "42"] = JobState.SENDING
    await take_back(queue, reason=CancelReason.REMOVED)
    await queue.settle(queue.report(story, JobState.PUBLISHED, 30))
    assert await queue.states() == {"d1": "PARTIALLY_PUBLISHED"}


@pytest.mark.parametrize("fault", [Unavailable("UNAVAILABLE", "no"), DeadlineExceeded("DEADLINE_EXCEEDED", "no")])
async def test_without_an_answer_nothing_is_decided(queue: "Queue", fault: Unavailable | DeadlineExceeded) -> None:
    await dispatched(queue, "d1")
    posts = await intend(queue)
    queue.publisher.fault = fault
    with pytest.raises(Unavailable) as refused:
        await queue.take_back.ask(posts)
    assert refused.value.reason == "TAKE_BACK_PENDING"
    assert await queue.states() == {"d1": "DISPATCHED"}
    assert await intentions(queue) == {"d1": "RETURN"}


async def test_an_answer_counts_although_another_came_too_late(queue: "Queue") -> None:
    """Covers two calls for one slot: the attempt that was open for the first has ended unsent before the second."""
    await dispatched(queue, "d1")
    posts = await intend(queue)
    queue.publisher.states["d1", "facebook", ""] = JobState.SENDING
    late = await queue.take_back.ask(posts)
    del queue.publisher.states["d1", "facebook", ""]
    given = await queue.take_back.ask(posts)
    await apply(queue, late)
    await apply(queue, given)
    assert await queue.states() == {"d1": "SCHEDULED"}


async def test_a_target_that_joins_meanwhile_keeps_the_slot(queue: "Queue") -> None:
    await dispatched(queue, "d1")
    answers = await queue.take_back.ask(await intend(queue))
    await queue.save_draft("d1", FEED, STORY, revision=2, version=2)
    await apply(queue, answers)
    assert await queue.states() == {"d1": "DISPATCHED"}
    await take_back(queue)
    assert await queue.states() == {"d1": "SCHEDULED"}
    [moved] = await queue.moves()
    assert [target.channel for target in moved.targets] == ["facebook", "instagram_feed"]


async def test_many_posts_are_asked_for_page_by_page(queue: "Queue") -> None:
    await queue.fill("page", START - 700 * timedelta(minutes=1), timedelta(minutes=1), 600)
    async with queue.database.transaction() as tx:
        await tx.connection.execute(text("update slot set state = 'DISPATCHED'"))
    await take_back(queue)
    assert [len(page) for page in queue.publisher.asked] == [500, 100]
    assert set((await queue.states()).values()) == {"SCHEDULED"}


async def test_publisher_may_report_while_slots_are_chosen(queue: "Queue") -> None:
    """The slot ends while the call that wants it back waits for its lock."""
    await dispatched(queue, "d1")
    [command] = queue.stream.taken()
    async with asyncio.TaskGroup() as group, queue.database.transaction() as tx:
        report = queue.report(command, JobState.PUBLISHED, 3)
        await queue.settle_slots(tx, [report], queue.now)
        waiting = group.create_task(intend(queue))
        await queue.until_waiting()
    assert waiting.result() == []
    assert await intentions(queue) == {"d1": ""}
