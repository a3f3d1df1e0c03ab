"""The relay on real PostgreSQL, with a stream that can be made to lose anything."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from google.protobuf.duration_pb2 import Duration
from sqlalchemy import text

from servicekit import failpoints
from servicekit.bus.publisher import Outgoing, Stored
from servicekit.bus.stream_view import StreamLook
from servicekit.ids import Uuid7Source
from servicekit.messaging.relay import Relay
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.outbox import Announcement, Outbox
from testkit.broker import MemoryBroker
from testkit.database_clocks import ShiftedDatabaseClock
from testkit.eventually import eventually
from testkit.readers import all_readers_held

# Lets rows look as if another process had left them long ago.
OLD_NOW = ShiftedDatabaseClock(-timedelta(minutes=5))


class Announcer:
    """Announces numbers; with `left=True` like a process that died before its relay published them."""

    def __init__(self, database: Database, relay: Relay) -> None:
        self._database = database
        self._outbox = Outbox(Uuid7Source(), relay.offer)
        self._left = Outbox(Uuid7Source(), lambda rows: None)

    async def __call__(self, numbers: Iterable[int], *, left: bool = False, subject: str = "events.test.o.n") -> None:
        clock, outbox = (OLD_NOW, self._left) if left else (DatabaseClock(), self._outbox)
        async with self._database.transaction() as tx:
            await outbox.append(
                tx,
                [
                    Announcement(
                        subject=subject,
                        organization_id="o",
                        aggregate_id=str(number),
                        message=Duration(seconds=number),
                    )
                    for number in numbers
                ],
                now=await clock.now(tx.connection),
            )


@pytest.fixture
def broker() -> MemoryBroker:
    return MemoryBroker()


@pytest.fixture
def relay(database: Database, broker: MemoryBroker) -> Relay:
    return _relay(database, broker)


@pytest.fixture
def announce(database: Database, relay: Relay) -> Announcer:
    return Announcer(database, relay)


def _relay(database: Database, broker: MemoryBroker) -> Relay:
    return Relay(
        database=database,
        clock=DatabaseClock(),
        publisher=broker,
        stream=broker,
        connections=lambda: broker.connections,
    )


@asynccontextmanager
async def _running(*relays: Relay) -> AsyncIterator[None]:
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for relay in relays:
            group.create_task(relay.run(stop))
        try:
            yield
        finally:
            stop.set()


async def _is_open(database: Database, rows: int) -> bool:
    return await _open(database) == rows


async def _open(database: Database) -> int:
    async with database.read() as connection:
        count: int = (
            await connection.execute(text("select count(*) from outbox where stream_sequence is null"))
        ).scalar_one()
        return count


async def _all_marked(database: Database, of: int) -> bool:
    async with database.read() as connection:
        row = (
            await connection.execute(text("select count(*) as all, count(stream_sequence) as marked from outbox"))
        ).one()
    return bool(row.all == row.marked == of)


def _numbers(broker: MemoryBroker) -> list[int]:
    return [int(event.aggregate_id) for event in broker.events]


async def test_lists_that_hold_all_readers_hold_up_no_event(
    database: Database, relay: Relay, announce: Announcer
) -> None:
    async def are_marked() -> bool:
        async with database.statement() as connection:
            marked: int = (await connection.execute(text("select count(stream_sequence) from outbox"))).scalar_one()
            return marked == 3

    async with all_readers_held(database), _running(relay):
        await announce([1, 2])
        await announce([3], left=True)
        await eventually(are_marked)


async def test_committed_rows_are_published_once_and_marked(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer
) -> None:
    async with _running(relay):
        await announce(range(3000))
        await eventually(lambda: _all_marked(database, 3000))
    assert _numbers(broker) == list(range(3000))
    assert len(broker.messages) == 60, "fifty events share a message"


async def test_marks_name_the_stream_and_the_message(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer
) -> None:
    async with _running(relay):
        await announce(range(120))
        await eventually(lambda: _all_marked(database, 120))
    async with database.read() as connection:
        found = (await connection.execute(text("select event_id, stream_time, stream_sequence from outbox"))).all()
    for row in found:
        assert row.stream_time == (await broker.look()).created
        assert row.event_id.encode() in broker.messages[row.stream_sequence].payload


async def test_rows_of_a_dead_process_are_published_in_order(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer
) -> None:
    await announce(range(2500), left=True)
    async with _running(relay):
        await eventually(lambda: _all_marked(database, 2500))
    assert _numbers(broker) == list(range(2500))


async def test_fresh_rows_are_left_to_the_process_that_wrote_them(
    database: Database, broker: MemoryBroker, announce: Announcer
) -> None:
    await announce(range(10))  # offered to the relay of `announce`, which does not run
    async with _running(_relay(database, broker)):
        await eventually(lambda: _all_marked(database, 10))
    async with database.read() as connection:
        waited = (
            await connection.execute(text("select clock_timestamp() - create_time from outbox limit 1"))
        ).scalar_one()
    assert waited >= timedelta(seconds=2)


async def test_two_relays_on_one_database_lose_nothing(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer
) -> None:
    other = _relay(database, broker)
    await announce(range(2000), left=True)
    async with _running(relay, other):
        await announce(range(2000, 4000))
        await Announcer(database, other)(range(4000, 6000))
        await eventually(lambda: _all_marked(database, 6000))
    assert sorted(_numbers(broker)) == list(range(6000))
    assert broker.duplicates == 0, "and carry nothing twice while all is well"


async def test_a_broker_gets_everything_after_an_outage(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer
) -> None:
    broker.unreachable = True
    async with _running(relay):
        await announce(range(100))
        await announce(range(100, 200), left=True)
        await eventually(lambda: bool(relay._trouble))
        assert await _open(database) == 200
        broker.unreachable = False
        await eventually(lambda: _all_marked(database, 200))
    assert sorted(_numbers(broker)) == list(range(200))


async def test_a_refused_message_does_not_delay_the_others(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer
) -> None:
    await announce([0], left=True, subject="events.test.bad.n")
    async with database.read() as connection:
        broker.refused = {(await connection.execute(text("select event_id from outbox"))).scalar_one()}
    async with _running(relay):
        await announce(range(1, 1500), left=True)
        await eventually(lambda: len(broker.events) == 1499)
        await eventually(lambda: _is_open(database, 1))  # what the stream has is marked a moment later
        broker.refused.clear()
        await eventually(lambda: _all_marked(database, 1500))


async def test_a_wiped_stream_gets_everything_again_in_order(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer
) -> None:
    await announce(range(1500), left=True)
    async with _running(relay):
        await eventually(lambda: _all_marked(database, 1500))
        broker.wipe()
        await eventually(lambda: len(broker.events) == 1500)
        await eventually(lambda: _all_marked(database, 1500))
    assert _numbers(broker) == list(range(1500))


@pytest.mark.parametrize("kept", [11, 6, 1])
async def test_a_stream_that_lost_its_tail_gets_it_again(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer, kept: int
) -> None:
    await announce(range(600), left=True)  # twelve messages
    async with _running(relay):
        await eventually(lambda: _all_marked(database, 600))
        broker.roll_back(kept)
        await eventually(lambda: set(_numbers(broker)) == set(range(600)))
        await eventually(lambda: _all_marked(database, 600))
    assert len(broker.events) < 600 + 2 * (12 - kept) * 50, "no more than twice the tail"


async def test_a_lost_tail_is_noticed_despite_new_events(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer
) -> None:
    """New rows must not take the sequences of lost ones before the stream is compared."""
    await announce(range(600), left=True)
    async with _running(relay):
        await eventually(lambda: _all_marked(database, 600))
        broker.roll_back(8)
        await announce(range(600, 1200))
        await eventually(lambda: set(_numbers(broker)) == set(range(1200)))
        await eventually(lambda: _all_marked(database, 1200))


class RollsBackDuring(MemoryBroker):
    """Loses its tail on a connection that stays, after another server of the cluster became the leader."""

    def __init__(self) -> None:
        super().__init__()
        self.armed = False

    async def publish(self, messages: Sequence[Outgoing]) -> list[Stored | None]:
        if self.armed:
            self.armed = False
            connections = self.connections
            self.roll_back(5)
            self.connections = connections
        return await super().publish(messages)


async def test_a_tail_lost_on_a_live_connection_is_found_by_sequences(database: Database) -> None:
    broker = RollsBackDuring()
    relay = _relay(database, broker)
    announce = Announcer(database, relay)
    await announce(range(600), left=True)
    async with _running(relay):
        await eventually(lambda: _all_marked(database, 600))
        broker.armed = True
        await announce(range(600, 700))
        await eventually(lambda: set(_numbers(broker)) == set(range(700)))
        await eventually(lambda: _all_marked(database, 700))


async def test_nothing_is_published_again_when_nothing_was_lost(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer
) -> None:
    await announce(range(500), left=True)
    async with _running(relay):
        await eventually(lambda: _all_marked(database, 500))
        for _ in range(3):
            broker.connections += 1
            await eventually(lambda: relay._verified == broker.connections)
    await relay.verify()
    assert await _open(database) == 0
    assert len(broker.events) == 500


async def test_a_row_with_the_sequence_of_another_message_is_noticed(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer
) -> None:
    """Another process marks a lost row late, with a sequence that was reused meanwhile."""
    await announce(range(100), left=True)
    async with _running(relay):
        await eventually(lambda: _all_marked(database, 100))
        async with database.statement() as connection:
            await connection.execute(
                text("update outbox set stream_sequence = 2 where position = (select min(position) from outbox)")
            )
        broker.roll_back(2)
        await eventually(lambda: len(broker.events) > 100)
        await eventually(lambda: _all_marked(database, 100))
    assert set(_numbers(broker)) == set(range(100))


async def test_a_foreign_message_under_one_of_our_sequences_is_noticed(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer
) -> None:
    await announce(range(100), left=True)
    async with _running(relay):
        await eventually(lambda: _all_marked(database, 100))
        broker.roll_back(1)
        broker.take_over(2, b"\xff\xff")
        await eventually(lambda: len(broker.messages) > 2)
        await eventually(lambda: _all_marked(database, 100))
    del broker.messages[2]
    assert set(_numbers(broker)) == set(range(100))


async def test_trouble_and_its_end_are_logged_once(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "servicekit.messaging.relay")
    await announce(range(10), left=True)
    async with database.read() as connection:
        broker.refused = {each for (each,) in await connection.execute(text("select event_id from outbox"))}
    async with _running(relay):
        await eventually(lambda: broker.refusals >= 4)
        broker.refused.clear()
        await eventually(lambda: _all_marked(database, 10))
        await eventually(lambda: not relay._trouble)
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


async def test_a_relay_that_starts_on_a_wiped_stream_notices(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer
) -> None:
    await announce(range(100), left=True)
    async with _running(relay):
        await eventually(lambda: _all_marked(database, 100))
    broker.wipe()
    async with _running(_relay(database, broker)):
        await eventually(lambda: len(broker.events) == 100)


@pytest.fixture
def dies_before_it_marks() -> Iterator[None]:
    failpoints.install("relay.published=raise", "development")
    yield
    failpoints.install("", "development")


@pytest.mark.usefixtures("dies_before_it_marks")
async def test_unmarked_rows_are_published_again_under_the_same_id(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer
) -> None:
    await announce(range(100), left=True)
    with pytest.raises(ExceptionGroup) as caught:
        async with _running(relay):
            await eventually(lambda: False)
    assert caught.group_contains(failpoints.FailpointHit)
    assert await _open(database) == 100

    failpoints.install("", "development")
    async with _running(_relay(database, broker)):
        await eventually(lambda: _all_marked(database, 100))
    assert _numbers(broker) == list(range(100)), "the stream took the second copy for what it is"


async def test_flush_publishes_what_is_left_when_a_process_ends(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer
) -> None:
    await announce(range(1500))
    await relay.flush()
    assert await _all_marked(database, 1500)


async def test_flush_gives_up_when_the_broker_is_unreachable(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer
) -> None:
    broker.unreachable = True
    await announce(range(10))
    await relay.flush()
    assert await _open(database) == 10


async def test_memory_is_bounded_and_the_rest_is_swept(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer
) -> None:
    for start in range(0, 24_000, 4000):
        await announce(range(start, start + 4000))
    assert len(relay._offered) == 20_000
    async with _running(relay):
        await eventually(lambda: _all_marked(database, 24_000))
    assert sorted(_numbers(broker)) == list(range(24_000))


async def test_an_unexpected_error_ends_the_relay(database: Database, announce: Announcer) -> None:
    class Broken(MemoryBroker):
        async def look(self) -> StreamLook:
            raise KeyError("a mistake")

    with pytest.raises(ExceptionGroup) as caught:
        async with _running(_relay(database, Broken())):
            await eventually(lambda: False)
    assert caught.group_contains(KeyError)
