"""ReorderQueue: the new order, what refuses it, and calls that come together."""

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from queue_service.domain.rearranged import LISTED
from servicekit.faults import Conflict, Fault, InvalidField
from testkit.clocks import START
from tests.usecase.queue_service.rearranging import Rearranging

if TYPE_CHECKING:
    from postflow.queue.v1.queue_service_pb2 import ReorderQueueResponse
    from tests.usecase.queue_service.conftest import Queue

HOUR = timedelta(hours=1)


@pytest.fixture
async def queue(queue: "Queue") -> "Queue":
    await queue.fill_weekly("page", START + HOUR, HOUR, 4)
    queue.now = START
    return queue


@pytest.fixture
def call(queue: "Queue") -> Rearranging:
    return Rearranging(queue)


async def refusal(call: Rearranging, *slot_ids: str, drafts: tuple[str, ...] = ()) -> Fault:
    with pytest.raises(Fault) as refused:
        await call.reorder(*slot_ids, drafts=drafts)
    assert await call.etag() == "0"
    return refused.value


async def test_slots_get_the_times_in_the_new_order(queue: "Queue", call: Rearranging) -> None:
    answer = await call.reorder("page-2", "page-1", "page-0", "page-3")
    assert await call.drafts() == ["page-2", "page-1", "page-0", "page-3"]
    assert [slot.id for slot in answer.moved_slots] == ["page-2", "page-0"]
    assert [queue.time_of(slot) for slot in answer.moved_slots] == [START + HOUR, START + 3 * HOUR]
    assert answer.etag == await call.etag() == "1"


async def test_slots_can_be_named_by_their_drafts(call: Rearranging) -> None:
    await call.reorder(drafts=("page-3", "page-2", "page-1", "page-0"))
    assert await call.drafts() == ["page-3", "page-2", "page-1", "page-0"]


async def test_a_repeated_request_moves_nothing_again(queue: "Queue", call: Rearranging) -> None:
    order = ("page-1", "page-0", "page-2", "page-3")
    first = await call.reorder(*order, etag="0", request_id="r1")
    assert await call.reorder(*order, etag="0", request_id="r1") == first
    assert len(await queue.moves()) == 2


async def test_a_dispatched_slot_cannot_be_named(queue: "Queue", call: Rearranging) -> None:
    queue.now = START + HOUR
    await queue.hand_over.dispatch()
    refused = await refusal(call, "page-0", "page-1", "page-2", "page-3")
    assert (refused.reason, refused.metadata["slot_id"]) == ("SLOT_NOT_SCHEDULED", "page-0")
    await call.reorder("page-3", "page-2", "page-1")
    assert await call.drafts() == ["page-0", "page-3", "page-2", "page-1"]


async def test_an_ended_slot_and_a_foreign_one_are_distinguished(queue: "Queue", call: Rearranging) -> None:
    await queue.fill("other", START + HOUR, HOUR, 1)
    ended = "update slot set state = 'CANCELED', next_emit_at = null where id = 'page-3' returning 1"
    await queue.rows(ended)
    refused = await refusal(call, "page-3", "page-0", "page-1", "page-2")
    assert (refused.reason, refused.metadata["state"]) == ("SLOT_NOT_SCHEDULED", "CANCELED")
    by_draft = await refusal(call, drafts=("page-3", "page-0", "page-1", "page-2"))
    assert (by_draft.reason, by_draft.metadata["draft_id"]) == ("SLOT_NOT_SCHEDULED", "page-3")
    for foreign in ("other-0", "nobody"):
        assert (await refusal(call, foreign, "page-0", "page-1", "page-2")).reason == "SLOT_NOT_FOUND"
    assert (await refusal(call, drafts=("other-0",))).reason == "SLOT_NOT_FOUND"


async def test_slots_and_drafts_together_are_refused(call: Rearranging) -> None:
    assert isinstance(await refusal(call, "page-0", drafts=("page-1",)), InvalidField)


async def test_of_two_concurrent_orders_one_wins(queue: "Queue", call: Rearranging) -> None:
    """The accepted ones form a chain: each was meant for the queue that the one before left (G14)."""
    outcomes: list[ReorderQueueResponse | Fault] = []

    async def one(number: int) -> None:
        rotated = [f"page-{(place + number) % 4}" for place in range(4)]
        try:
            outcomes.append(await call.reorder(*rotated, etag="0"))
        except Fault as fault:
            outcomes.append(fault)

    async with asyncio.TaskGroup() as group:
        for number in (1, 2, 3):
            group.create_task(one(number))
    lost = [each for each in outcomes if isinstance(each, Fault)]
    assert len(lost) == 2
    assert all(isinstance(each, Conflict) and each.reason == "ETAG_MISMATCH" for each in lost)
    [won] = [each for each in outcomes if not isinstance(each, Fault)]
    assert won.etag == await call.etag() == "1"
    assert await call.drafts() == [slot.draft_id for slot in won.moved_slots]


async def test_accepted_orders_form_one_chain(queue: "Queue", call: Rearranging) -> None:
    """Each caller reads, reorders and starts over when it lost: no accepted order is overwritten unseen."""
    accepted: list[tuple[str, str]] = []

    async def mover(name: str) -> None:
        for _ in range(3):
            while True:
                seen, order = await call.etag(), await call.drafts()
                try:
                    answer = await call.reorder(name, *(each for each in order if each != name), etag=seen)
                except Conflict:
                    continue
                accepted.append((seen, answer.etag))
                order.remove(name)
                break

    async with asyncio.TaskGroup() as group:
        for name in ("page-1", "page-2", "page-3"):
            group.create_task(mover(name))
    changes = sorted((int(seen), int(new)) for seen, new in accepted if seen != new)
    assert changes == [(number, number + 1) for number in range(len(changes))]
    assert int(await call.etag()) == len(changes)


async def test_an_add_makes_an_order_outdated(queue: "Queue", call: Rearranging) -> None:
    seen = await call.etag()
    await queue.save_draft("new", "page")
    await queue.at("new", START + 9 * HOUR)
    with pytest.raises(Conflict):
        await call.reorder("page-3", "page-2", "page-1", "page-0", etag=seen)


async def test_dispatch_passes_over_a_queue_that_is_being_reordered(queue: "Queue", call: Rearranging) -> None:
    queue.now = START + HOUR
    async with queue.database.transaction() as tx:
        await queue.arranger.lock(tx, ("acme", "page"), now=queue.now)
        await queue.hand_over.dispatch()
        assert queue.stream.sent == []
    await call.reorder("page-3", "page-2", "page-1", "page-0")
    await queue.hand_over.dispatch()
    [command] = queue.stream.taken()
    assert (command.draft_id, command.revision, command.schedule_time) == ("page-3", 2, START + HOUR)


async def test_a_long_queue_is_reordered_as_a_whole(queue: "Queue", call: Rearranging) -> None:
    await queue.rows("delete from slot_target returning 1")
    await queue.rows("delete from slot returning 1")
    await queue.fill_weekly("page", START + 99 * HOUR, HOUR, 2000)
    order = list(reversed(await call.drafts()))
    answer = await call.reorder(drafts=tuple(order))
    assert await call.drafts() == order
    assert [slot.draft_id for slot in answer.moved_slots] == order[:LISTED]
    assert len(await queue.moves()) == len(order) // 2 * 2
