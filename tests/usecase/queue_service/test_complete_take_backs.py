"""The loop that takes posts back for calls that died, and for paused queues."""

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from queue_service.domain.job import JobState
from queue_service.domain.slot import CancelReason
from servicekit.faults import Unavailable
from testkit.clocks import START
from tests.usecase.queue_service.test_take_back import FEED, dispatched, intend, intentions

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

SOON = timedelta(seconds=11)


async def change(queue: "Queue", sql: str) -> None:
    async with queue.database.transaction() as tx:
        await tx.connection.execute(text(sql))


async def pause(queue: "Queue") -> None:
    await change(queue, "update account_queue set pause_time = '2026-01-01', hold_revision = 1")


async def test_a_call_that_died_is_completed(queue: "Queue") -> None:
    await dispatched(queue, "d1", "d2")
    [slot] = await queue.rows("select id from slot where draft_id = 'd2'")
    await intend(queue)
    await intend(queue, [slot.id], reason=CancelReason.CLEARED)
    await queue.complete_take_backs()
    assert queue.publisher.asked == []  # the call may still be waiting for its answer
    queue.now += SOON
    await queue.complete_take_backs()
    assert await queue.states() == {"d1": "SCHEDULED", "d2": "CANCELED"}
    [canceled] = await queue.rows("select state_reason from slot where draft_id = 'd2'")
    assert canceled.state_reason == "CLEARED"
    await queue.complete_take_backs()
    assert len(queue.publisher.asked) == 1


async def test_it_asks_until_publisher_answers(queue: "Queue") -> None:
    await dispatched(queue, "d1")
    await intend(queue)
    queue.publisher.fault = Unavailable("UNAVAILABLE", "no")
    for _ in range(2):
        queue.now += SOON
        await queue.complete_take_backs()
    assert await intentions(queue) == {"d1": "RETURN"}
    queue.publisher.fault = None
    queue.now += SOON
    await queue.complete_take_backs()
    assert await queue.states() == {"d1": "SCHEDULED"}


async def test_two_processes_ask_once(queue: "Queue") -> None:
    await dispatched(queue, "d1")
    await intend(queue)
    queue.now += SOON
    queue.publisher.states["d1", "facebook", ""] = JobState.SENDING
    await pause(queue)
    for _ in range(2):
        await queue.complete_take_backs()
    assert len(queue.publisher.asked) == 1


async def test_a_paused_queue_gets_back_what_could_not_be_stopped_and_failed(queue: "Queue") -> None:
    await dispatched(queue, "d1")
    [command] = queue.stream.taken()
    await queue.settle(queue.report(command, JobState.SENDING, 2))
    await pause(queue)
    queue.now += SOON
    await queue.complete_take_backs()
    assert queue.publisher.asked == []
    await queue.settle(queue.report(command, JobState.BLOCKED, 3, state_reason="ACCOUNT_ON_HOLD"))
    queue.now += SOON
    await queue.complete_take_backs()
    assert await queue.states() == {"d1": "SCHEDULED"}


async def test_while_it_is_paused_posts_are_asked_for_until_they_end(queue: "Queue") -> None:
    await dispatched(queue, "d1")
    await pause(queue)
    queue.publisher.states["d1", "facebook", ""] = JobState.SENDING
    queue.now += SOON
    await queue.complete_take_backs()
    assert await intentions(queue) == {"d1": "RETURN"}
    await change(queue, "update account_queue set pause_time = null")
    queue.now += SOON
    await queue.complete_take_backs()
    assert await intentions(queue) == {"d1": ""}


async def test_slots_of_queues_that_run_are_left_alone(queue: "Queue") -> None:
    await dispatched(queue, "d1")
    queue.now += SOON
    await queue.complete_take_backs()
    assert queue.publisher.asked == []


async def test_every_page_of_paused_queues_is_looked_at(queue: "Queue") -> None:
    accounts = [f"page-{number:03}" for number in range(450)]
    await queue.fill(accounts, START, timedelta(minutes=1), 1)
    await change(queue, "update slot set state = 'DISPATCHED'")
    await pause(queue)
    queue.now += SOON
    await queue.complete_take_backs()
    assert set((await queue.states()).values()) == {"SCHEDULED"}


async def as_the_previous_release_ends_it(queue: "Queue") -> None:
    await dispatched(queue, "d1")
    [command] = queue.stream.taken()
    await intend(queue)
    answer = queue.report(command, JobState.CANCELED, 11, state_reason="TAKEN_BACK")
    await change(queue, "update slot set taking_back = ''")
    await queue.settle(answer)
    await change(queue, "update slot set taking_back = 'RETURN'")
    assert await queue.states() == {"d1": "CANCELED"}
    queue.now += SOON


async def test_a_slot_that_the_previous_release_has_canceled_returns(queue: "Queue") -> None:
    await as_the_previous_release_ends_it(queue)
    await queue.complete_take_backs()
    queue.now += SOON
    await queue.complete_take_backs()
    assert await queue.states() == {"d1": "SCHEDULED"}
    assert [moved.revision for moved in await queue.moves()] == [2]


@pytest.mark.parametrize("minutes", [0, 60])
async def test_it_stays_canceled_if_its_place_was_given_away(queue: "Queue", minutes: int) -> None:
    await as_the_previous_release_ends_it(queue)
    draft = "d2" if minutes == 0 else "d1"
    await queue.save_draft(draft, FEED)
    await queue.at(draft, START + timedelta(minutes=minutes))
    await queue.complete_take_backs()
    queue.now += SOON
    await queue.complete_take_backs()
    rows = await queue.rows("select state, taking_back from slot order by create_time")
    assert [tuple(row) for row in rows] == [("CANCELED", ""), ("SCHEDULED", "")]


async def test_an_intention_for_a_slot_that_has_ended_is_forgotten(queue: "Queue") -> None:
    await dispatched(queue, "d1")
    await intend(queue)
    await change(queue, "update slot set state = 'FAILED', next_emit_at = null")
    queue.now += SOON
    await queue.complete_take_backs()
    assert (await intentions(queue), await queue.states()) == ({"d1": ""}, {"d1": "FAILED"})


async def test_posts_without_an_answer_keep_no_other_tenant_waiting(queue: "Queue") -> None:
    for organization in ("acme", "zeta"):
        await queue.fill(organization, START, timedelta(minutes=1), 1, organization_id=organization)
    await change(queue, "update slot set state = 'DISPATCHED', taking_back = 'RETURN'")
    queue.publisher.refused.add("acme-0")
    queue.now += SOON
    await queue.complete_take_backs()
    assert await queue.states() == {"acme-0": "DISPATCHED", "zeta-0": "SCHEDULED"}
