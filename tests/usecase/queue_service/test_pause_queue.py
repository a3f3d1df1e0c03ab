"""Pausing a queue: after OK nothing of the account starts but what the answer lists, and no slot is lost."""

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from queue_service.domain.job import JobState
from queue_service.domain.resuming import OverduePolicy
from servicekit.faults import Conflict, NotFound, Unavailable
from servicekit.timestamps import moment
from testkit.clocks import START
from testkit.eventually import eventually
from tests.usecase.queue_service.pausing import FEED, Pausing, dispatched

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

HOUR = timedelta(hours=1)


@pytest.fixture
def pausing(queue: "Queue") -> Pausing:
    return Pausing(queue)


async def test_a_paused_queue_is_not_dispatched(queue: "Queue", pausing: Pausing) -> None:
    await queue.save_draft("d1", FEED)
    await queue.at("d1", START + HOUR)
    paused = await pausing.pause(reason="an incident")
    shown = paused.queue
    assert (shown.paused, shown.pauser, shown.pause_reason, shown.hold_pending) == (True, "ann", "an incident", False)
    assert (moment(shown.pause_time), shown.scheduled_slots) == (START, 1)
    hold = queue.publisher.holds["page"]
    assert (hold.in_force, hold.revision, hold.reason, hold.holder) == (True, 1, "an incident", "ann")
    queue.now += 48 * HOUR
    await queue.hand_over.dispatch()
    assert (queue.stream.taken(), await queue.states()) == ([], {"d1": "SCHEDULED"})


async def test_what_was_handed_over_and_has_not_started_comes_back(queue: "Queue", pausing: Pausing) -> None:
    await dispatched(queue, ["d1", "d2"])
    queue.publisher.states["d2", "facebook", ""] = JobState.SENDING
    queue.publisher.in_flight = ("job-d2-facebook-",)
    paused = await pausing.pause()
    assert list(paused.in_flight_post_job_ids) == ["job-d2-facebook-"]
    assert await queue.states() == {"d1": "SCHEDULED", "d2": "DISPATCHED"}
    assert (paused.queue.scheduled_slots, paused.queue.dispatched_slots) == (1, 1)
    queue.stream.taken()
    await queue.hand_over.dispatch()
    assert queue.stream.taken() == []


async def test_slots_can_still_be_added_to_a_paused_queue(queue: "Queue", pausing: Pausing) -> None:
    await pausing.pause()
    await queue.save_draft("d1", FEED)
    await queue.at("d1", START)
    await queue.hand_over.dispatch()
    assert await queue.states() == {"d1": "SCHEDULED"}


async def test_pausing_twice_changes_nothing(queue: "Queue", pausing: Pausing) -> None:
    first = await pausing.pause(reason="one")
    queue.now += HOUR
    second = await pausing.pause(reason="two")
    assert second == first
    assert queue.publisher.holds["page"].revision == 1


async def test_pausing_changes_the_etag_once(queue: "Queue", pausing: Pausing) -> None:
    paused = await pausing.pause(etag="0")
    assert paused.queue.etag == "1"
    await pausing.resume()
    with pytest.raises(Conflict) as refused:
        await pausing.pause(etag="0")
    assert refused.value.reason == "ETAG_MISMATCH"


async def test_an_account_that_publisher_does_not_know_is_refused(queue: "Queue", pausing: Pausing) -> None:
    queue.accounts.missing.add("page")
    with pytest.raises(NotFound) as refused:
        await pausing.pause()
    assert refused.value.reason == "ACCOUNT_NOT_FOUND"
    assert await queue.rows("select 1 from account_queue where pause_time is not null") == []


async def test_a_repeated_request_gets_its_first_answer(queue: "Queue", pausing: Pausing) -> None:
    first = await pausing.pause(request_id="r1", etag="0")
    await pausing.resume()
    assert await pausing.pause(request_id="r1", etag="0") == first
    assert not queue.publisher.holds["page"].in_force


async def test_without_publisher_the_queue_is_paused_and_the_hold_pending(queue: "Queue", pausing: Pausing) -> None:
    await dispatched(queue)
    queue.publisher.fault = Unavailable("HOLD_PENDING", "no")
    with pytest.raises(Unavailable) as refused:
        await pausing.pause(request_id="r1", etag="1")
    assert refused.value.reason == "HOLD_PENDING"
    [row] = await queue.rows("select pause_time, hold_revision, hold_stored_revision from account_queue")
    assert tuple(row) == (START, 1, 0)
    queue.publisher.fault = None
    paused = await pausing.pause(request_id="r1", etag="1")
    assert (paused.queue.paused, paused.queue.hold_pending) == (True, False)
    assert await queue.states() == {"d1": "SCHEDULED"}


async def test_posts_that_publisher_does_not_give_back_at_once_come_later(queue: "Queue", pausing: Pausing) -> None:
    await dispatched(queue)
    queue.publisher.cancel_fault = Unavailable("TAKE_BACK_PENDING", "no")
    paused = await pausing.pause()
    assert (paused.queue.paused, paused.queue.dispatched_slots) == (True, 1)
    queue.publisher.cancel_fault = None
    queue.now += timedelta(seconds=11)
    await queue.complete_take_backs()
    assert await queue.states() == {"d1": "SCHEDULED"}


async def test_a_claim_that_waits_for_the_pause_finds_nothing_to_dispatch(queue: "Queue", pausing: Pausing) -> None:
    """Covers a claim that has found the account due and meets its row locked: it passes it over."""
    await queue.save_draft("d1", FEED)
    await queue.at("d1", START)
    async with queue.database.transaction() as tx:
        await tx.connection.exec_driver_sql("select 1 from account_queue for update")
        await queue.hand_over.dispatch()
        await tx.connection.exec_driver_sql("update account_queue set pause_time = now(), hold_revision = 1")
    await queue.hand_over.dispatch()
    assert await queue.states() == {"d1": "SCHEDULED"}


async def test_commands_that_were_claimed_before_the_pause_do_not_overtake_it(queue: "Queue", pausing: Pausing) -> None:
    """The claim has committed and its commands come after the pause: Publisher has given up that revision."""
    await queue.save_draft("d1", FEED)
    await queue.at("d1", START)
    queue.stream.may_send = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(queue.hand_over.dispatch())
        await eventually(lambda: queue.rows("select 1 from slot where state = 'DISPATCHED'"))
        await pausing.pause()
        assert await queue.states() == {"d1": "SCHEDULED"}
        queue.stream.may_send.set()
    [command] = queue.stream.taken()
    [slot] = await queue.rows("select revision from slot")
    assert (command.revision, slot.revision) == (1, 2)
    assert [post.slot_revision for post in queue.publisher.asked[0]] == [1]
    await queue.settle(queue.report(command, JobState.CANCELED, 11, state_reason="TAKEN_BACK"))
    assert await queue.states() == {"d1": "SCHEDULED"}


async def test_pauses_and_resumptions_at_once_leave_publisher_with_the_last(queue: "Queue", pausing: Pausing) -> None:
    await dispatched(queue, ["d1", "d2"])
    await queue.put_schedule("page")
    async with asyncio.TaskGroup() as group:
        for number in range(6):
            group.create_task(pausing.pause(reason=str(number)))
            group.create_task(pausing.resume(overdue=OverduePolicy.PUBLISH_PACED))
    [row] = await queue.rows("select pause_time, hold_revision, hold_stored_revision from account_queue")
    hold = queue.publisher.holds["page"]
    assert (hold.revision, hold.in_force) == (row.hold_revision, row.pause_time is not None)
    assert row.hold_stored_revision == row.hold_revision
    assert set((await queue.states()).values()) <= {"SCHEDULED", "DISPATCHED"}
