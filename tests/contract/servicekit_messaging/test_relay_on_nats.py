"""The relay and a consumer on real servers, through everything that a broker can lose."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from google.protobuf.duration_pb2 import Duration
from nats.aio.client import Client
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from devstack.servers.nats import EmbeddedNats
from devstack.servers.postgres import EmbeddedPostgres, Mode
from postflow.bus.v1 import bus_pb2
from servicekit.bus.publisher import PipelinedPublisher
from servicekit.bus.stream_view import StreamView
from servicekit.bus.streams import ConsumerSpec, StreamSpec, ensure_stream
from servicekit.ids import Uuid7Source
from servicekit.messaging.consumer import EventConsumer, Received, Route
from servicekit.messaging.relay import Relay
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.dead_letters import DeadLetters
from servicekit.pg.outbox import Announcement, Outbox
from testkit.databases import COMMON, migrate
from testkit.eventually import eventually

EVENTS = StreamSpec(name="EVENTS", subjects=("events.>",), work_queue=False, max_age=timedelta(hours=1))
SPEC = ConsumerSpec(
    stream="EVENTS", durable="test-events", filter_subjects=("events.>",), ack_wait=timedelta(seconds=2)
)


class Site:
    """One process: a relay, a consumer of its events, and a use case that announces."""

    def __init__(self, database: Database, connection: Client) -> None:
        self.database = database
        self.connection = connection
        self.heard: list[int] = []
        js, ids, clock = connection.jetstream(), Uuid7Source(), DatabaseClock()
        self.relay = Relay(
            database=database,
            clock=clock,
            publisher=PipelinedPublisher(connection),
            stream=StreamView(js, EVENTS),
            connections=lambda: connection.stats["reconnects"],
        )
        self._outbox = Outbox(ids, self.relay.offer)
        self._consumer = EventConsumer(
            connection=connection,
            spec=SPEC,
            routes=[Route(message=Duration, apply=self._hear)],
            database=database,
            clock=clock,
            dead_letters=DeadLetters(database, clock, ids),
            ensure_stream=lambda: ensure_stream(js, EVENTS),
            linger=timedelta(milliseconds=5),
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.relay.run(stop))
            group.create_task(self._consumer.run(stop))
            try:
                yield
            finally:
                stop.set()

    async def announce(self, numbers: Iterable[int]) -> None:
        async with self.database.transaction() as tx:
            await self._outbox.append(
                tx,
                [
                    Announcement(
                        subject=f"events.test.org{number % 3}.thing",
                        organization_id=f"org{number % 3}",
                        aggregate_id=str(number),
                        message=Duration(seconds=number),
                    )
                    for number in numbers
                ],
                now=await DatabaseClock().now(tx.connection),
            )

    async def has_heard(self, count: int) -> bool:
        """Returns whether each number has arrived once and every row is acknowledged."""
        return sorted(self.heard) == list(range(count)) and await self.open_rows() == 0

    async def open_rows(self) -> int:
        async with self.database.read() as connection:
            found = await connection.execute(text("select count(*) from outbox where stream_sequence is null"))
            return int(found.scalar_one())

    async def in_stream(self) -> list[int]:
        """Returns what a late consumer would receive."""
        js = self.connection.jetstream()
        state = (await js.stream_info("EVENTS")).state
        messages = [await js.get_msg("EVENTS", number) for number in range(1, state.last_seq + 1)]
        envelopes = [bus_pb2.Envelope.FromString(message.data or b"") for message in messages]
        return [int(event.aggregate_id) for envelope in envelopes for event in envelope.events]

    async def _hear(self, tx: Transaction, events: Sequence[Received], now: datetime) -> None:
        numbers = [int(received.event.aggregate_id) for received in events]
        tx.after_commit(lambda: self.heard.extend(numbers))


@pytest.fixture
def site(database: Database, own_connection: Client) -> Site:
    return Site(database, own_connection)


async def test_every_announced_event_arrives_once(site: Site) -> None:
    async with site.running():
        for start in range(0, 2000, 100):
            await site.announce(range(start, start + 100))
        await eventually(lambda: site.has_heard(2000))
    assert sorted(await site.in_stream()) == list(range(2000)), "and stands in the stream once"


async def test_nothing_is_lost_while_the_broker_is_down(site: Site, fresh_nats: EmbeddedNats) -> None:
    async with site.running():
        await site.announce(range(100))
        await fresh_nats.kill()
        await site.announce(range(100, 200))
        await fresh_nats.start()
        await eventually(lambda: site.has_heard(200), within=20)


async def test_a_deleted_stream_is_refilled(site: Site) -> None:
    async with site.running():
        await site.announce(range(300))
        await eventually(lambda: site.has_heard(300))
        await site.connection.jetstream().delete_stream("EVENTS")
        await site.relay.verify()
        await eventually(lambda: _stands(site, set(range(300))))
        await eventually(lambda: site.has_heard(300))  # consumers ignore repeated events


async def _stands(site: Site, numbers: set[int]) -> bool:
    return set(await site.in_stream()) == numbers


async def test_a_wiped_server_is_refilled(site: Site, fresh_nats: EmbeddedNats, tmp_path: Path) -> None:
    async with site.running():
        await site.announce(range(300))
        await eventually(lambda: site.has_heard(300))
        await fresh_nats.kill()
        shutil.rmtree(tmp_path / "nats" / "jetstream")
        await fresh_nats.start()
        await site.announce(range(300, 400))
        await eventually(lambda: site.has_heard(400), within=20)
        await eventually(lambda: _stands(site, set(range(400))))


@pytest.mark.parametrize("late", [0, 1])
async def test_a_server_restored_from_a_copy_gets_the_tail_again(
    site: Site, fresh_nats: EmbeddedNats, tmp_path: Path, late: int
) -> None:
    store, copy = tmp_path / "nats" / "jetstream", tmp_path / "copy"
    async with site.running():
        await site.announce(range(300))
        await eventually(lambda: site.has_heard(300))
        await fresh_nats.stop()
        shutil.copytree(store, copy)
        await fresh_nats.start()
        await site.announce(range(300, 600))
        await eventually(lambda: site.has_heard(600), within=20)

        await fresh_nats.stop()
        shutil.rmtree(store)
        shutil.copytree(copy, store)
        if late:  # rows that already wait when the server is back must not take the sequences of the lost ones
            await site.announce(range(600, 1000))
        await fresh_nats.start()
        if not late:
            await site.announce(range(600, 1000))
        await eventually(lambda: _heard_and_stands(site, 1000), within=20)


async def _heard_and_stands(site: Site, count: int) -> bool:
    return site.connection.is_connected and await site.has_heard(count) and await _stands(site, set(range(count)))


async def test_restarts_without_loss_publish_nothing_again(site: Site, fresh_nats: EmbeddedNats) -> None:
    async with site.running():
        await site.announce(range(300))
        await eventually(lambda: site.has_heard(300))
        for turn in range(1, 3):
            await fresh_nats.restart()
            await eventually(_has_verified(site, turn))
        await site.announce(range(300, 310))
        await eventually(lambda: site.has_heard(310))
    assert sorted(await site.in_stream()) == list(range(310))


def _has_verified(site: Site, connections: int) -> Callable[[], bool]:
    return lambda: site.relay._verified == connections


async def test_two_relays_on_one_database_publish_everything(
    database: Database, own_connection: Client, other_connection: Client, fresh_nats: EmbeddedNats
) -> None:
    one, other = Site(database, own_connection), Site(database, other_connection)
    async with one.running(), other.running():
        for start in range(0, 1000, 100):
            await one.announce(range(start, start + 50))
            await other.announce(range(start + 50, start + 100))
            if start == 500:
                await fresh_nats.kill()
                await fresh_nats.start()
        await eventually(lambda: sorted(one.heard + other.heard) == list(range(1000)), within=20)
        await eventually(lambda: _is_zero(one))


async def _is_zero(site: Site) -> bool:
    return await site.open_rows() == 0


async def test_an_unreachable_database_is_waited_for(tmp_path: Path, own_connection: Client) -> None:
    async with EmbeddedPostgres(tmp_path / "postgres", mode=Mode.FAST) as postgres:
        await migrate(postgres.url(), COMMON)
        site = Site(Database(postgres.url(), application="test"), own_connection)
        async with site.running():
            await site.announce(range(100))
            await postgres.kill()
            await eventually(lambda: bool(site.relay._trouble))
            await postgres.start()
            await _announce_when_possible(site, range(100, 200))
            await eventually(lambda: site.has_heard(200), within=20)
        await site.database.dispose()


async def _announce_when_possible(site: Site, numbers: range) -> None:
    async def announced() -> bool:
        try:
            await site.announce(numbers)
        except DBAPIError:
            return False
        return True

    await eventually(announced)
