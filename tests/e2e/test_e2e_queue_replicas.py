"""Two replicas of Queue: a call to one counts for what the other does and shows."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from devstack.stack import Stack
from postflow.drafts.v1.draft_pb2 import DRAFT_STATE_PUBLISHED
from postflow.queue.v1.queue_service_pb2 import WatchQueueRequest
from postflow.queue.v1.queue_slot_pb2 import (
    QUEUE_SLOT_STATE_CANCELED,
    QUEUE_SLOT_STATE_DISPATCHED,
    QUEUE_SLOT_STATE_SCHEDULED,
    QueueSlotState,
)
from servicekit.clock import SystemClock
from testkit.stack.mixed_run import QUICK
from testkit.stack.posting import Posting
from testkit.stack.tenant import Clients, Tenant

POSTS = [f"post-{number}" for number in range(20)]


@pytest.fixture(scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    """Runs two replicas, of which only the first hands slots over ahead of their time."""
    folder = tmp_path_factory.mktemp("stack") / "state"
    async with Stack(folder, environment=QUICK, replicas={"queue": 2}) as running:
        await running.restart("queue-2", {"POSTFLOW_QUEUE_LEAD": "0"})
        yield running


@pytest.fixture
async def other(stack: Stack, tenant: Tenant) -> AsyncIterator[Tenant]:
    """Returns the same organization, whose calls go to the second replica."""
    clients = Clients(dict(stack.targets) | {"queue": stack.address("queue-2")})
    await clients.ready()
    yield Tenant(clients, tenant.organization_id)
    await clients.close()


async def test_accounts_are_paused_by_one_replica_while_another_dispatches(
    stack: Stack, tenant: Tenant, other: Tenant
) -> None:
    dispatching, pausing = Posting(stack, tenant), Posting(stack, other)
    await dispatching.prepare(*POSTS, "later")
    now = SystemClock().now()
    dues = {post: now + number % 4 * timedelta(seconds=0.4) for number, post in enumerate(POSTS)}
    async with asyncio.TaskGroup() as group:
        group.create_task(dispatching.schedule_each(dues | {"later": now + timedelta(seconds=3)}))
        group.create_task(_pause_all(pausing))
    await tenant.until("later", DRAFT_STATE_PUBLISHED)
    before = len(pausing.effects())
    for post in POSTS:
        await pausing.resume(post)
    await dispatching.check_all_published()
    # None went out between the answer to its pause and the call that resumed it.
    await pausing.check()
    assert 1 <= before < len(POSTS) + 1 == len(pausing.effects())


async def _pause_all(posting: Posting) -> None:
    for post in POSTS:
        await posting.pause(post)


async def test_a_watch_on_one_replica_shows_what_another_does(tenant: Tenant, other: Tenant) -> None:
    await tenant.connect()
    request = WatchQueueRequest(organization_id=tenant.organization_id, social_account_id="page")
    watch: Any = tenant.clients.queue.WatchQueue(request)

    async def until(state: QueueSlotState, *, revision: int) -> None:
        async with asyncio.timeout(20):
            while True:
                slot = (await watch.read()).queue_slot
                if (slot.state, slot.revision) == (state, revision):
                    return

    await other.create("d1", "Hello")
    [slot] = await other.schedule_at("d1", SystemClock().now() + timedelta(seconds=25))
    await until(QUEUE_SLOT_STATE_DISPATCHED, revision=1)
    await other.pause("page", request_id="pause")
    await until(QUEUE_SLOT_STATE_SCHEDULED, revision=2)
    await other.resume("page", request_id="resume")
    await until(QUEUE_SLOT_STATE_DISPATCHED, revision=2)
    await other.remove(slot.id, request_id="remove")
    await until(QUEUE_SLOT_STATE_CANCELED, revision=2)
    watch.cancel()
