"""Pauses and removals while Publisher is down: Queue completes them by itself, and nothing goes out."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, timedelta

import pytest

from devstack.stack import Stack
from postflow.drafts.v1.draft_pb2 import DRAFT_STATE_DRAFT, DRAFT_STATE_SCHEDULED
from postflow.publisher.v1.post_job_pb2 import POST_JOB_STATE_CANCELED, POST_JOB_STATE_SCHEDULED
from postflow.queue.v1.queue_service_pb2 import ClearQueueRequest, GetQueueRequest
from postflow.queue.v1.queue_slot_pb2 import (
    QUEUE_SLOT_STATE_CANCELED,
    QUEUE_SLOT_STATE_DISPATCHED,
    QUEUE_SLOT_STATE_SCHEDULED,
    QueueSlot,
    QueueSlotState,
)
from servicekit.clock import SystemClock
from testkit.eventually import eventually
from testkit.refusals import fault_of
from testkit.stack.tenant import Tenant, target

ACCOUNTS = ("paused", "removed", "cleared", "moved")
WITHIN = 60.0
"""Seconds: what calls have left open is asked for after 10 s, by a loop that runs every 15 s."""


@pytest.fixture(scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    """Runs a stack whose slots are handed over an hour ahead: they are not due while their calls are completed."""
    environment = {"POSTFLOW_QUEUE_LEAD": "3600"}
    async with Stack(tmp_path_factory.mktemp("stack") / "state", environment=environment) as running:
        yield running


async def in_state(tenant: Tenant, draft: str, state: QueueSlotState) -> QueueSlot:
    async def reached() -> QueueSlot:
        [slot] = await tenant.slots(draft)
        assert slot.state == state
        return slot

    return await eventually(reached, within=WITHIN)


async def handed_over(tenant: Tenant) -> dict[str, QueueSlot]:
    """Returns a slot of each account that Publisher knows."""
    due = SystemClock().now() + timedelta(minutes=10)
    for account in ACCOUNTS:
        await tenant.connect(account)
        await tenant.create(account, f"This is {account}", [target(account)])
        await tenant.schedule_at(account, due)
    for account in ACCOUNTS:
        await tenant.until(account, DRAFT_STATE_SCHEDULED)
    return {account: await in_state(tenant, account, QUEUE_SLOT_STATE_DISPATCHED) for account in ACCOUNTS}


async def clear(tenant: Tenant) -> None:
    request = ClearQueueRequest(organization_id=tenant.organization_id, social_account_id="cleared", request_id="clear")
    answer = await tenant.clients.queue.ClearQueue(request)
    assert (answer.canceled_slots, list(answer.too_late_slots)) == (1, [])


async def is_hold_pending(tenant: Tenant) -> bool:
    request = GetQueueRequest(organization_id=tenant.organization_id, social_account_id="paused")
    queue = (await tenant.clients.queue.GetQueue(request)).queue
    assert queue.paused
    return bool(queue.hold_pending)


async def test_queue_completes_what_publisher_has_not_answered(stack: Stack, tenant: Tenant) -> None:
    slots = await handed_over(tenant)
    tomorrow = SystemClock().now() + timedelta(days=1)
    await stack.stop("publisher")
    async with asyncio.TaskGroup() as group:
        refusals = [
            group.create_task(fault_of(call))
            for call in (
                tenant.pause("paused", request_id="pause"),
                tenant.remove(slots["removed"].id, request_id="remove"),
                clear(tenant),
                tenant.move(slots["moved"].id, tomorrow, request_id="move"),
            )
        ]
    reasons = [refusal.result().reason for refusal in refusals]
    assert reasons == ["HOLD_PENDING", "TAKE_BACK_PENDING", "TAKE_BACK_PENDING", "TAKE_BACK_PENDING"]
    assert await is_hold_pending(tenant)
    await stack.start("publisher")

    for account in ("removed", "cleared"):
        await in_state(tenant, account, QUEUE_SLOT_STATE_CANCELED)
        await tenant.until(account, DRAFT_STATE_DRAFT)
        assert (await tenant.until_job(account, POST_JOB_STATE_CANCELED)).attempts == 0
    back = await in_state(tenant, "paused", QUEUE_SLOT_STATE_SCHEDULED)
    assert (back.revision, await is_hold_pending(tenant)) == (2, False)
    waiting = await tenant.until_job("paused", POST_JOB_STATE_SCHEDULED)
    assert (waiting.attempts, waiting.slot_revision) == (0, 2)
    # A move that was not answered leaves its slot where it was.
    await again_at(tenant, slots["moved"])

    await tenant.clients.ready()
    assert list(await tenant.pause("paused", request_id="pause")) == []
    await tenant.remove(slots["removed"].id, request_id="remove")
    await clear(tenant)
    await tenant.move(slots["moved"].id, tomorrow, request_id="move")
    [moved] = await tenant.slots("moved")
    assert moved.schedule_time.ToDatetime(UTC) == tomorrow
    await tenant.until("moved", DRAFT_STATE_SCHEDULED)
    assert [each["account"] for each in stack.sandbox.effects()] == []


async def again_at(tenant: Tenant, before: QueueSlot) -> None:
    """Waits until the slot has been handed over again, for the same time."""

    async def reached() -> bool:
        [slot] = await tenant.slots(before.draft_id)
        return slot.state == QUEUE_SLOT_STATE_DISPATCHED and slot.revision == before.revision + 1

    await eventually(reached, within=WITHIN)
    [slot] = await tenant.slots(before.draft_id)
    assert slot.schedule_time == before.schedule_time
