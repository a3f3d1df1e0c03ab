"""Requests and answers of QueueService at the sizes that its rules allow, with ids as long as PostFlow makes them."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from postflow.queue.v1.queue_service_pb2 import (
    BatchAddToQueueRequest,
    ListDraftSlotsRequest,
    ListQueueSlotsRequest,
    PlannedAdditions,
    PlannedOrder,
    PlanQueueRequest,
    QueueItem,
    ReorderQueueRequest,
    ShuffleQueueRequest,
)
from servicekit.clock import SystemClock
from servicekit.faults import Fault
from servicekit.ids import Uuid7Source

if TYPE_CHECKING:
    from tests.rpc.queue_service.conftest import Rig

Refusal = Callable[[Awaitable[object]], Awaitable[Fault]]
HOUR = timedelta(hours=1)
SOON = SystemClock().now().replace(minute=0, second=0, microsecond=0) + 24 * HOUR
IDS = Uuid7Source()


async def test_a_batch_of_a_thousand_drafts_is_answered(rig: "Rig") -> None:
    account, drafts = IDS.new(), [IDS.new() for _ in range(1000)]
    await rig.put_schedule(account, *(SOON + number * HOUR for number in range(1001)))
    for draft in drafts:
        rig.draft(draft, (account, "instagram_feed", ""), (account, "instagram_story", ""))
    items = [QueueItem(draft_id=draft, social_account_id=account) for draft in drafts]
    answer = await rig.stub.BatchAddToQueue(BatchAddToQueueRequest(organization_id="acme", items=items))
    assert [each.queue_slot.draft_id for each in answer.results] == drafts
    shown = await rig.stub.ListDraftSlots(ListDraftSlotsRequest(organization_id="acme", draft_ids=drafts[:100]))
    assert [len(each.queue_slots) for each in shown.drafts] == [1] * 100
    named = [each.queue_slot.id for each in answer.results]
    plan = await rig.stub.PlanQueue(
        PlanQueueRequest(organization_id="acme", social_account_id=account, reorder=PlannedOrder(slot_ids=named[::-1]))
    )
    assert [each.slot_id for each in plan.slots] == named[::-1]
    plan = await rig.stub.PlanQueue(
        PlanQueueRequest(organization_id="acme", social_account_id=account, add=PlannedAdditions(count=1))
    )
    assert plan.unchanged_slots == 1000


@pytest.mark.parametrize("by_draft", [False, True])
async def test_an_order_may_name_ten_thousand_slots(rig: "Rig", refusal: Refusal, *, by_draft: bool) -> None:
    names = [IDS.new() for _ in range(10_000)]
    slots, drafts = ([], names) if by_draft else (names, [])
    order = ReorderQueueRequest(
        organization_id="acme", social_account_id="page", etag="0", slot_ids=slots, draft_ids=drafts
    )
    assert (await refusal(rig.stub.ReorderQueue(order))).reason == "SLOT_NOT_FOUND"
    planned = PlannedOrder(slot_ids=slots, draft_ids=drafts)
    plan = PlanQueueRequest(organization_id="acme", social_account_id="page", reorder=planned)
    assert (await refusal(rig.stub.PlanQueue(plan))).reason == "SLOT_NOT_FOUND"


async def test_slots_with_many_targets_are_shown(rig: "Rig") -> None:
    account, targets = IDS.new(), 20
    await rig.put_schedule(account, *(SOON + number * HOUR for number in range(200)))
    drafts = [IDS.new() for _ in range(200)]
    for draft in drafts:
        rig.draft(draft, *((account, "pinterest", IDS.new()) for _ in range(targets)))
    items = [QueueItem(draft_id=draft, social_account_id=account) for draft in drafts]
    await rig.stub.BatchAddToQueue(BatchAddToQueueRequest(organization_id="acme", items=items))
    shuffled = await rig.stub.ShuffleQueue(
        ShuffleQueueRequest(organization_id="acme", social_account_id=account, seed=1)
    )
    assert {len(slot.targets) for slot in shuffled.moved_slots} == {targets}
    page = await rig.stub.ListQueueSlots(ListQueueSlotsRequest(organization_id="acme", page_size=200))
    assert len(page.queue_slots) == 200
