"""Slots that Publisher has already are removed, moved and cleared, and nothing goes out that was taken back."""

from datetime import UTC, datetime, timedelta

from devstack.stack import Stack
from postflow.drafts.v1.draft_pb2 import (
    DRAFT_STATE_BLOCKED,
    DRAFT_STATE_DRAFT,
    DRAFT_STATE_PUBLISHED,
    DRAFT_STATE_SCHEDULED,
)
from postflow.publisher.v1.post_job_pb2 import POST_JOB_STATE_BLOCKED
from postflow.queue.v1.queue_service_pb2 import ClearQueueRequest, RemoveFromQueueRequest
from postflow.queue.v1.queue_slot_pb2 import (
    QUEUE_SLOT_STATE_CANCELED,
    QUEUE_SLOT_STATE_DISPATCHED,
    QUEUE_SLOT_STATE_PUBLISHED,
    QueueSlot,
    QueueSlotState,
)
from servicekit.clock import SystemClock
from testkit.eventually import eventually
from testkit.stack.tenant import Tenant

NEVER_EARLIER = timedelta(milliseconds=50)


def soon(seconds: float) -> datetime:
    return SystemClock().now() + timedelta(seconds=seconds)


async def handed_over(tenant: Tenant, draft_id: str, seconds: float, *, approved: bool = True) -> QueueSlot:
    """Schedules a draft in less than the lead, so that its slot is dispatched at once."""
    await tenant.create(draft_id, f"This is {draft_id}", approved=approved)
    await tenant.schedule_at(draft_id, soon(seconds))
    if not approved:
        await tenant.until_job(draft_id, POST_JOB_STATE_BLOCKED)
    return await in_state(tenant, draft_id, QUEUE_SLOT_STATE_DISPATCHED)


async def in_state(tenant: Tenant, draft_id: str, state: QueueSlotState) -> QueueSlot:
    async def reached() -> QueueSlot:
        (slot,) = await tenant.slots(draft_id)
        assert slot.state == state
        return slot

    return await eventually(reached)


async def due_at(tenant: Tenant, draft_id: str, time: datetime) -> None:
    async def shown() -> bool:
        return (await tenant.draft(draft_id)).schedule_time.ToDatetime(UTC) == time

    await eventually(shown)


def texts(stack: Stack, tenant: Tenant) -> list[str]:
    return [effect["text"] for effect in stack.sandbox.effects(account=tenant.external("page"))]


async def test_a_removed_slot_sends_nothing(stack: Stack, tenant: Tenant) -> None:
    await tenant.connect()
    waiting = await handed_over(tenant, "unapproved", -58, approved=False)
    slot = await handed_over(tenant, "removed", 5)
    for each in (slot, waiting):
        request = RemoveFromQueueRequest(organization_id=tenant.organization_id, slot_id=each.id)
        answer = await tenant.clients.queue.RemoveFromQueue(request)
        assert answer.queue_slot.state == QUEUE_SLOT_STATE_CANCELED
    for draft_id in ("removed", "unapproved"):
        draft = await tenant.until(draft_id, DRAFT_STATE_DRAFT)
        assert not draft.HasField("schedule_time")
    await tenant.approve("unapproved")

    # A post of the account that is due at the same time, or later, goes out, and they have not.
    await tenant.create("later", "This is later")
    await tenant.schedule_at("later", max(slot.schedule_time.ToDatetime(UTC), soon(0)) + timedelta(seconds=1))
    await tenant.until("later", DRAFT_STATE_PUBLISHED)
    assert texts(stack, tenant) == ["This is later"]


async def test_a_moved_slot_goes_out_once_at_its_new_time(stack: Stack, tenant: Tenant) -> None:
    await tenant.connect()
    slot = await handed_over(tenant, "moved", 20)
    due = soon(5)
    await tenant.move(slot.id, due, request_id="move-1")

    await due_at(tenant, "moved", due)
    await tenant.until("moved", DRAFT_STATE_PUBLISHED)

    (effect,) = stack.sandbox.effects(account=tenant.external("page"))
    sent = datetime.fromisoformat(effect["time"])
    assert due - NEVER_EARLIER <= sent < slot.schedule_time.ToDatetime(UTC)
    after = await in_state(tenant, "moved", QUEUE_SLOT_STATE_PUBLISHED)
    assert (after.id, after.schedule_time.ToDatetime(UTC)) == (slot.id, due)


async def test_a_post_that_waits_can_be_put_off(stack: Stack, tenant: Tenant) -> None:
    await tenant.connect()
    slot = await handed_over(tenant, "waits", -30, approved=False)
    await tenant.until("waits", DRAFT_STATE_BLOCKED)
    tomorrow = soon(86_400)
    await tenant.move(slot.id, tomorrow, request_id="move-1")

    await due_at(tenant, "waits", tomorrow)
    await tenant.approve("waits")
    await tenant.until("waits", DRAFT_STATE_SCHEDULED)
    assert texts(stack, tenant) == []


async def test_a_cleared_queue_sends_nothing(stack: Stack, tenant: Tenant) -> None:
    await tenant.connect()
    await handed_over(tenant, "dispatched", 20)
    await tenant.create("scheduled", "This is scheduled")
    await tenant.schedule_at("scheduled", soon(3600))
    request = ClearQueueRequest(organization_id=tenant.organization_id, social_account_id="page")
    answer = await tenant.clients.queue.ClearQueue(request)
    assert (answer.canceled_slots, list(answer.too_late_slots)) == (2, [])
    for draft_id in ("dispatched", "scheduled"):
        await tenant.until(draft_id, DRAFT_STATE_DRAFT)
    assert {slot.state for slot in await tenant.slots()} == {QUEUE_SLOT_STATE_CANCELED}
    assert (await tenant.clients.queue.ClearQueue(request)).canceled_slots == 0
