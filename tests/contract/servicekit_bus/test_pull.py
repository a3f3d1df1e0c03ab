"""The pull loop on a real server that is killed, wiped, rolled back and stopped."""

import asyncio
import json
import logging
import os
import shutil
import signal
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from nats.aio.client import Client
from nats.js.errors import NotFoundError

from devstack.servers.nats import EmbeddedNats
from servicekit.bus.connection import ConnectionGone, connect
from servicekit.bus.delivery import Delivery
from servicekit.bus.publisher import Outgoing, PipelinedPublisher
from servicekit.bus.pull import PullLoop
from servicekit.bus.streams import ConsumerSpec, StreamSpec, ensure_consumer, ensure_stream
from testkit.eventually import eventually
from topology import PUBLISH, publish_consumers, publish_subject

WORK = StreamSpec(name="WORK", subjects=("work.>",), work_queue=True, max_age=timedelta(hours=1))
READER = ConsumerSpec(stream="WORK", durable="reader", filter_subjects=("work.>",), ack_wait=timedelta(seconds=30))


class Collector:
    """Collects deliveries; `acknowledge` answers all of them, and later ones as they come."""

    def __init__(self) -> None:
        self.deliveries: list[Delivery] = []
        self.times: list[float] = []
        self.loop: PullLoop
        self.stopped = False

    async def pull(self, stop: asyncio.Event) -> None:
        await self.loop.run(stop)
        self.stopped = True

    def receive(self, delivery: Delivery) -> None:
        self.deliveries.append(delivery)
        self.times.append(asyncio.get_running_loop().time())

    @property
    def payloads(self) -> list[bytes]:
        return [delivery.payload for delivery in self.deliveries]

    async def finish(self, answer: Callable[[Delivery], object], count: int = 1_000_000) -> None:
        """Answers the oldest deliveries."""
        taken, self.deliveries = self.deliveries[:count], self.deliveries[count:]
        for delivery in taken:
            await answer(delivery)  # type: ignore[misc]
        self.loop.finished(len(taken))


class Acknowledger(Collector):
    """Counts deliveries, and acknowledges each a moment later."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Counter[bytes] = Counter()
        self.most_held = 0

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            self.most_held = max(self.most_held, self.loop.held)
            self.seen.update(self.payloads)
            await self.finish(Delivery.ack)
            await asyncio.sleep(0.001)


@asynccontextmanager
async def _pulling(
    connection: Client,
    collector: Collector,
    *,
    room: int = 1000,
    spec: ConsumerSpec = READER,
    stream: StreamSpec = WORK,
    ensure: Callable[[], Awaitable[object]] | None = None,
    heartbeat: timedelta = timedelta(seconds=2),
) -> AsyncIterator[asyncio.Event]:
    js = connection.jetstream()
    collector.loop = PullLoop(
        connection,
        spec,
        collector.receive,
        room=room,
        ensure_stream=ensure or (lambda: ensure_stream(js, stream)),
        heartbeat=heartbeat,
    )
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(collector.pull(stop))
        if isinstance(collector, Acknowledger):
            group.create_task(collector.run(stop))
        try:
            yield stop
        finally:
            stop.set()


async def _publish(connection: Client, count: int, *, start: int = 0, subject: str = "work.a", size: int = 1) -> None:
    messages = [Outgoing(subject, b"%0*d" % (size, number), f"{number}") for number in range(start, start + count)]
    answers = await PipelinedPublisher(connection, timeout=20).publish(messages)
    assert all(answers)


async def _state(connection: Client, durable: str = "reader") -> tuple[int, int]:
    """Returns how many messages are not delivered yet, and how many not acknowledged."""
    info = await connection.jetstream().consumer_info("WORK", durable)
    return info.num_pending or 0, info.num_ack_pending or 0


@pytest.fixture
async def stream(own_connection: Client) -> Client:
    await ensure_stream(own_connection.jetstream(), WORK)
    return own_connection


async def test_every_message_is_delivered_once(stream: Client) -> None:
    collector = Acknowledger()
    async with _pulling(stream, collector):
        await _publish(stream, 20_000)
        await eventually(lambda: len(collector.seen) == 20_000, within=30)
        await eventually(lambda: _is(stream, (0, 0)))
    assert set(collector.seen.values()) == {1}
    assert (await stream.jetstream().stream_info("WORK")).state.messages == 0


async def _is(connection: Client, state: tuple[int, int]) -> bool:
    return await _state(connection) == state


@pytest.mark.parametrize("room", [1, 3, 100])
async def test_no_more_messages_are_held_than_there_is_room_for(stream: Client, room: int) -> None:
    collector = Collector()
    await _publish(stream, 500)
    async with _pulling(stream, collector, room=room):
        await eventually(lambda: collector.loop.held == room)
        for _ in range(3):
            await collector.finish(Delivery.ack, max(room // 2, 1))
            await eventually(lambda: collector.loop.held == room)
        assert (await _state(stream))[1] == room, "the server hands out no more than was asked for"


async def test_the_room_is_never_exceeded_on_the_way(stream: Client) -> None:
    collector = Acknowledger()
    await _publish(stream, 5_000)
    async with _pulling(stream, collector, room=50):
        await eventually(lambda: len(collector.seen) == 5_000, within=30)
    assert collector.most_held <= 50


async def test_a_message_is_redelivered_after_its_delay(stream: Client) -> None:
    collector = Collector()
    async with _pulling(stream, collector):
        await _publish(stream, 1)
        await eventually(lambda: collector.deliveries)
        first = collector.times[-1]
        await collector.finish(lambda delivery: delivery.retry_in(timedelta(seconds=0.6)))
        await eventually(lambda: collector.deliveries)
        assert collector.times[-1] - first >= 0.6
        await collector.finish(lambda delivery: delivery.retry_in(timedelta(0)))
        await eventually(lambda: collector.deliveries)
        await collector.finish(Delivery.ack)
        await eventually(lambda: _is(stream, (0, 0)))


async def test_an_answer_may_be_corrected(stream: Client) -> None:
    """Holds a command for an hour and cancels it a moment later."""
    collector = Collector()
    async with _pulling(stream, collector):
        await _publish(stream, 1)
        await eventually(lambda: collector.deliveries)
        held = collector.deliveries[0]
        await collector.finish(lambda delivery: delivery.retry_in(timedelta(hours=1)))
        await eventually(lambda: _is(stream, (0, 1)))
        await held.ack()
        await eventually(lambda: _is(stream, (0, 0)))


async def test_delays_survive_a_restart_of_the_server(stream: Client, fresh_nats: EmbeddedNats) -> None:
    """Allows a second, since the server stores whole seconds."""
    collector = Collector()
    async with _pulling(stream, collector):
        await _publish(stream, 50)
        await eventually(lambda: len(collector.deliveries) == 50)
        until = collector.times[0] + 4
        await collector.finish(lambda delivery: delivery.retry_in(timedelta(seconds=4)))
        await stream.flush()
        await fresh_nats.restart()
        await eventually(lambda: len(collector.deliveries) == 50, within=20)
        assert min(collector.times[-50:]) >= until - 1.0


async def test_pulling_continues_after_a_killed_server_restarts(stream: Client, fresh_nats: EmbeddedNats) -> None:
    collector = Acknowledger()
    async with _pulling(stream, collector):
        await _publish(stream, 200)
        await eventually(lambda: len(collector.seen) == 200)
        await fresh_nats.kill()
        await fresh_nats.start()
        await _publish(stream, 200, start=200)
        await eventually(lambda: len(collector.seen) == 400)
        await eventually(lambda: _is(stream, (0, 0)))


async def test_a_wiped_server_gets_its_stream_and_consumer_again(
    stream: Client, fresh_nats: EmbeddedNats, tmp_path: Path
) -> None:
    collector = Acknowledger()
    async with _pulling(stream, collector):
        await _publish(stream, 10)
        await eventually(lambda: len(collector.seen) == 10)
        await fresh_nats.kill()
        shutil.rmtree(tmp_path / "nats" / "jetstream")
        await fresh_nats.start()
        await eventually(lambda: _has_consumer(stream))
        await _publish(stream, 10, start=100)
        await eventually(lambda: len(collector.seen) == 20)


async def _has_consumer(connection: Client) -> bool:
    """Waits until the new stream accepts messages: it is visible before, while the old one still accepts them."""
    try:
        return connection.is_connected and bool(await connection.jetstream().consumer_info("WORK", "reader"))
    except NotFoundError:
        return False


async def test_a_deleted_stream_is_created_again(stream: Client) -> None:
    collector = Acknowledger()
    async with _pulling(stream, collector):
        await _publish(stream, 10)
        await eventually(lambda: len(collector.seen) == 10)
        await stream.jetstream().delete_stream("WORK")
        await eventually(lambda: _has_consumer(stream))
        await _publish(stream, 10, start=100)
        await eventually(lambda: len(collector.seen) == 20)


async def test_a_stream_is_not_created_while_the_server_deletes_it(stream: Client) -> None:
    """A stream that is created too early loses its folder and accepts no message any more."""
    loop = asyncio.get_running_loop()
    made: list[float] = []

    async def ensure() -> None:
        made.append(loop.time())
        await ensure_stream(stream.jetstream(), WORK)

    collector = Collector()
    async with _pulling(stream, collector, ensure=ensure):
        await _publish(stream, 1)
        await eventually(lambda: collector.deliveries)
        deleted, made[:] = loop.time(), []
        await stream.jetstream().delete_stream("WORK")
        await eventually(lambda: made)
        assert made[0] - deleted >= 0.3


async def test_a_deleted_consumer_is_created_again(stream: Client) -> None:
    collector = Acknowledger()
    async with _pulling(stream, collector):
        await eventually(lambda: _has_consumer(stream))
        await stream.jetstream().delete_consumer("WORK", "reader")
        await _publish(stream, 10)
        await eventually(lambda: len(collector.seen) == 10)


@pytest.mark.parametrize("bound", [{"max_batch": 10}, {"max_expires": 1_000_000_000}])
async def test_limits_of_requests_by_an_operator_stop_nothing(stream: Client, bound: dict[str, int]) -> None:
    collector = Acknowledger()
    await ensure_consumer(stream.jetstream(), READER)
    found = await stream.jetstream()._api_request("$JS.API.CONSUMER.INFO.WORK.reader")
    request = json.dumps({"stream_name": "WORK", "config": found["config"] | bound}).encode()
    await stream.jetstream()._api_request("$JS.API.CONSUMER.DURABLE.CREATE.WORK.reader", request)
    async with _pulling(stream, collector):
        await _publish(stream, 100)
        await eventually(lambda: len(collector.seen) == 100)


async def test_a_silent_server_is_asked_again(
    stream: Client, fresh_nats: EmbeddedNats, caplog: pytest.LogCaptureFixture
) -> None:
    collector = Acknowledger()
    async with _pulling(stream, collector, heartbeat=timedelta(milliseconds=100)):
        await _publish(stream, 10)
        await eventually(lambda: len(collector.seen) == 10)
        os.kill(fresh_nats.pid, signal.SIGSTOP)
        try:
            await eventually(lambda: "silent" in caplog.text)
        finally:
            os.kill(fresh_nats.pid, signal.SIGCONT)
        await _publish(stream, 10, start=10)
        await eventually(lambda: len(collector.seen) == 20)


async def test_an_answer_to_a_wiped_stream_changes_nothing_in_the_new_one(stream: Client) -> None:
    """The sequence that the answer names belongs to another message by then."""
    collector = Collector()
    async with _pulling(stream, collector):
        await _publish(stream, 5)
        await eventually(lambda: len(collector.deliveries) == 5)
        old, collector.deliveries = collector.deliveries, []
        await stream.jetstream().delete_stream("WORK")
        await eventually(lambda: _has_consumer(stream))
        await _publish(stream, 5, start=100)
        await eventually(lambda: len(collector.deliveries) == 5)

        for delivery in old:
            await delivery.ack()
        await stream.flush()
        assert await _state(stream) == (0, 5), "the new messages still wait for their own answers"
        await collector.finish(Delivery.ack)
        await eventually(lambda: _is(stream, (0, 0)))


async def test_an_answer_to_a_rolled_back_stream_changes_nothing_in_it(
    stream: Client, fresh_nats: EmbeddedNats, tmp_path: Path
) -> None:
    store, copy = tmp_path / "nats" / "jetstream", tmp_path / "copy"
    await fresh_nats.stop()
    shutil.copytree(store, copy)
    await fresh_nats.start()

    collector = Collector()
    async with _pulling(stream, collector):
        await eventually(lambda: stream.is_connected)
        await _publish(stream, 5)
        await eventually(lambda: len(collector.deliveries) == 5)
        old, collector.deliveries = collector.deliveries, []
        await fresh_nats.stop()
        shutil.rmtree(store)
        shutil.copytree(copy, store)
        await fresh_nats.start()
        await eventually(lambda: _has_consumer(stream))
        await _publish(stream, 5, start=100)
        await eventually(lambda: len(collector.deliveries) == 5)

        for delivery in old:
            await delivery.ack()
        await stream.flush()
        assert await _state(stream) == (0, 5)


async def test_answers_during_an_outage_count_when_the_server_is_back(stream: Client, fresh_nats: EmbeddedNats) -> None:
    collector = Collector()
    async with _pulling(stream, collector):
        await _publish(stream, 5)
        await eventually(lambda: len(collector.deliveries) == 5)
        await fresh_nats.stop()
        await eventually(lambda: not stream.is_connected)
        await collector.finish(Delivery.ack)
        await fresh_nats.start()
        await eventually(lambda: _is_connected_and(stream, (0, 0)))
        assert not collector.deliveries, "so nothing comes twice"


async def _is_connected_and(connection: Client, state: tuple[int, int]) -> bool:
    return connection.is_connected and await _is(connection, state)


async def test_a_delay_that_began_in_an_outage_is_not_prolonged(stream: Client, fresh_nats: EmbeddedNats) -> None:
    collector = Collector()
    async with _pulling(stream, collector):
        await _publish(stream, 1)
        await eventually(lambda: collector.deliveries)
        await fresh_nats.stop()
        await eventually(lambda: not stream.is_connected)
        await collector.finish(lambda delivery: delivery.retry_in(timedelta(seconds=60)))
        ((answer, *_),) = [list(collector.loop._answers._waiting.values())]
        early = answer()
        await eventually(lambda: answer() < early)  # the remaining delay shrinks while it waits


async def test_stopping_is_quick_and_gives_back_messages_in_transit(stream: Client) -> None:
    collector = Collector()
    await _publish(stream, 400, size=50_000)
    async with _pulling(stream, collector, room=400) as stop:
        await eventually(lambda: collector.deliveries)
        stop.set()
    async with asyncio.timeout(8):  # a request lasts half a minute
        await collector.finish(lambda delivery: delivery.retry_in(timedelta(0)))
        await stream.flush()
    info = await stream.jetstream().consumer_info("WORK", "reader")
    assert info.num_waiting == 0
    again = Collector()
    async with _pulling(stream, again, room=400):
        await eventually(lambda: len(again.deliveries) == 400)


@pytest.mark.parametrize("deed", ["kill", "freeze"])
async def test_stopping_does_not_wait_for_an_unreachable_server(
    stream: Client, fresh_nats: EmbeddedNats, deed: str
) -> None:
    collector = Collector()
    async with _pulling(stream, collector, heartbeat=timedelta(milliseconds=100)) as stop:
        await eventually(lambda: _has_consumer(stream))
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
        async with _pulling(client, Collector()):
            await eventually(lambda: _has_consumer(client))
            await client.close()
            await asyncio.Event().wait()

    with pytest.raises(ExceptionGroup) as caught:
        await pull_until_closed()
    assert caught.group_contains(ConnectionGone)


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
    async with _pulling(own_connection, old, spec=single, stream=PUBLISH):
        await _publish(own_connection, 1, subject=subject)
        await eventually(lambda: old.seen)
        (half,) = [spec for spec in publish_consumers(2) if f"{subject.rpartition('.')[0]}.>" in spec.filter_subjects]
        async with _pulling(other_connection, new, spec=half, stream=PUBLISH):
            await eventually(lambda: _are(own_connection, {half.durable}))
            await _publish(other_connection, 10, start=10, subject=subject)
            await eventually(lambda: len(new.seen) == 10)
            assert await _are(own_connection, {half.durable})
    assert len(old.seen) == 1


async def _are(connection: Client, durables: set[str]) -> bool:
    return {info.name for info in await connection.jetstream().consumers_info("PUBLISH")} == durables
