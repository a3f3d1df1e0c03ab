"""Pauses that meet other calls, a dispatch or a crash: OK means that nothing more starts."""

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from queue_service.adapters.postgres import dispatch
from queue_service.application import hold_keeper, pause_queue, resume_queue, take_back
from queue_service.domain.job import JobState
from queue_service.domain.resuming import OverduePolicy
from servicekit import failpoints
from servicekit.faults import Unavailable
from testkit.clocks import START
from testkit.eventually import eventually
from tests.usecase.queue_service.pausing import FEED, Pausing, dispatched
from tests.usecase.queue_service.rearranging import Rearranging

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
DOWN = Unavailable("HOLD_PENDING", "no")


@pytest.fixture
def pausing(queue: "Queue") -> Pausing:
    return Pausing(queue)


async def hold_of(queue: "Queue") -> tuple[bool, int, int]:
    [row] = await queue.rows("select pause_time, hold_revision, hold_stored_revision from account_queue")
    return row.pause_time is not None, row.hold_revision, row.hold_stored_revision


@pytest.mark.parametrize("place", [pause_queue.PAUSED, hold_keeper.STORED, take_back.ASKED, pause_queue.HELD], ids=str)
@pytest.mark.parametrize("is_repeated", [True, False], ids=["repeated", "left to the loops"])
async def test_a_pause_that_was_killed_is_completed(
    queue: "Queue", pausing: Pausing, place: str, is_repeated: bool
) -> None:
    await dispatched(queue, ["d1", "d2"])
    failpoints.install(f"{place}=raise", "development")
    with pytest.raises(failpoints.FailpointHit):
        await pausing.pause(request_id="r1", etag="2")
    failpoints.install("", "development")
    if is_repeated:
        paused = await pausing.pause(request_id="r1", etag="2")
        assert (paused.queue.paused, paused.queue.hold_pending, paused.queue.etag) == (True, False, "3")
        assert await pausing.pause(request_id="r1", etag="2") == paused
    await pausing.complete_holds()
    queue.now += 11 * timedelta(seconds=1)
    await queue.complete_take_backs()
    assert await hold_of(queue) == (True, 1, 1)
    assert queue.publisher.holds["page"].in_force
    assert await queue.states() == {"d1": "SCHEDULED", "d2": "SCHEDULED"}
    queue.stream.taken()
    assert not await queue.hand_over.dispatch()


async def test_a_resumption_that_was_killed_is_completed(queue: "Queue", pausing: Pausing) -> None:
    await pausing.pause()
    failpoints.install(f"{resume_queue.RESUMED}=raise", "development")
    with pytest.raises(failpoints.FailpointHit):
        await pausing.resume(request_id="r1")
    failpoints.install("", "development")
    assert queue.publisher.holds["page"].in_force
    resumed = await pausing.resume(request_id="r1")
    assert (resumed.queue.paused, resumed.queue.hold_pending) == (False, False)
    assert (await hold_of(queue), queue.publisher.holds["page"].in_force) == ((False, 2, 2), False)


async def test_a_pause_waits_for_a_claim_and_takes_back_what_it_has_claimed(queue: "Queue", pausing: Pausing) -> None:
    await queue.save_draft("d1", FEED)
    await queue.at("d1", START)
    async with asyncio.TaskGroup() as group, queue.database.transaction() as tx:
        room, horizon = await queue.stream.room(), queue.now + queue.policy.lead
        claim = await dispatch.claim(tx, now=queue.now, horizon=horizon, room=room, policy=queue.policy)
        assert [command.revision for command in claim] == [1]
        paused = group.create_task(pausing.pause())
        await queue.until_waiting()
        assert queue.publisher.holds == {}
    assert (paused.result().queue.scheduled_slots, paused.result().queue.dispatched_slots) == (1, 0)
    assert await queue.states() == {"d1": "SCHEDULED"}
    assert not await queue.hand_over.dispatch()


async def test_an_older_hold_that_comes_late_does_not_win(queue: "Queue", pausing: Pausing) -> None:
    """The first pause is under way to Publisher while the queue is resumed and paused again."""
    await dispatched(queue)
    queue.publisher.delays[1] = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(pausing.pause(reason="first"))
        await eventually(lambda: queue.rows("select 1 from account_queue where hold_revision = 1"))
        await pausing.resume()
        await pausing.pause(reason="second")
        queue.publisher.delays[1].set()
    hold = queue.publisher.holds["page"]
    assert (hold.revision, hold.in_force, hold.reason) == (3, True, "second")
    assert await hold_of(queue) == (True, 3, 3)
    shown = first.result().queue
    assert (shown.paused, shown.pause_reason, shown.hold_pending) == (True, "second", False)


async def test_a_pause_that_was_overtaken_waits_for_the_newer_hold(queue: "Queue", pausing: Pausing) -> None:
    """Publisher has not stored the second pause: to answer OK to the first would promise too much."""
    await dispatched(queue)
    queue.publisher.delays[1] = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(refused_pause(pausing))
        await eventually(lambda: queue.rows("select 1 from account_queue where hold_revision = 1"))
        await pausing.resume()
        queue.publisher.fault = DOWN
        with pytest.raises(Unavailable):
            await pausing.pause(reason="second")
        queue.publisher.fault, queue.publisher.faults[3] = None, DOWN
        queue.publisher.delays[1].set()
    assert first.result() == "HOLD_PENDING"
    queue.publisher.faults.clear()
    queue.publisher.in_flight = ("job-d1-facebook-",)
    paused = await pausing.pause(request_id="r1")
    assert list(paused.in_flight_post_job_ids) == ["job-d1-facebook-"]
    assert await hold_of(queue) == (True, 3, 3)


async def refused_pause(pausing: Pausing) -> str:
    with pytest.raises(Unavailable) as refused:
        await pausing.pause(request_id="r1")
    return refused.value.reason


async def test_an_overtaken_pause_lists_what_the_newer_hold_could_not_stop(queue: "Queue", pausing: Pausing) -> None:
    await dispatched(queue)
    queue.publisher.in_flight = ("job-d1-facebook-",)
    queue.publisher.states["d1", "facebook", ""] = JobState.SENDING
    queue.publisher.delays[1] = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(pausing.pause())
        await eventually(lambda: queue.rows("select 1 from account_queue where hold_revision = 1"))
        await pausing.resume()
        await pausing.pause()
        queue.publisher.delays[1].set()
    assert list(first.result().in_flight_post_job_ids) == ["job-d1-facebook-"]


async def test_an_account_that_has_never_had_a_slot_can_be_paused(queue: "Queue", pausing: Pausing) -> None:
    paused = await pausing.pause("new")
    assert (paused.queue.paused, paused.queue.etag, paused.queue.scheduled_slots) == (True, "1", 0)
    assert queue.publisher.holds["new"].in_force
    await queue.save_draft("d1", "new")
    await queue.at("d1", START)
    assert not await queue.hand_over.dispatch()
    await pausing.resume("new", overdue=OverduePolicy.PUBLISH_PACED)
    assert await queue.hand_over.dispatch()


async def test_a_paused_queue_takes_drafts_and_another_order(queue: "Queue", pausing: Pausing) -> None:
    await pausing.pause()
    for number in range(3):
        await queue.save_draft(f"d{number}", FEED)
        await queue.at(f"d{number}", START + number * HOUR)
    await Rearranging(queue).reorder(drafts=("d2", "d0", "d1"))
    queue.now += 3 * HOUR
    assert not await queue.hand_over.dispatch()
    assert await Rearranging(queue).drafts() == ["d2", "d0", "d1"]
    resumed = await pausing.resume(overdue=OverduePolicy.PUBLISH_PACED)
    assert [slot.draft_id for slot in resumed.moved_slots] == ["d2", "d0", "d1"]


async def test_a_hold_that_is_pending_is_stored_by_one_of_two_loops(queue: "Queue", pausing: Pausing) -> None:
    await dispatched(queue)
    queue.publisher.fault = DOWN
    with pytest.raises(Unavailable):
        await pausing.pause()
    assert (await hold_of(queue), await queue.states()) == ((True, 1, 0), {"d1": "DISPATCHED"})
    queue.publisher.fault = None
    async with asyncio.TaskGroup() as group:
        for _ in range(2):
            group.create_task(pausing.complete_holds())
    assert (await hold_of(queue), await queue.states()) == ((True, 1, 1), {"d1": "SCHEDULED"})
    [slot] = await queue.rows("select revision from slot")
    assert slot.revision == 2


async def test_resuming_does_not_wait_for_the_slots_that_are_taken_back(queue: "Queue", pausing: Pausing) -> None:
    """A slot that comes back after the resumption is dispatched again, in its next revision."""
    await dispatched(queue)
    queue.stream.taken()
    queue.publisher.cancel_fault = Unavailable("TAKE_BACK_PENDING", "no")
    await pausing.pause()
    await pausing.resume()
    queue.publisher.cancel_fault = None
    queue.now += 11 * timedelta(seconds=1)
    await queue.complete_take_backs()
    await queue.hand_over.dispatch()
    [command] = queue.stream.taken()
    assert (command.revision, command.schedule_time) == (2, START)
