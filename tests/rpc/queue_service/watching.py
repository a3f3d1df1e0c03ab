"""Clients that watch queues."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from postflow.queue.v1.queue_pb2 import Queue
from postflow.queue.v1.queue_service_pb2 import ScheduleAtRequest, WatchQueueRequest, WatchQueueResponse
from postflow.queue.v1.queue_slot_pb2 import QueueSlot
from servicekit.clock import SystemClock
from servicekit.timestamps import timestamp
from topology import EVENTS

if TYPE_CHECKING:
    from tests.rpc.queue_service.conftest import Rig


class Watcher:
    """A client that reads a watch and keeps the newest of each slot."""

    def __init__(self, call: Any) -> None:
        self.call = call
        self.slots: dict[str, QueueSlot] = {}
        self.queue: Queue | None = None
        self.is_caught_up = False
        self.token = ""
        self.messages = 0

    async def read(self) -> WatchQueueResponse:
        async with asyncio.timeout(20):
            message = await self.call.read()
        assert isinstance(message, WatchQueueResponse), "the watch has ended"
        if message.HasField("queue_slot"):
            self.slots[message.queue_slot.draft_id] = message.queue_slot
        if message.HasField("queue"):
            self.queue = message.queue
        self.is_caught_up |= message.is_caught_up
        self.token = message.resume_token
        self.messages += 1
        return message

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not condition():
                await self.read()

    async def caught_up(self) -> None:
        await self.until(lambda: self.is_caught_up)

    async def until_state(self, draft_id: str, state: int) -> None:
        await self.until(lambda: draft_id in self.slots and self.slots[draft_id].state == state)


@asynccontextmanager
async def watching(stub: Any, token: str = "", account: str = "page") -> AsyncIterator[Watcher]:
    request = WatchQueueRequest(organization_id="acme", social_account_id=account, resume_token=token)
    call = stub.WatchQueue(request)
    try:
        yield Watcher(call)
    finally:
        call.cancel()


async def first(stub: Any, token: str = "", account: str = "page", organization_id: str = "acme") -> object:
    request = WatchQueueRequest(organization_id=organization_id, social_account_id=account, resume_token=token)
    call = stub.WatchQueue(request)
    try:
        return await call.read()
    finally:
        call.cancel()


async def schedule(rig: "Rig", draft_id: str, ahead: timedelta, account: str = "page") -> QueueSlot:
    rig.draft(draft_id, (account, "facebook", ""))
    request = ScheduleAtRequest(
        organization_id="acme", draft_id=draft_id, schedule_time=timestamp(SystemClock().now() + ahead)
    )
    slots: list[QueueSlot] = (await rig.stub.ScheduleAt(request)).queue_slots
    return slots[0]


async def announced(rig: "Rig", count: int) -> bool:
    return len(await rig.messages(EVENTS.name)) >= count
