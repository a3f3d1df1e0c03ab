"""EventStream tells how far Queue has heard the events, on a real NATS server."""

from collections.abc import AsyncIterator

import pytest
from nats.aio.client import Client

from devstack.servers.nats import EmbeddedNats
from queue_service.adapters.event_stream import EventStream
from queue_service.domain.stream import Hearing
from queue_service.entrypoints.events import CONSUMER
from servicekit.bus.connection import connect
from servicekit.bus.streams import ensure_consumer, ensure_stream
from testkit.eventually import eventually
from topology import EVENTS

SUBJECT = "events.publisher.acme.post_job"


@pytest.fixture
async def client(fresh_nats: EmbeddedNats) -> AsyncIterator[Client]:
    client = Client()
    await connect(client, fresh_nats.url, name="test")
    yield client
    await client.close()


async def test_events_count_as_heard_once_they_are_acknowledged(client: Client) -> None:
    events, js = EventStream(client, CONSUMER), client.jetstream()
    assert await events.hearing() is None
    await ensure_stream(js, EVENTS)
    assert await events.hearing() is None
    await ensure_consumer(js, CONSUMER)
    assert await events.hearing() == Hearing(0, 0)
    for _ in range(3):
        await js.publish(SUBJECT, b"")
    assert await events.hearing() == Hearing(3, 0)
    pull = await js.pull_subscribe_bind(CONSUMER.durable, EVENTS.name)
    first, second = await pull.fetch(2)
    await second.ack_sync()
    assert await events.hearing() == Hearing(3, 0)
    await first.ack_sync()
    assert await events.hearing() == Hearing(3, 2)
    [third] = await pull.fetch(1)
    await third.ack_sync()
    await js.publish("events.queue.acme.slot", b"")  # Queue does not consume its own events
    hearing = await events.hearing()
    assert hearing == Hearing(4, 4)
    assert hearing.is_complete


async def test_an_unreachable_server_says_nothing(client: Client, fresh_nats: EmbeddedNats) -> None:
    await ensure_stream(client.jetstream(), EVENTS)
    await fresh_nats.kill()
    await eventually(lambda: not client.is_connected)
    assert await EventStream(client, CONSUMER).hearing() is None
