"""The pull loop while its server is killed, wiped, rolled back or silent."""

import asyncio
import os
import shutil
import signal
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from nats.aio.client import Client

from devstack.servers.nats import EmbeddedNats
from servicekit.bus.connection import ConnectionGone, connect
from servicekit.bus.delivery import Delivery
from testkit.eventually import eventually
from tests.contract.servicekit_bus.pulling import (
    READER,
    Acknowledger,
    Collector,
    has_consumer,
    is_in,
    publish,
    pulling,
    state_of,
)


async def test_delays_survive_a_restart_of_the_server(stream: Client, fresh_nats: EmbeddedNats) -> None:
    """Allows a second, since the server stores whole seconds."""
    collector = Collector()
    async with pulling(stream, collector):
        await publish(stream, 50)
        await eventually(lambda: len(collector.deliveries) == 50)
        until = collector.times[0] + 4
        await collector.finish(lambda delivery: delivery.retry_in(timedelta(seconds=4)))
        await stream.flush()
        await fresh_nats.restart()
        await eventually(lambda: len(collector.deliveries) == 50, within=20)
        assert min(collector.times[-50:]) >= until - 1.0


async def test_pulling_continues_after_a_killed_server_restarts(stream: Client, fresh_nats: EmbeddedNats) -> None:
    collector = Acknowledger()
    # The server may die with acknowledgements that it has not stored: it redelivers those messages after `ack_wait`.
    async with pulling(stream, collector, spec=replace(READER, ack_wait=timedelta(seconds=2))):
        await publish(stream, 200)
        await eventually(lambda: len(collector.seen) == 200)
        await fresh_nats.kill()
        await fresh_nats.start()
        await publish(stream, 200, start=200)
        await eventually(lambda: len(collector.seen) == 400)
        await eventually(lambda: is_in(stream, (0, 0)))


async def test_a_wiped_server_gets_its_stream_and_consumer_again(
    stream: Client, fresh_nats: EmbeddedNats, tmp_path: Path
) -> None:
    collector = Acknowledger()
    async with pulling(stream, collector):
        await publish(stream, 10)
        await eventually(lambda: len(collector.seen) == 10)
        await fresh_nats.kill()
        shutil.rmtree(tmp_path / "nats" / "jetstream")
        await fresh_nats.start()
        await eventually(lambda: has_consumer(stream))
        await publish(stream, 10, start=100)
        await eventually(lambda: len(collector.seen) == 20)


async def test_a_silent_server_is_asked_again(
    stream: Client, fresh_nats: EmbeddedNats, caplog: pytest.LogCaptureFixture
) -> None:
    collector = Acknowledger()
    async with pulling(stream, collector, heartbeat=timedelta(milliseconds=100)):
        await publish(stream, 10)
        await eventually(lambda: len(collector.seen) == 10)
        os.kill(fresh_nats.pid, signal.SIGSTOP)
        try:
            await eventually(lambda: "silent" in caplog.text)
        finally:
            os.kill(fresh_nats.pid, signal.SIGCONT)
        await publish(stream, 10, start=10)
        await eventually(lambda: len(collector.seen) == 20)


async def test_an_answer_to_a_wiped_stream_changes_nothing_in_the_new_one(stream: Client) -> None:
    """The sequence that the answer names belongs to another message by then."""
    collector = Collector()
    async with pulling(stream, collector):
        await publish(stream, 5)
        await eventually(lambda: len(collector.deliveries) == 5)
        old, collector.deliveries = collector.deliveries, []
        await stream.jetstream().delete_stream("WORK")
        await eventually(lambda: has_consumer(stream))
        await publish(stream, 5, start=100)
        await eventually(lambda: len(collector.deliveries) == 5)

        for delivery in old:
            await delivery.ack()
        await stream.flush()
        assert await state_of(stream) == (0, 5), "the new messages still wait for their own answers"
        await collector.finish(Delivery.ack)
        await eventually(lambda: is_in(stream, (0, 0)))


async def test_an_answer_to_a_rolled_back_stream_changes_nothing_in_it(
    stream: Client, fresh_nats: EmbeddedNats, tmp_path: Path
) -> None:
    store, copy = tmp_path / "nats" / "jetstream", tmp_path / "copy"
    await fresh_nats.stop()
    shutil.copytree(store, copy)
    await fresh_nats.start()

    collector = Collector()
    async with pulling(stream, collector):
        await eventually(lambda: stream.is_connected)
        await publish(stream, 5)
        await eventually(lambda: len(collector.deliveries) == 5)
        old, collector.deliveries = collector.deliveries, []
        await fresh_nats.stop()
        shutil.rmtree(store)
        shutil.copytree(copy, store)
        await fresh_nats.start()
        await eventually(lambda: has_consumer(stream))
        await publish(stream, 5, start=100)
        await eventually(lambda: len(collector.deliveries) == 5)

        for delivery in old:
            await delivery.ack()
        await stream.flush()
        assert await state_of(stream) == (0, 5)


async def test_answers_during_an_outage_count_when_the_server_is_back(stream: Client, fresh_nats: EmbeddedNats) -> None:
    collector = Collector()
    async with pulling(stream, collector):
        await publish(stream, 5)
        await eventually(lambda: len(collector.deliveries) == 5)
        await fresh_nats.stop()
        await eventually(lambda: not stream.is_connected)
        await collector.finish(Delivery.ack)
        await fresh_nats.start()
        await eventually(lambda: _is_connected_and(stream, (0, 0)))
        assert not collector.deliveries, "so nothing comes twice"


async def _is_connected_and(connection: Client, state: tuple[int, int]) -> bool:
    return connection.is_connected and await is_in(connection, state)


async def test_a_delay_that_began_in_an_outage_is_not_prolonged(stream: Client, fresh_nats: EmbeddedNats) -> None:
    collector = Collector()
    async with pulling(stream, collector):
        await publish(stream, 1)
        await eventually(lambda: collector.deliveries)
        await fresh_nats.stop()
        await eventually(lambda: not stream.is_connected)
        await collector.finish(lambda delivery: delivery.retry_in(timedelta(seconds=60)))
        ((answer, *_),) = [list(collector.loop._answers._waiting.values())]
        early = answer()
        await eventually(lambda: answer() < early)  # the remaining delay shrinks while it waits


@pytest.mark.parametrize("deed", ["kill", "freeze"])
async def test_stopping_does_not_wait_for_an_unreachable_server(
    stream: Client, fresh_nats: EmbeddedNats, deed: str
) -> None:
    collector = Collector()
    async with pulling(stream, collector, heartbeat=timedelta(milliseconds=100)) as stop:
        await eventually(lambda: has_consumer(stream))
        if deed == "kill":
            await fresh_nats.kill()
            await eventually(lambda: not stream.is_connected)
        else:
            os.kill(fresh_nats.pid, signal.SIGSTOP)
        stop.set()
        try:
            await eventually(lambda: collector.stopped, within=8)  # a frozen server answers nothing for ten
        finally:
            if deed == "freeze":
                os.kill(fresh_nats.pid, signal.SIGCONT)


async def test_a_connection_closed_for_good_ends_the_loop(fresh_nats: EmbeddedNats) -> None:
    client = Client()
    await connect(client, fresh_nats.url, name="test")

    async def pull_until_closed() -> None:
        async with pulling(client, Collector()):
            await eventually(lambda: has_consumer(client))
            await client.close()
            await asyncio.Event().wait()

    with pytest.raises(ExceptionGroup) as caught:
        await pull_until_closed()
    assert caught.group_contains(ConnectionGone)
