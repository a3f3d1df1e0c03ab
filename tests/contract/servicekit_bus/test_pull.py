"""The pull loop on a working server: delivery, room, delays, corrections, new layouts."""

import asyncio
import json
import logging
from datetime import timedelta

import pytest
from nats.aio.client import Client

from servicekit.bus.delivery import Delivery
from servicekit.bus.pull import PullLoop
from servicekit.bus.streams import ConsumerSpec, ensure_consumer, ensure_stream
from testkit.eventually import eventually
from tests.contract.servicekit_bus.pulling import (
    READER,
    WORK,
    Acknowledger,
    Collector,
    has_consumer,
    is_in,
    publish,
    pulling,
    state_of,
)
from topology import PUBLISH, publish_consumers, publish_subject


async def test_every_message_is_delivered_once(stream: Client) -> None:
    collector = Acknowledger()
    async with pulling(stream, collector):
        await publish(stream, 20_000)
        await eventually(lambda: len(collector.seen) == 20_000, within=30)
        await eventually(lambda: is_in(stream, (0, 0)))
    assert set(collector.seen.values()) == {1}
    assert (await stream.jetstream().stream_info("WORK")).state.messages == 0


@pytest.mark.parametrize("room", [1, 3, 100])
async def test_no_more_messages_are_held_than_there_is_room_for(stream: Client, room: int) -> None:
    collector = Collector()
    await publish(stream, 500)
    async with pulling(stream, collector, room=room):
        await eventually(lambda: collector.loop.held == room)
        for _ in range(3):
            await collector.finish(Delivery.ack, max(room // 2, 1))
            await eventually(lambda: collector.loop.held == room)
        assert (await state_of(stream))[1] == room, "the server hands out no more than was asked for"


async def test_the_room_is_never_exceeded_on_the_way(stream: Client) -> None:
    collector = Acknowledger()
    await publish(stream, 5_000)
    async with pulling(stream, collector, room=50):
        await eventually(lambda: len(collector.seen) == 5_000, within=30)
    assert collector.most_held <= 50


async def test_a_message_is_redelivered_after_its_delay(stream: Client) -> None:
    collector = Collector()
    async with pulling(stream, collector):
        await publish(stream, 1)
        await eventually(lambda: collector.deliveries)
        first = collector.times[-1]
        await collector.finish(lambda delivery: delivery.retry_in(timedelta(seconds=0.6)))
        await eventually(lambda: collector.deliveries)
        assert collector.times[-1] - first >= 0.6
        await collector.finish(lambda delivery: delivery.retry_in(timedelta(0)))
        await eventually(lambda: collector.deliveries)
        await collector.finish(Delivery.ack)
        await eventually(lambda: is_in(stream, (0, 0)))


async def test_an_answer_may_be_corrected(stream: Client) -> None:
    """Holds a command for an hour and cancels it a moment later."""
    collector = Collector()
    async with pulling(stream, collector):
        await publish(stream, 1)
        await eventually(lambda: collector.deliveries)
        held = collector.deliveries[0]
        await collector.finish(lambda delivery: delivery.retry_in(timedelta(hours=1)))
        await eventually(lambda: is_in(stream, (0, 1)))
        await held.ack()
        await eventually(lambda: is_in(stream, (0, 0)))


async def test_a_deleted_stream_is_created_again(stream: Client) -> None:
    collector = Acknowledger()
    async with pulling(stream, collector):
        await publish(stream, 10)
        await eventually(lambda: len(collector.seen) == 10)
        await stream.jetstream().delete_stream("WORK")
        await eventually(lambda: has_consumer(stream))
        await publish(stream, 10, start=100)
        await eventually(lambda: len(collector.seen) == 20)


async def test_a_stream_is_not_created_while_the_server_deletes_it(stream: Client) -> None:
    """A stream that is created too early loses its folder and accepts no message any more."""
    loop = asyncio.get_running_loop()
    made: list[float] = []

    async def ensure() -> None:
        made.append(loop.time())
        await ensure_stream(stream.jetstream(), WORK)

    collector = Collector()
    async with pulling(stream, collector, ensure=ensure):
        await publish(stream, 1)
        await eventually(lambda: collector.deliveries)
        deleted, made[:] = loop.time(), []
        await stream.jetstream().delete_stream("WORK")
        await eventually(lambda: made)
        assert made[0] - deleted >= 0.3


async def test_a_deleted_consumer_is_created_again(stream: Client) -> None:
    collector = Acknowledger()
    async with pulling(stream, collector):
        await eventually(lambda: has_consumer(stream))
        await stream.jetstream().delete_consumer("WORK", "reader")
        await publish(stream, 10)
        await eventually(lambda: len(collector.seen) == 10)


@pytest.mark.parametrize("bound", [{"max_batch": 10}, {"max_expires": 1_000_000_000}])
async def test_limits_of_requests_by_an_operator_stop_nothing(stream: Client, bound: dict[str, int]) -> None:
    collector = Acknowledger()
    await ensure_consumer(stream.jetstream(), READER)
    found = await stream.jetstream()._api_request("$JS.API.CONSUMER.INFO.WORK.reader")
    request = json.dumps({"stream_name": "WORK", "config": found["config"] | bound}).encode()
    await stream.jetstream()._api_request("$JS.API.CONSUMER.DURABLE.CREATE.WORK.reader", request)
    async with pulling(stream, collector):
        await publish(stream, 100)
        await eventually(lambda: len(collector.seen) == 100)


async def test_stopping_is_quick_and_gives_back_messages_in_transit(stream: Client) -> None:
    collector = Collector()
    await publish(stream, 400, size=50_000)
    async with pulling(stream, collector, room=400) as stop:
        await eventually(lambda: collector.deliveries)
        stop.set()
    async with asyncio.timeout(8):  # a request lasts half a minute
        await collector.finish(lambda delivery: delivery.retry_in(timedelta(0)))
        await stream.flush()
    info = await stream.jetstream().consumer_info("WORK", "reader")
    assert info.num_waiting == 0
    again = Collector()
    async with pulling(stream, again, room=400):
        await eventually(lambda: len(again.deliveries) == 400)


async def test_a_refused_request_is_retried_after_a_pause(stream: Client, caplog: pytest.LogCaptureFixture) -> None:
    impossible = ConsumerSpec(stream="WORK", durable="bad", filter_subjects=("elsewhere.a", "elsewhere.a"))
    attempts = 0

    async def count() -> None:
        nonlocal attempts
        attempts += 1

    loop = PullLoop(stream, impossible, lambda delivery: None, room=10, ensure_stream=count)
    stop = asyncio.Event()
    with caplog.at_level(logging.INFO):
        async with asyncio.TaskGroup() as group:
            group.create_task(loop.run(stop))
            await eventually(lambda: attempts >= 3)
            stop.set()
    assert attempts < 10
    assert caplog.text.count("not available") == 1, "said once"


async def test_a_new_layout_takes_over_and_the_old_one_stands_back(
    own_connection: Client, other_connection: Client
) -> None:
    js = own_connection.jetstream()
    await ensure_stream(js, PUBLISH)
    (single,) = publish_consumers(1)
    old, new = Acknowledger(), Acknowledger()
    subject = publish_subject("org", "account")
    async with pulling(own_connection, old, spec=single, stream=PUBLISH):
        await publish(own_connection, 1, subject=subject)
        await eventually(lambda: old.seen)
        (half,) = [spec for spec in publish_consumers(2) if f"{subject.rpartition('.')[0]}.>" in spec.filter_subjects]
        async with pulling(other_connection, new, spec=half, stream=PUBLISH):
            await eventually(lambda: _are(own_connection, {half.durable}))
            await publish(other_connection, 10, start=10, subject=subject)
            await eventually(lambda: len(new.seen) == 10)
            assert await _are(own_connection, {half.durable})
    assert len(old.seen) == 1


async def _are(connection: Client, durables: set[str]) -> bool:
    return {info.name for info in await connection.jetstream().consumers_info("PUBLISH")} == durables
