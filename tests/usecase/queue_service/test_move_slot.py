"""MoveSlot: where a slot comes to be, and what refuses it."""

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from civil.weekly import WeeklySlot
from postflow.queue.v1.queue_events_pb2 import SLOT_MOVE_REASON_MOVED, SLOT_MOVE_REASON_SHIFTED
from postflow.queue.v1.queue_slot_pb2 import QUEUE_SLOT_ORIGIN_EXACT, QUEUE_SLOT_ORIGIN_QUEUE
from servicekit.faults import Fault, NotFound
from servicekit.timestamps import timestamp
from testkit.clocks import START
from tests.usecase.queue_service.rearranging import Rearranging

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

HOUR = timedelta(hours=1)
HOURLY = [WeeklySlot(day=day, hour=hour, minute=0) for day in range(7) for hour in range(24)]


@pytest.fixture
async def call(queue: "Queue") -> Rearranging:
    """A queue with four slots, an hour apart, whose schedule has a slot each hour."""
    queue.now = START
    await queue.put_schedule("page", *HOURLY)
    await queue.fill_weekly("page", START + HOUR, HOUR, 4)
    return Rearranging(queue)


async def refusal(call: Rearranging, slot_id: str, **fields: Any) -> Fault:
    with pytest.raises(Fault) as refused:
        await call.move(slot_id, **fields)
    assert await call.etag() == "0"
    return refused.value


async def test_to_the_top(queue: "Queue", call: Rearranging) -> None:
    answer = await call.move("page-2", to_top=True, etag="0")
    assert await call.drafts() == ["page-2", "page-0", "page-1", "page-3"]
    assert (answer.queue_slot.id, queue.time_of(answer.queue_slot)) == ("page-2", START + HOUR)
    assert [slot.id for slot in answer.moved_slots] == ["page-2", "page-0", "page-1"]
    assert answer.etag == await call.etag() == "1"
    reasons = {moved.slot_id: moved.reason for moved in await queue.moves()}
    assert reasons == {
        "page-2": SLOT_MOVE_REASON_MOVED,
        "page-0": SLOT_MOVE_REASON_SHIFTED,
        "page-1": SLOT_MOVE_REASON_SHIFTED,
    }
    assert queue.publisher.asked == []


async def test_before_another(call: Rearranging) -> None:
    await call.move("page-0", before_slot_id="page-3")
    assert await call.drafts() == ["page-1", "page-2", "page-0", "page-3"]


async def test_to_the_bottom(queue: "Queue", call: Rearranging) -> None:
    answer = await call.move("page-0", to_bottom=True)
    assert [slot.id for slot in answer.moved_slots] == ["page-0"]
    assert (queue.time_of(answer.queue_slot), answer.queue_slot.origin) == (START + 5 * HOUR, QUEUE_SLOT_ORIGIN_QUEUE)


async def test_to_a_time(queue: "Queue", call: Rearranging) -> None:
    answer = await call.move("page-0", schedule_time=timestamp(START + 7.5 * HOUR))
    assert (queue.time_of(answer.queue_slot), answer.queue_slot.origin) == (START + 7.5 * HOUR, QUEUE_SLOT_ORIGIN_EXACT)
    await queue.save_draft("new", "page")
    [added] = await queue.add("new")
    assert queue.time_of(added) == START + HOUR


async def test_a_slot_that_is_there_already_stays(queue: "Queue", call: Rearranging) -> None:
    for place in ({"to_top": True}, {"before_slot_id": "page-1"}, {"schedule_time": timestamp(START + HOUR)}):
        answer = await call.move("page-0", **place)
        assert (answer.queue_slot.id, list(answer.moved_slots), answer.etag) == ("page-0", [], "0")
    assert await queue.moves() == []


async def test_a_repeated_request_moves_once(queue: "Queue", call: Rearranging) -> None:
    first = await call.move("page-3", to_top=True, etag="0", request_id="r1")
    assert await call.move("page-3", to_top=True, etag="0", request_id="r1") == first
    assert len(await queue.moves()) == 4


async def test_an_outdated_etag_is_refused(call: Rearranging) -> None:
    refused = await refusal(call, "page-0", to_bottom=True, etag="7")
    assert (refused.code, refused.reason) == ("ABORTED", "ETAG_MISMATCH")


async def test_a_taken_time_is_refused(call: Rearranging) -> None:
    refused = await refusal(call, "page-0", schedule_time=timestamp(START + 2 * HOUR))
    assert (refused.reason, refused.metadata["queue_slot_id"]) == ("SLOT_TAKEN", "page-1")


async def test_the_slot_to_move_before_must_have_a_slot_time(queue: "Queue", call: Rearranging) -> None:
    assert (await refusal(call, "page-0", before_slot_id="nobody")).reason == "SLOT_NOT_FOUND"
    queue.now = START + HOUR
    await queue.hand_over.dispatch()
    refused = await refusal(call, "page-3", before_slot_id="page-0")
    assert (refused.reason, refused.metadata["state"]) == ("SLOT_NOT_SCHEDULED", "DISPATCHED")


async def test_a_new_slot_time_needs_a_schedule(queue: "Queue", call: Rearranging) -> None:
    await queue.put_schedule("page", *HOURLY, version=2, enabled=False)
    assert (await refusal(call, "page-0", to_bottom=True)).reason == "SCHEDULE_DISABLED"
    await queue.delete_schedule("page", version=3)
    assert (await refusal(call, "page-0", to_bottom=True)).reason == "NO_SCHEDULE"
    assert await call.move("page-1", to_top=True)


async def test_in_a_zone_that_was_dropped_a_slot_moves_to_a_chosen_time_only(queue: "Queue", call: Rearranging) -> None:
    schedule = queue.schedule.schedules["page"]
    queue.schedule.schedules["page"] = replace(schedule, time_zone="Europe/Atlantis")
    await queue.rows("update account_queue set time_zone = 'Europe/Atlantis' returning 1")
    assert (await refusal(call, "page-0", to_bottom=True)).reason == "UNKNOWN_TIME_ZONE"
    await call.move("page-0", to_top=True)
    moved = await call.move("page-0", schedule_time=timestamp(START + 9 * HOUR))
    assert (queue.time_of(moved.queue_slot), moved.queue_slot.time_zone) == (START + 9 * HOUR, "")


@pytest.mark.parametrize("state", ["CANCELED", "FAILED", "MISSED"])
async def test_an_ended_slot_is_refused(queue: "Queue", call: Rearranging, state: str) -> None:
    ended = "update slot set state = '%s', next_emit_at = null where id = 'page-0' returning 1"
    await queue.rows(ended % state)
    refused = await refusal(call, "page-0", to_bottom=True)
    assert (refused.code, refused.reason) == ("FAILED_PRECONDITION", "SLOT_NOT_LIVE")
    assert refused.metadata == {"slot_id": "page-0", "state": state}


async def test_an_unknown_slot_and_one_of_another_organization_are_not_found(call: Rearranging) -> None:
    for slot_id, organization in (("nobody", "acme"), ("page-0", "other")):
        refused = await refusal(call, slot_id, to_top=True, organization=organization)
        assert isinstance(refused, NotFound)
        assert refused.metadata == {"slot_id": slot_id}
