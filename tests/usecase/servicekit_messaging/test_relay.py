"""The relay on real PostgreSQL, with a stream in memory: what is published, when and how often."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import text

from servicekit import failpoints
from servicekit.bus.stream_view import StreamLook
from servicekit.messaging.relay import Relay
from servicekit.pg.database import Database
from testkit.broker import MemoryBroker
from testkit.eventually import eventually
from testkit.readers import all_readers_held
from tests.usecase.servicekit_messaging.relays import (
    Announcer,
    WeighingBroker,
    all_marked,
    count_open,
    is_open,
    numbers_in,
    relay_of,
)
from tests.usecase.servicekit_messaging.sites import running


async def test_lists_that_hold_all_readers_hold_up_no_event(
    database: Database, relay: Relay, announce: Announcer
) -> None:
    async def are_marked() -> bool:
        async with database.statement() as connection:
            marked: int = (await connection.execute(text("select count(stream_sequence) from outbox"))).scalar_one()
            return marked == 3

    async with all_readers_held(database), running(relay):
        await announce([1, 2])
        await announce([3], left=True)
        await eventually(are_marked)


async def test_committed_rows_are_published_once_and_marked(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer
) -> None:
    async with running(relay):
        await announce(range(3000))
        await eventually(lambda: all_marked(database, 3000))
    assert numbers_in(broker) == list(range(3000))
    assert len(broker.messages) == 60, "fifty events share a message"


async def test_marks_name_the_stream_and_the_message(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer
) -> None:
    async with running(relay):
        await announce(range(120))
        await eventually(lambda: all_marked(database, 120))
    async with database.read() as connection:
        found = (await connection.execute(text("select event_id, stream_time, stream_sequence from outbox"))).all()
    for row in found:
        assert row.stream_time == (await broker.look()).created
        assert row.event_id.encode() in broker.messages[row.stream_sequence].payload


async def test_rows_of_a_dead_process_are_published_in_order(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer
) -> None:
    await announce(range(2500), left=True)
    async with running(relay):
        await eventually(lambda: all_marked(database, 2500))
    assert numbers_in(broker) == list(range(2500))


@pytest.mark.parametrize("left", [False, True])
async def test_rows_of_many_events_are_published_and_marked(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer, left: bool
) -> None:
    await announce.together(range(120), left=left)
    await announce([120], left=left)
    async with running(relay):
        await eventually(lambda: all_marked(database, 4))
    assert numbers_in(broker) == list(range(121))
    assert len(broker.messages) == 3, "the last row shares the third message"


async def test_large_rows_of_a_dead_process_are_read_a_few_at_a_time(database: Database, announce: Announcer) -> None:
    broker = WeighingBroker()
    await announce.large(range(9))
    async with running(relay_of(database, broker)):
        await eventually(lambda: all_marked(database, 9))
    assert numbers_in(broker) == list(range(9))
    assert max(broker.weights) < 2_500_000


async def test_fresh_rows_are_left_to_the_process_that_wrote_them(
    database: Database, broker: MemoryBroker, announce: Announcer
) -> None:
    await announce(range(10))  # offered to the relay of `announce`, which does not run
    async with running(relay_of(database, broker)):
        await eventually(lambda: all_marked(database, 10))
    async with database.read() as connection:
        waited = (
            await connection.execute(text("select clock_timestamp() - create_time from outbox limit 1"))
        ).scalar_one()
    assert waited >= timedelta(seconds=2)


async def test_two_relays_on_one_database_lose_nothing(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer
) -> None:
    other = relay_of(database, broker)
    await announce(range(2000), left=True)
    async with running(relay, other):
        await announce(range(2000, 4000))
        await Announcer(database, other)(range(4000, 6000))
        await eventually(lambda: all_marked(database, 6000))
    assert sorted(numbers_in(broker)) == list(range(6000))
    assert broker.duplicates == 0, "and carry nothing twice while all is well"


async def test_a_broker_gets_everything_after_an_outage(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer
) -> None:
    broker.unreachable = True
    async with running(relay):
        await announce(range(100))
        await announce(range(100, 200), left=True)
        await eventually(lambda: bool(relay._trouble))
        assert await count_open(database) == 200
        broker.unreachable = False
        await eventually(lambda: all_marked(database, 200))
    assert sorted(numbers_in(broker)) == list(range(200))


async def test_a_refused_message_does_not_delay_the_others(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer
) -> None:
    await announce([0], left=True, subject="events.test.bad.n")
    async with database.read() as connection:
        broker.refused = {(await connection.execute(text("select event_id from outbox"))).scalar_one()}
    async with running(relay):
        await announce(range(1, 1500), left=True)
        await eventually(lambda: len(broker.events) == 1499)
        await eventually(lambda: is_open(database, 1))  # what the stream has is marked a moment later
        broker.refused.clear()
        await eventually(lambda: all_marked(database, 1500))


async def test_trouble_and_its_end_are_logged_once(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "servicekit.messaging.relay")
    await announce(range(10), left=True)
    async with database.read() as connection:
        broker.refused = {each for (each,) in await connection.execute(text("select event_id from outbox"))}
    async with running(relay):
        await eventually(lambda: broker.refusals >= 4)
        broker.refused.clear()
        await eventually(lambda: all_marked(database, 10))
        await eventually(lambda: not relay._trouble)
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


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
        async with running(relay):
            await eventually(lambda: False)
    assert caught.group_contains(failpoints.FailpointHit)
    assert await count_open(database) == 100

    failpoints.install("", "development")
    async with running(relay_of(database, broker)):
        await eventually(lambda: all_marked(database, 100))
    assert numbers_in(broker) == list(range(100)), "the stream took the second copy for what it is"


async def test_flush_publishes_what_is_left_when_a_process_ends(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer
) -> None:
    await announce(range(1500))
    await relay.flush()
    assert await all_marked(database, 1500)


async def test_flush_gives_up_when_the_broker_is_unreachable(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer
) -> None:
    broker.unreachable = True
    await announce(range(10))
    await relay.flush()
    assert await count_open(database) == 10


async def test_memory_is_bounded_and_the_rest_is_swept(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer
) -> None:
    for start in range(0, 24_000, 4000):
        await (announce if start else announce.together)(range(start, start + 4000))
    assert sum(row.events for row in relay._offered) == 20_000
    async with running(relay):
        await eventually(lambda: all_marked(database, 20_080))
    assert sorted(numbers_in(broker)) == list(range(24_000))


async def test_an_unexpected_error_ends_the_relay(database: Database, announce: Announcer) -> None:
    class Broken(MemoryBroker):
        async def look(self) -> StreamLook:
            raise KeyError("a mistake")

    with pytest.raises(ExceptionGroup) as caught:
        async with running(relay_of(database, Broken())):
            await eventually(lambda: False)
    assert caught.group_contains(KeyError)
