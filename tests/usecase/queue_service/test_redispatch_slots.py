"""Having slots dispatched again: commands that are lost, and accounts that dispatch has overlooked."""

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from postflow.queue.v1.queue_admin_service_pb2 import RedispatchSlotsRequest, RedispatchSlotsResponse
from queue_service.application.redispatch_slots import RedispatchSlots
from queue_service.domain.job import JobState
from queue_service.domain.redispatch import Selection
from queue_service.wire.redispatch import redispatch_slots_response
from servicekit.faults import NotFound, Refused
from servicekit.pg.ledger import mutation
from servicekit.pg.session import Statement
from testkit.clocks import START
from tests.usecase.queue_service.steps import slots_of

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

HOUR = timedelta(hours=1)
FORGET = Statement("update account_queue set next_due_time = :wrong where social_account_id = :account")


async def redispatch(queue: "Queue", *slot_ids: str, account: str = "", request_id: str = "") -> tuple[int, int]:
    """Returns how many slots and accounts were made due."""
    request = RedispatchSlotsRequest(
        organization_id="acme", social_account_id=account, slot_ids=slot_ids, request_id=request_id
    )
    use_case = RedispatchSlots(ledger=queue.ledger, on_due=queue.new_slots.set)
    selection = Selection(organization_id="acme", social_account_id=account, slot_ids=slot_ids)
    done = await use_case(mutation(request, RedispatchSlotsResponse, redispatch_slots_response), selection)
    return done.repeated_slots, done.accounts


@pytest.fixture
async def sent(queue: "Queue") -> "Queue":
    """Dispatches a slot on each of two accounts; a third one is not due."""
    for number, account in enumerate(("a", "b", "c")):
        await queue.save_draft(f"d-{account}", account)
        await queue.at(f"d-{account}", START + (HOUR if account == "c" else timedelta(seconds=number)))
    queue.now = START
    await queue.hand_over.dispatch()
    queue.new_slots.clear()
    return queue


async def test_lost_commands_are_repeated_at_once(sent: "Queue") -> None:
    lost = sent.stream.taken()
    assert not await sent.hand_over.repeat()
    assert await redispatch(sent) == (2, 0)
    assert sent.new_slots.is_set()
    assert await sent.hand_over.repeat()
    again = sent.stream.taken()
    assert [(each.slot_id, each.emission) for each in again] == [(each.slot_id, 2) for each in lost]


async def test_a_command_that_the_stream_holds_is_not_repeated(sent: "Queue") -> None:
    assert await redispatch(sent) == (2, 0)
    assert not await sent.hand_over.repeat()


async def test_an_answered_slot_is_asked_about_only_by_name(sent: "Queue") -> None:
    answered, _ = sent.stream.taken()
    await sent.settle(sent.report(answered, JobState.WAITING))
    assert await redispatch(sent) == (1, 0)
    assert await redispatch(sent, answered.slot_id) == (1, 0)
    assert await sent.hand_over.repeat()
    assert answered.slot_id in {each.slot_id for each in sent.stream.taken()}


async def test_slots_are_selected_by_account_and_by_name(sent: "Queue") -> None:
    [slot] = await slots_of(sent, "d-a")
    assert await redispatch(sent, account="b") == (1, 0)
    assert await redispatch(sent, account="c") == (0, 0)
    assert await redispatch(sent, slot.id, slot.id) == (1, 0)
    rows = await sent.rows("select draft_id from slot where next_emit_at <= :now order by 1", now=START)
    assert [row.draft_id for row in rows] == ["d-a", "d-b"]


async def test_an_account_that_was_overlooked_is_dispatched(sent: "Queue") -> None:
    for wrong in (None, START + 9 * HOUR):
        async with sent.database.transaction() as tx:
            await tx.execute(FORGET, {"wrong": wrong, "account": "c"})
        assert await redispatch(sent, account="a") == (1, 0)
        assert (await redispatch(sent))[1] == 1
        assert (await redispatch(sent))[1] == 0
    sent.now = START + HOUR
    sent.stream.taken()
    await sent.hand_over.dispatch()
    assert [each.draft_id for each in sent.stream.taken()] == ["d-c"]


async def test_an_early_next_due_time_is_left_alone(sent: "Queue") -> None:
    async with sent.database.transaction() as tx:
        await tx.execute(FORGET, {"wrong": START, "account": "c"})
    assert (await redispatch(sent))[1] == 0


async def test_slots_that_do_not_wait_for_an_answer_are_refused(sent: "Queue") -> None:
    [scheduled] = await slots_of(sent, "d-c")
    [other] = await slots_of(sent, "d-a")
    with pytest.raises(Refused) as refused:
        await redispatch(sent, other.id, scheduled.id)
    assert (refused.value.reason, refused.value.metadata["queue_slot_id"]) == ("SLOT_NOT_DISPATCHED", scheduled.id)
    for unknown in (("nowhere", ""), (other.id, "b")):
        with pytest.raises(NotFound) as missing:
            await redispatch(sent, unknown[0], account=unknown[1])
        assert missing.value.reason == "SLOT_NOT_FOUND"


async def test_a_repeated_request_changes_nothing(sent: "Queue") -> None:
    assert await redispatch(sent, request_id="r1") == (2, 0)
    sent.stream.taken()
    await sent.hand_over.repeat()
    assert await redispatch(sent, request_id="r1") == (2, 0)
    assert not await sent.hand_over.repeat()
