"""The relay compares the stream with its marks, and publishes again what the stream has lost."""

from collections.abc import Sequence

import pytest
from sqlalchemy import text

from servicekit.bus.publisher import Outgoing, Stored
from servicekit.messaging.eras import Eras
from servicekit.messaging.relay import Relay
from servicekit.pg.database import Database
from testkit.broker import MemoryBroker
from testkit.eventually import eventually
from tests.usecase.servicekit_messaging.relays import (
    Announcer,
    WeighingBroker,
    all_marked,
    count_open,
    numbers_in,
    relay_of,
)
from tests.usecase.servicekit_messaging.sites import running


async def test_a_wiped_stream_gets_everything_again_in_order(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer
) -> None:
    await announce(range(1500), left=True)
    async with running(relay):
        await eventually(lambda: all_marked(database, 1500))
        broker.wipe()
        await eventually(lambda: len(broker.events) == 1500)
        await eventually(lambda: all_marked(database, 1500))
    assert numbers_in(broker) == list(range(1500))


async def test_a_wiped_stream_gets_rows_of_many_events_again(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer
) -> None:
    await announce.together(range(600), left=True)
    await announce(range(600, 620), left=True)
    async with running(relay):
        await eventually(lambda: all_marked(database, 32))
        broker.wipe()
        await eventually(lambda: len(broker.events) == 620)
        await eventually(lambda: all_marked(database, 32))
    assert numbers_in(broker) == list(range(620))


async def test_a_page_of_lost_rows_is_counted_in_events(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer
) -> None:
    """Consumers get a bounded number of old events a second: a page must not hold fifty times as many."""
    await announce.together(range(500), left=True)
    async with running(relay):
        await eventually(lambda: all_marked(database, 10))
    broker.wipe()
    eras = Eras(database)
    current = await eras.compare(broker)
    pages = []
    while unhealed := await eras.unhealed():
        page = await eras.lost(unhealed, 120)
        pages.append(sum(row.events for row in page.rows))
        await eras.republished(page, current, [(row.position, len(pages)) for row in page.rows])
    assert pages == [150, 150, 150, 50]


async def test_large_rows_that_were_lost_are_read_a_few_at_a_time(
    database: Database, relay: Relay, broker: MemoryBroker, announce: Announcer
) -> None:
    await announce.large(range(9))
    async with running(relay):
        await eventually(lambda: all_marked(database, 9))
    after = WeighingBroker()
    async with running(relay_of(database, after)):
        await eventually(lambda: len(after.events) == 9)
        await eventually(lambda: all_marked(database, 9))
    assert numbers_in(after) == list(range(9))
    assert max(after.weights) < 2_500_000


@pytest.mark.parametrize("kept", [11, 6, 1])
async def test_a_stream_that_lost_its_tail_gets_it_again(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer, kept: int
) -> None:
    await announce(range(600), left=True)  # twelve messages
    async with running(relay):
        await eventually(lambda: all_marked(database, 600))
        broker.roll_back(kept)
        await eventually(lambda: set(numbers_in(broker)) == set(range(600)))
        await eventually(lambda: all_marked(database, 600))
    assert len(broker.events) < 600 + 2 * (12 - kept) * 50, "no more than twice the tail"


async def test_a_lost_tail_is_noticed_despite_new_events(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer
) -> None:
    """New rows must not take the sequences of lost ones before the stream is compared."""
    await announce(range(600), left=True)
    async with running(relay):
        await eventually(lambda: all_marked(database, 600))
        broker.roll_back(8)
        await announce(range(600, 1200))
        await eventually(lambda: set(numbers_in(broker)) == set(range(1200)))
        await eventually(lambda: all_marked(database, 1200))


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
    relay = relay_of(database, broker)
    announce = Announcer(database, relay)
    await announce(range(600), left=True)
    async with running(relay):
        await eventually(lambda: all_marked(database, 600))
        broker.armed = True
        await announce(range(600, 700))
        await eventually(lambda: set(numbers_in(broker)) == set(range(700)))
        await eventually(lambda: all_marked(database, 700))


async def test_nothing_is_published_again_when_nothing_was_lost(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer
) -> None:
    await announce(range(500), left=True)
    async with running(relay):
        await eventually(lambda: all_marked(database, 500))
        for _ in range(3):
            broker.connections += 1
            await eventually(lambda: relay._verified == broker.connections)
    await relay.verify()
    assert await count_open(database) == 0
    assert len(broker.events) == 500


async def test_a_row_with_the_sequence_of_another_message_is_noticed(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer
) -> None:
    """Another process marks a lost row late, with a sequence that was reused meanwhile."""
    await announce(range(100), left=True)
    async with running(relay):
        await eventually(lambda: all_marked(database, 100))
        async with database.statement() as connection:
            await connection.execute(
                text("update outbox set stream_sequence = 2 where position = (select min(position) from outbox)")
            )
        broker.roll_back(2)
        await eventually(lambda: len(broker.events) > 100)
        await eventually(lambda: all_marked(database, 100))
    assert set(numbers_in(broker)) == set(range(100))


async def test_a_foreign_message_under_one_of_our_sequences_is_noticed(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer
) -> None:
    await announce(range(100), left=True)
    async with running(relay):
        await eventually(lambda: all_marked(database, 100))
        broker.roll_back(1)
        broker.take_over(2, b"\xff\xff")
        await eventually(lambda: len(broker.messages) > 2)
        await eventually(lambda: all_marked(database, 100))
    del broker.messages[2]
    assert set(numbers_in(broker)) == set(range(100))


async def test_a_relay_that_starts_on_a_wiped_stream_notices(
    database: Database, broker: MemoryBroker, relay: Relay, announce: Announcer
) -> None:
    await announce(range(100), left=True)
    async with running(relay):
        await eventually(lambda: all_marked(database, 100))
    broker.wipe()
    async with running(relay_of(database, broker)):
        await eventually(lambda: len(broker.events) == 100)
