"""WatchQueue among replicas, slow clients and clients that leave, stops and breaks."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from devstack.servers.nats import EmbeddedNats
from postflow.publisher.v1.post_job_pb2 import POST_JOB_STATE_PUBLISHED
from postflow.queue.v1.queue_service_pb2 import (
    GetQueueRequest,
    ListQueueSlotsRequest,
    ReorderQueueRequest,
    SkipNextSlotRequest,
)
from postflow.queue.v1.queue_service_pb2_grpc import QueueServiceStub
from postflow.queue.v1.queue_slot_pb2 import QUEUE_SLOT_STATE_DISPATCHED, QUEUE_SLOT_STATE_PUBLISHED
from queue_service.main import compose
from servicekit.faults import Fault, Unavailable
from servicekit.rpc import RpcServer, calling, open_channel
from servicekit.run import serve
from testkit.eventually import eventually
from testkit.processes import running
from tests.rpc.queue_service.watching import Watcher, schedule, watching
from topology import EVENTS

if TYPE_CHECKING:
    from tests.rpc.queue_service.conftest import Rig

Refusal = Callable[[Awaitable[object]], Awaitable[Fault]]
HOUR = timedelta(hours=1)


async def test_a_watcher_sees_the_changes_that_other_replicas_make(rig: "Rig") -> None:
    async with running(await compose(rig.settings)) as channel, watching(QueueServiceStub(channel)) as watcher:
        await watcher.caught_up()
        await schedule(rig, "d1", timedelta(seconds=20))
        await watcher.until_state("d1", QUEUE_SLOT_STATE_DISPATCHED)
        [command] = await rig.commands(1)
        await rig.report(command, POST_JOB_STATE_PUBLISHED, 3)
        await watcher.until_state("d1", QUEUE_SLOT_STATE_PUBLISHED)
        await rig.stub.SkipNextSlot(SkipNextSlotRequest(organization_id="acme", social_account_id="page"))
        await watcher.until(lambda: watcher.queue is not None and watcher.queue.skip_next)


async def test_a_watch_goes_on_at_another_replica(rig: "Rig") -> None:
    async with watching(rig.stub) as watcher:
        await watcher.caught_up()
    await schedule(rig, "d1", HOUR)
    async with running(await compose(rig.settings)) as channel:
        async with watching(QueueServiceStub(channel), watcher.token) as again:
            await again.until(lambda: "d1" in again.slots)
        await schedule(rig, "d2", 2 * HOUR)
    async with watching(rig.stub, again.token) as third:
        await third.until(lambda: "d2" in third.slots)


async def test_a_slow_client_gets_the_newest_state(rig: "Rig") -> None:
    slots = [(await schedule(rig, f"d{number}", (number + 1) * HOUR)).id for number in range(3)]
    async with watching(rig.stub) as watcher:
        await watcher.read()
        for _ in range(30):
            slots = [slots[2], slots[0], slots[1]]
            found = await rig.stub.GetQueue(GetQueueRequest(organization_id="acme", social_account_id="page"))
            request = ReorderQueueRequest(
                organization_id="acme", social_account_id="page", slot_ids=slots, etag=found.queue.etag
            )
            await rig.stub.ReorderQueue(request)
        listed = await rig.stub.ListQueueSlots(ListQueueSlotsRequest(organization_id="acme"))
        newest = {each.id: each.revision for each in listed.queue_slots}
        assert min(newest.values()) > 20
        await watcher.until(lambda: {each.id: each.revision for each in watcher.slots.values()} == newest)


async def readers(rig: "Rig") -> list[str]:
    """Returns the consumers of the stream that are not durable."""
    found = await rig.nats.jetstream().consumers_info(EVENTS.name)
    return [each.name for each in found if each.name != "queue-events"]


async def test_a_client_that_leaves_costs_nothing(rig: "Rig") -> None:
    async with watching(rig.stub) as watcher, watching(rig.stub) as other:
        await watcher.caught_up()
        await other.caught_up()
        assert len(await readers(rig)) == 1

    async def is_free() -> bool:
        return not await readers(rig)

    await eventually(is_free)


async def test_a_server_that_stops_ends_its_watches_at_once(rig: "Rig") -> None:
    process = await compose(rig.settings)
    stop, ready = asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(serve(process, stop, ready))
        await ready.wait()
        assert isinstance(process.server, RpcServer)
        async with open_channel(f"127.0.0.1:{process.server.port}") as channel:
            async with watching(QueueServiceStub(channel)) as watcher:
                await watcher.caught_up()
                stop.set()
                began = time.monotonic()
                with pytest.raises(Unavailable) as ended, calling():
                    await watcher.read()
                assert ended.value.reason == "SERVER_STOPPING"
            await serving
            assert time.monotonic() - began < process.grace.total_seconds() / 2
    await schedule(rig, "d1", HOUR)
    async with watching(rig.stub, watcher.token) as again:
        await again.until(lambda: "d1" in again.slots)


async def test_a_restart_of_the_stream_loses_nothing(rig: "Rig", fresh_nats: EmbeddedNats) -> None:
    async with watching(rig.stub) as watcher:
        await watcher.caught_up()
        await fresh_nats.restart()
        await schedule(rig, "d1", HOUR)
        await watcher.until(lambda: "d1" in watcher.slots)


async def test_a_watch_ends_when_the_stream_is_another_one(rig: "Rig", fresh_nats: EmbeddedNats) -> None:
    async with watching(rig.stub) as watcher:
        await watcher.caught_up()
        await fresh_nats.kill()
        await fresh_nats.wipe()
        await fresh_nats.start()
        with pytest.raises(Fault) as ended, calling():
            await until_the_end(watcher)
        assert ended.value.reason == "RESUME_TOKEN_EXPIRED"


async def until_the_end(watcher: Watcher) -> None:
    while True:
        await watcher.read()
