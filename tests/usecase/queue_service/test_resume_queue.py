"""Resuming a queue: overdue slots get new times, are canceled, or go out one after the other."""

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from civil.weekly import WeeklySlot
from postflow.queue.v1.queue_events_pb2 import SLOT_CANCEL_REASON_OVERDUE, SLOT_MOVE_REASON_RESUMED
from postflow.queue.v1.queue_slot_pb2 import QUEUE_SLOT_ORIGIN_QUEUE
from queue_service.domain.resuming import OverduePolicy
from servicekit.faults import Conflict, NotFound, Refused, Unavailable
from servicekit.timestamps import moment
from testkit.clocks import START
from tests.usecase.queue_service.pausing import FEED, Pausing

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

HOUR = timedelta(hours=1)
DAILY = [WeeklySlot(day=day, hour=12, minute=0) for day in range(7)]
NOON = START.replace(hour=12)


@pytest.fixture
def pausing(queue: "Queue") -> Pausing:
    return Pausing(queue)


async def overdue(queue: "Queue", pausing: Pausing, *, schedule: bool = True) -> None:
    """Leaves two overdue slots and one in the future on a paused account."""
    if schedule:
        await queue.put_schedule("page", *DAILY)
    for draft, after in (("d1", HOUR), ("d2", 2 * HOUR), ("d3", 27 * HOUR)):
        await queue.save_draft(draft, FEED)
        await queue.at(draft, START + after)
    await pausing.pause()
    queue.now = START + 3 * HOUR


async def test_overdue_slots_get_the_next_free_times_in_their_order(queue: "Queue", pausing: Pausing) -> None:
    await overdue(queue, pausing)
    resumed = await pausing.resume()
    # The slot of tomorrow noon is taken by the third draft.
    times = [moment(slot.schedule_time) for slot in resumed.moved_slots]
    assert [slot.draft_id for slot in resumed.moved_slots] == ["d1", "d2"]
    assert times == [NOON + timedelta(days=2), NOON + timedelta(days=3)]
    assert {slot.origin for slot in resumed.moved_slots} == {QUEUE_SLOT_ORIGIN_QUEUE}
    assert [moved.reason for moved in await queue.moves()] == [SLOT_MOVE_REASON_RESUMED] * 2
    shown = resumed.queue
    assert (shown.paused, shown.hold_pending, shown.overdue_slots, shown.scheduled_slots) == (False, False, 0, 3)
    hold = queue.publisher.holds["page"]
    assert (hold.in_force, hold.revision) == (False, 2)


async def test_overdue_slots_go_out_at_the_pace_of_the_queue(queue: "Queue", pausing: Pausing) -> None:
    await overdue(queue, pausing, schedule=False)
    await pausing.update(pace=timedelta(minutes=7))
    resumed = await pausing.resume(overdue=OverduePolicy.PUBLISH_PACED)
    assert [moment(slot.schedule_time) for slot in resumed.moved_slots] == [
        queue.now,
        queue.now + timedelta(minutes=7),
    ]
    assert queue.new_slots.is_set()
    await queue.hand_over.dispatch()
    assert [command.draft_id for command in queue.stream.taken()] == ["d1"]


async def test_overdue_slots_are_canceled(queue: "Queue", pausing: Pausing) -> None:
    await overdue(queue, pausing, schedule=False)
    resumed = await pausing.resume(overdue=OverduePolicy.CANCEL)
    assert [slot.draft_id for slot in resumed.canceled_slots] == ["d1", "d2"]
    assert {slot.state_reason for slot in resumed.canceled_slots} == {"OVERDUE"}
    assert await queue.states() == {"d1": "CANCELED", "d2": "CANCELED", "d3": "SCHEDULED"}
    assert {each.reason for each in await queue.cancellations()} == {SLOT_CANCEL_REASON_OVERDUE}


async def test_dispatch_goes_on_after_a_resumption(queue: "Queue", pausing: Pausing) -> None:
    await queue.save_draft("d1", FEED)
    await queue.at("d1", START + HOUR)
    await pausing.pause()
    resumed = await pausing.resume()
    assert list(resumed.moved_slots) == []
    queue.now += HOUR
    await queue.hand_over.dispatch()
    assert await queue.states() == {"d1": "DISPATCHED"}


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        (lambda queue: queue.schedule.slots.clear(), "NO_SCHEDULE"),
        (lambda queue: queue.schedule.slots["page"].clear(), "HORIZON_EXHAUSTED"),
    ],
)
async def test_a_refusal_leaves_the_queue_paused(
    queue: "Queue", pausing: Pausing, prepare: Callable[["Queue"], None], reason: str
) -> None:
    await overdue(queue, pausing)
    prepare(queue)
    with pytest.raises(Refused) as refused:
        await pausing.resume()
    assert refused.value.reason == reason
    [row] = await queue.rows("select pause_time from account_queue")
    assert row.pause_time is not None
    assert queue.publisher.holds["page"].in_force


async def test_the_etag_is_that_of_the_paused_queue(queue: "Queue", pausing: Pausing) -> None:
    paused = await pausing.pause()
    with pytest.raises(Conflict):
        await pausing.resume(etag="7")
    resumed = await pausing.resume(etag=paused.queue.etag)
    assert int(resumed.queue.etag) == int(paused.queue.etag) + 1


async def test_moving_overdue_slots_changes_the_etag_once(queue: "Queue", pausing: Pausing) -> None:
    await overdue(queue, pausing)
    [row] = await queue.rows("select arrangement from account_queue")
    resumed = await pausing.resume(etag=str(row.arrangement))
    assert int(resumed.queue.etag) == row.arrangement + 1


async def test_resuming_a_queue_that_runs_changes_nothing(queue: "Queue", pausing: Pausing) -> None:
    await queue.save_draft("d1", FEED)
    await queue.at("d1", START)
    queue.now += HOUR
    resumed = await pausing.resume(overdue=OverduePolicy.CANCEL, etag="7")
    assert (resumed.queue.paused, list(resumed.canceled_slots), queue.publisher.holds) == (False, [], {})


async def test_without_publisher_the_hold_is_pending_and_a_repeat_completes_it(
    queue: "Queue", pausing: Pausing
) -> None:
    await overdue(queue, pausing)
    queue.publisher.fault = Unavailable("HOLD_PENDING", "no")
    with pytest.raises(Unavailable) as refused:
        await pausing.resume(request_id="r1")
    assert refused.value.reason == "HOLD_PENDING"
    [row] = await queue.rows("select pause_time, hold_revision, hold_stored_revision from account_queue")
    assert tuple(row) == (None, 2, 1)
    queue.publisher.fault = None
    resumed = await pausing.resume(request_id="r1")
    assert [slot.draft_id for slot in resumed.moved_slots] == ["d1", "d2"]
    assert not resumed.queue.hold_pending
    assert not queue.publisher.holds["page"].in_force
    assert await pausing.resume(request_id="r1") == resumed


async def test_an_older_answer_does_not_release_a_newer_pause(queue: "Queue", pausing: Pausing) -> None:
    await pausing.pause()
    await pausing.resume(request_id="r1")
    queue.publisher.fault = Unavailable("HOLD_PENDING", "no")
    with pytest.raises(Unavailable):
        await pausing.pause()
    queue.publisher.fault = None
    await pausing.resume(request_id="r1")
    await pausing.complete_holds()
    assert queue.publisher.holds["page"].in_force


async def test_an_account_that_publisher_does_not_know_is_refused(queue: "Queue", pausing: Pausing) -> None:
    queue.accounts.missing.add("page")
    with pytest.raises(NotFound) as refused:
        await pausing.resume()
    assert refused.value.reason == "ACCOUNT_NOT_FOUND"


async def test_the_times_of_a_long_queue_are_read_as_they_are_needed(queue: "Queue", pausing: Pausing) -> None:
    await queue.put_schedule("page", *DAILY)
    await queue.fill("page", START, timedelta(minutes=1), 200)
    await pausing.pause()
    queue.now = START + timedelta(days=1)
    resumed = await pausing.resume()
    assert len(resumed.moved_slots) == 200
    assert moment(resumed.moved_slots[-1].schedule_time) == NOON + timedelta(days=200)
