"""Runs that a call begins, through all four services: Queue and Drafts follow, and each post goes out once."""

from collections.abc import AsyncIterator
from datetime import UTC, timedelta

import nats
import pytest
from sqlalchemy import text

from devstack.stack import Stack
from postflow.drafts.v1.draft_pb2 import DRAFT_STATE_FAILED, DRAFT_STATE_PUBLISHED, DRAFT_STATE_SCHEDULED
from postflow.publisher.v1.post_job_pb2 import (
    POST_JOB_STATE_FAILED,
    POST_JOB_STATE_PUBLISHED,
    POST_JOB_STATE_SCHEDULED,
)
from postflow.publisher.v1.publisher_admin_service_pb2 import ReplayPostJobEventsRequest
from postflow.publisher.v1.publisher_service_pb2 import (
    PUBLISH_NOW_OUTCOME_REFUSED,
    PUBLISH_NOW_OUTCOME_STARTED,
    RetryPostJobRequest,
)
from postflow.queue.v1.queue_slot_pb2 import (
    QUEUE_SLOT_STATE_FAILED,
    QUEUE_SLOT_STATE_PUBLISHED,
    QUEUE_SLOT_STATE_SCHEDULED,
    QueueSlotState,
)
from servicekit.clock import SystemClock
from servicekit.faults import Fault
from servicekit.pg.database import Database
from servicekit.rpc import calling
from testkit.eventually import eventually
from testkit.stack.tenant import Tenant

DAY = timedelta(days=1)


async def scheduled(tenant: Tenant, *draft_ids: str) -> None:
    """Creates approved drafts with slots of tomorrow, of which Publisher has heard."""
    for number, draft_id in enumerate(draft_ids):
        await tenant.create(draft_id, f"This is {draft_id}")
        await tenant.schedule_at(draft_id, SystemClock().now() + DAY + number * timedelta(minutes=2))
    for draft_id in draft_ids:
        await tenant.until_job(draft_id, POST_JOB_STATE_SCHEDULED)


async def until_slot(tenant: Tenant, draft_id: str, state: QueueSlotState) -> None:
    async def reached() -> bool:
        (slot,) = await tenant.slots(draft_id)
        return slot.state == state

    await eventually(reached, within=20)


def effects(stack: Stack, tenant: Tenant, account: str = "page") -> list[str]:
    return sorted(effect["text"] for effect in stack.sandbox.effects(account=tenant.external(account)))


async def test_a_draft_with_a_slot_tomorrow_goes_out_now_and_frees_its_time(stack: Stack, tenant: Tenant) -> None:
    await tenant.connect()
    await scheduled(tenant, "d1")
    (slot,) = await tenant.slots("d1")
    (result,) = await tenant.publish_now("d1", request_id="r1")
    assert result.outcome == PUBLISH_NOW_OUTCOME_STARTED
    await tenant.until("d1", DRAFT_STATE_PUBLISHED)
    await until_slot(tenant, "d1", QUEUE_SLOT_STATE_PUBLISHED)
    await tenant.create("d2", "This is d2")
    await tenant.schedule_at("d2", slot.schedule_time.ToDatetime(UTC))
    assert list(await tenant.publish_now("d1", request_id="r1")) == [result]
    (again,) = await tenant.publish_now("d1")
    assert (again.outcome, again.reason) == (PUBLISH_NOW_OUTCOME_REFUSED, "ALREADY_PUBLISHED")
    assert effects(stack, tenant) == ["This is d1"]


async def test_a_draft_without_a_slot_goes_out_at_once_after_it_was_saved(stack: Stack, tenant: Tenant) -> None:
    """Covers drafts whose events come at the same moment as the calls."""
    await tenant.connect()
    names = [f"d{number}" for number in range(10)]
    for name in names:
        await tenant.create(name, f"This is {name}")
        (result,) = await tenant.publish_now(name)
        assert result.outcome == PUBLISH_NOW_OUTCOME_STARTED
    for name in names:
        await tenant.until(name, DRAFT_STATE_PUBLISHED)
        (job,) = await tenant.jobs(name)
        assert (job.publish_time.ToDatetime() - job.schedule_time.ToDatetime()).total_seconds() < 3
    assert effects(stack, tenant) == [f"This is {name}" for name in names]


async def test_a_slot_is_too_late_to_be_removed_while_its_post_is_sent(stack: Stack, tenant: Tenant) -> None:
    await tenant.connect()
    await scheduled(tenant, "d1", "d2")
    await stack.sandbox.faults({"fault": "slow", "seconds": 3, "count": 1})
    await tenant.publish_now("d1")
    (slot,) = await tenant.slots("d1")

    async def has_heard() -> bool:
        # A removal before Queue has heard of it would be a removal.
        (heard,) = await tenant.slots("d1")
        return heard.targets[0].post_job_state in ("READY", "SENDING")

    await eventually(has_heard)
    for changing in (
        tenant.remove(slot.id, request_id="r1"),
        tenant.move(slot.id, SystemClock().now() + 3 * DAY, request_id="r2"),
    ):
        with pytest.raises(Fault) as refused, calling():
            await changing
        assert refused.value.reason == "TOO_LATE"
    await tenant.until("d1", DRAFT_STATE_PUBLISHED)
    await until_slot(tenant, "d1", QUEUE_SLOT_STATE_PUBLISHED)
    await until_slot(tenant, "d2", QUEUE_SLOT_STATE_SCHEDULED)
    assert effects(stack, tenant) == ["This is d1"]


async def test_a_retried_post_changes_the_outcome_of_its_slot_and_draft(stack: Stack, tenant: Tenant) -> None:
    await tenant.connect()
    await stack.sandbox.faults({"fault": "status", "status": 422, "count": 1})
    await tenant.create("d1", "This is d1")
    await tenant.schedule_at("d1", SystemClock().now() + timedelta(seconds=1))
    failed = await tenant.until_job("d1", POST_JOB_STATE_FAILED)
    await until_slot(tenant, "d1", QUEUE_SLOT_STATE_FAILED)
    await tenant.until("d1", DRAFT_STATE_FAILED)
    await tenant.clients.publisher.RetryPostJob(
        RetryPostJobRequest(organization_id=tenant.organization_id, post_job_id=failed.id)
    )
    published = await tenant.until_job("d1", POST_JOB_STATE_PUBLISHED)
    assert (published.run, published.slot_id) == (2, failed.slot_id)
    await until_slot(tenant, "d1", QUEUE_SLOT_STATE_PUBLISHED)
    await tenant.until("d1", DRAFT_STATE_PUBLISHED)
    assert effects(stack, tenant) == ["This is d1"]


async def test_a_replay_fills_what_queue_and_drafts_have_never_heard(stack: Stack, tenant: Tenant) -> None:
    """Loses the stream, and what Publisher would publish again by itself, as after more than a day."""
    await tenant.connect()
    names = ["d1", "d2", "d3"]
    await scheduled(tenant, *names)
    drafts = {name: await tenant.draft(name) for name in names}
    for service in ("queue", "drafts"):
        await stack.kill(service, respawn=False)
    for name in names[:2]:
        await tenant.publish_now(name, drafts[name])
        await tenant.until_job(name, POST_JOB_STATE_PUBLISHED)
    await _lose_events(stack)
    for service in ("queue", "drafts"):
        await stack.start(service)
    await tenant.clients.ready()
    # What comes later is heard, so what came before never will be.
    await tenant.create("later", "This is later")
    await tenant.schedule_at("later", SystemClock().now() + 2 * DAY)
    await _until_heard(tenant, "later")
    assert [slot.state for slot in await tenant.slots("d1")] == [QUEUE_SLOT_STATE_SCHEDULED]
    for _ in range(2):
        assert sum([count async for count in _replayed(tenant)]) == 4
        for name in names[:2]:
            await until_slot(tenant, name, QUEUE_SLOT_STATE_PUBLISHED)
            await tenant.until(name, DRAFT_STATE_PUBLISHED)
        await until_slot(tenant, "d3", QUEUE_SLOT_STATE_SCHEDULED)
        await tenant.until("d3", DRAFT_STATE_SCHEDULED)
    assert effects(stack, tenant) == ["This is d1", "This is d2"]


async def _lose_events(stack: Stack) -> None:
    database = Database(stack.database_urls["publisher"], application="test")
    connection = await nats.connect(stack.nats_url)
    try:
        async with database.transaction() as tx:
            await tx.connection.execute(text("delete from outbox"))
        await connection.jetstream().delete_stream("EVENTS")
    finally:
        await connection.close()
        await database.dispose()


async def _until_heard(tenant: Tenant, draft_id: str) -> None:
    async def heard() -> bool:
        (slot,) = await tenant.slots(draft_id)
        return bool(slot.targets[0].post_job_state)

    await eventually(heard, within=60)


async def _replayed(tenant: Tenant) -> AsyncIterator[int]:
    token = ""
    while True:
        request = ReplayPostJobEventsRequest(organization_id=tenant.organization_id, page_size=3, page_token=token)
        answer = await tenant.clients.publisher_admin.ReplayPostJobEvents(request)
        yield answer.announced
        token = answer.next_page_token
        if not token:
            return
