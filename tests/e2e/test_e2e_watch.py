"""A queue is followed as the documents for clients say, across a restart of Queue."""

import asyncio
import re
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc

from devstack.stack import Stack
from postflow.queue.v1 import queue_service_pb2
from postflow.queue.v1.queue_service_pb2_grpc import QueueServiceStub
from postflow.queue.v1.queue_slot_pb2 import QUEUE_SLOT_STATE_PUBLISHED, QueueSlot
from servicekit.clock import SystemClock
from testkit.eventually import eventually
from testkit.stack.tenant import Clients, Tenant

CLIENTS = Path(__file__).parents[2] / "docs/clients.md"


class Enough(Exception):
    """Ends the loop of the documents, which has no end of its own."""


class Follower:
    def __init__(self) -> None:
        self.slots: dict[str, QueueSlot] = {}

    def __call__(self, slot: QueueSlot) -> None:
        self.slots[slot.draft_id] = slot
        if slot.state == QUEUE_SLOT_STATE_PUBLISHED:
            raise Enough

    def follow(self, target: str) -> None:
        """Runs the code of the documents until a post is published."""
        _, code = re.findall(r"```python\n(.+?)```", CLIENTS.read_text(), re.DOTALL)
        names: dict[str, Any] = {"grpc": grpc, "time": time, "queue_service_pb2": queue_service_pb2}
        exec(code, names)  # noqa: S102 - our own documents
        with grpc.insecure_channel(target) as channel:
            try:
                names["follow"](QueueServiceStub(channel), "page", self)
            except Enough:
                return


async def test_a_post_is_followed_across_a_restart_of_queue(stack: Stack, clients: Clients) -> None:
    tenant, follower = Tenant(clients, "acme"), Follower()
    await clients.ready()
    await tenant.connect()
    await tenant.create("first", "First")
    await tenant.create("second", "Second")
    await tenant.schedule_at("first", SystemClock().now() + timedelta(days=1))
    async with asyncio.TaskGroup() as group:
        following = group.create_task(asyncio.to_thread(follower.follow, stack.targets["queue"]))
        await eventually(lambda: "first" in follower.slots)
        await stack.restart("queue")
        await clients.ready()
        await tenant.schedule_at("second", SystemClock().now() + timedelta(seconds=1))
        async with asyncio.timeout(40):
            await asyncio.shield(following)
    assert follower.slots["second"].state == QUEUE_SLOT_STATE_PUBLISHED
    assert follower.slots["second"].targets[0].external_url
