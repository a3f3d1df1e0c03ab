"""A consumer of the pull loop that collects deliveries, for the tests of the loop."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

from nats.aio.client import Client
from nats.js.errors import NotFoundError

from servicekit.bus.delivery import Delivery
from servicekit.bus.publisher import Outgoing, PipelinedPublisher
from servicekit.bus.pull import PullLoop
from servicekit.bus.streams import ConsumerSpec, StreamSpec, ensure_stream

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
async def pulling(
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


async def publish(connection: Client, count: int, *, start: int = 0, subject: str = "work.a", size: int = 1) -> None:
    messages = [Outgoing(subject, b"%0*d" % (size, number), f"{number}") for number in range(start, start + count)]
    answers = await PipelinedPublisher(connection, timeout=20).publish(messages)
    assert all(answers)


async def state_of(connection: Client, durable: str = "reader") -> tuple[int, int]:
    """Returns how many messages are not delivered yet, and how many not acknowledged."""
    info = await connection.jetstream().consumer_info("WORK", durable)
    return info.num_pending or 0, info.num_ack_pending or 0


async def is_in(connection: Client, state: tuple[int, int]) -> bool:
    return await state_of(connection) == state


async def has_consumer(connection: Client) -> bool:
    """Waits until the new stream accepts messages: it is visible before, while the old one still accepts them."""
    try:
        return connection.is_connected and bool(await connection.jetstream().consumer_info("WORK", "reader"))
    except NotFoundError:
        return False
