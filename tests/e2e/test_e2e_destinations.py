"""Destinations and accounts that are switched off: every service shows why a post waits, and it goes out afterwards."""

from datetime import datetime, timedelta

from devstack.stack import Stack
from postflow.drafts.v1.draft_pb2 import DRAFT_STATE_BLOCKED, DRAFT_STATE_FAILED, DRAFT_STATE_PUBLISHED
from postflow.publisher.v1.destination_pb2 import DESTINATION_STATE_ACTIVE, DESTINATION_STATE_INACTIVE, Destination
from postflow.publisher.v1.publisher_service_pb2 import (
    ListDestinationsRequest,
    RetryPostJobRequest,
    UpdateDestinationRequest,
)
from postflow.publisher.v1.social_account_service_pb2 import DisconnectAccountRequest
from postflow.queue.v1.queue_service_pb2 import ExplainSlotRequest
from postflow.queue.v1.queue_slot_pb2 import QUEUE_SLOT_STATE_PUBLISHED
from servicekit.clock import SystemClock
from testkit.eventually import eventually
from testkit.stack.tenant import Tenant, target

MOST_FAILURES = 5


def soon() -> datetime:
    return SystemClock().now() + timedelta(seconds=1)


async def the_destination(tenant: Tenant) -> Destination:
    request = ListDestinationsRequest(organization_id=tenant.organization_id)
    (found,) = (await tenant.clients.publisher.ListDestinations(request)).destinations
    return found


async def until_queue_says(tenant: Tenant, draft: str, reason: str) -> None:
    """Waits until the slot of the draft shows why it waits, and its explanation says the same."""

    async def said() -> bool:
        (slot,) = await tenant.slots(draft)
        return slot.targets[0].state_reason == reason

    await eventually(said)
    (slot,) = await tenant.slots(draft)
    request = ExplainSlotRequest(organization_id=tenant.organization_id, slot_id=slot.id)
    explained = await tenant.clients.queue.ExplainSlot(request)
    assert reason in [each.reason for each in explained.obstacles]


async def until_published(tenant: Tenant, draft: str) -> None:
    await tenant.until(draft, DRAFT_STATE_PUBLISHED)

    async def settled() -> bool:
        return [slot.state for slot in await tenant.slots(draft)] == [QUEUE_SLOT_STATE_PUBLISHED]

    await eventually(settled)


async def refused_five_times(stack: Stack, tenant: Tenant, draft: str) -> None:
    """Sends a post again and again, and has the provider refuse each attempt."""
    rule = {"fault": "status", "status": 400, "account": tenant.external("page"), "count": MOST_FAILURES}
    await stack.sandbox.faults(rule)
    await tenant.schedule_at(draft, soon())
    for run in range(1, MOST_FAILURES + 1):

        async def failed(run: int = run) -> bool:
            (job,) = await tenant.jobs(draft)
            return job.run == run and job.error_reason == "STATUS_400"

        await tenant.until(draft, DRAFT_STATE_FAILED)
        await eventually(failed)
        if run < MOST_FAILURES:
            (job,) = await tenant.jobs(draft)
            request = RetryPostJobRequest(organization_id=tenant.organization_id, post_job_id=job.id)
            await tenant.clients.publisher.RetryPostJob(request)


async def test_posts_to_a_dead_destination_wait_until_it_is_activated(stack: Stack, tenant: Tenant) -> None:
    wall = target(destination="wall")
    await tenant.connect()
    for draft in ("first", "second"):
        await tenant.create(draft, draft, [wall])
    await refused_five_times(stack, tenant, "first")
    dead = await the_destination(tenant)
    assert (dead.target, dead.state, dead.state_reason) == (wall, DESTINATION_STATE_INACTIVE, "FAILURES")
    assert dead.failures == MOST_FAILURES

    await tenant.schedule_at("second", soon())
    await tenant.until("second", DRAFT_STATE_BLOCKED)
    await until_queue_says(tenant, "second", "DESTINATION_INACTIVE")
    assert stack.sandbox.effects(account=tenant.external("page")) == []

    change = UpdateDestinationRequest(
        organization_id=tenant.organization_id, target=wall, state=DESTINATION_STATE_ACTIVE, etag=dead.etag
    )
    await tenant.clients.publisher.UpdateDestination(change)
    await until_published(tenant, "second")
    assert [each["text"] for each in stack.sandbox.effects(account=tenant.external("page"))] == ["second"]
    assert (await the_destination(tenant)).failures == 0


async def test_a_peer_that_blocks_the_account_gets_no_more(stack: Stack, tenant: Tenant) -> None:
    await tenant.connect()
    await tenant.create("first", "first", [target(destination="blocked-by-her")])
    await tenant.schedule_at("first", soon())
    await tenant.until("first", DRAFT_STATE_FAILED)
    assert (await the_destination(tenant)).state_reason == "BLOCKED_BY_PEER"


async def test_posts_of_a_disconnected_account_wait_until_it_comes_back(stack: Stack, tenant: Tenant) -> None:
    draft = "d1"
    await tenant.connect()
    await tenant.create(draft, "hello")
    await tenant.schedule_at(draft, SystemClock().now() + timedelta(seconds=4))
    request = DisconnectAccountRequest(organization_id=tenant.organization_id, social_account_id="page", note="left")
    assert not (await tenant.clients.accounts.DisconnectAccount(request)).in_flight_post_job_ids
    await tenant.until(draft, DRAFT_STATE_BLOCKED)
    (slot,) = await tenant.slots(draft)
    explained = await tenant.clients.queue.ExplainSlot(
        ExplainSlotRequest(organization_id=tenant.organization_id, slot_id=slot.id)
    )
    assert "ACCOUNT_NOT_CONNECTED" in [each.reason for each in explained.obstacles]
    await eventually(lambda: SystemClock().now() > slot.schedule_time.ToDatetime(tzinfo=SystemClock().now().tzinfo))
    assert stack.sandbox.effects(account=tenant.external("page")) == []
    await tenant.connect(token="sandbox-another")
    await until_published(tenant, draft)
    assert len(stack.sandbox.effects(account=tenant.external("page"))) == 1
