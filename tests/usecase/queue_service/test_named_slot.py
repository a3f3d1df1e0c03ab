"""The slot that a call names, under the lock of its account."""

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from queue_service.application.named_slot import NamedSlot, lock_named
from queue_service.application.take_back import INTENDED
from queue_service.domain.slot import SlotState, TakingBack
from servicekit import failpoints
from servicekit.faults import NotFound
from testkit.clocks import START
from tests.usecase.queue_service.rearranging import PAGE, Rearranging

if TYPE_CHECKING:
    from tests.usecase.queue_service.conftest import Queue

HOUR = timedelta(hours=1)


async def named(queue: "Queue", slot_id: str, organization: str = "acme") -> NamedSlot:
    return await queue.database.run(lambda tx: lock_named(tx, queue.arranger, organization, slot_id, now=queue.now))


async def test_a_slot_comes_with_the_queue_of_its_account(queue: "Queue") -> None:
    await queue.fill_weekly(["page", "other"], START + HOUR, HOUR, 2)
    found = await named(queue, "page-1")
    assert (found.snapshot.account, found.slot) == (PAGE, found.snapshot.slots[1])
    assert (found.is_live, found.is_leaving, found.taking_back) == (True, False, TakingBack.NO)


async def test_an_ended_slot_has_the_seat_that_it_had(queue: "Queue") -> None:
    await queue.fill_weekly("page", START + HOUR, HOUR, 2)
    before = await named(queue, "page-1")
    await Rearranging(queue).remove("page-1")
    found = await named(queue, "page-1")
    assert found.slot == before.slot._replace(state=SlotState.CANCELED)
    assert (found.is_live, found.is_leaving) == (False, True)
    assert found.snapshot.find("page-1") is None


async def test_a_slot_that_will_be_canceled_is_leaving(queue: "Queue") -> None:
    await queue.fill("page", START, HOUR, 1)
    await queue.hand_over.dispatch()
    failpoints.install(f"{INTENDED}=raise", "test")
    try:
        with pytest.raises(failpoints.FailpointHit):
            await Rearranging(queue).remove("page-0")
    finally:
        failpoints.install("", "test")
    found = await named(queue, "page-0")
    assert (found.is_live, found.is_leaving) == (True, True)


async def test_a_slot_of_another_organization_is_not_found(queue: "Queue") -> None:
    await queue.fill("page", START, HOUR, 1)
    with pytest.raises(NotFound) as refused:
        await named(queue, "page-0", "other")
    assert refused.value.reason == "SLOT_NOT_FOUND"
