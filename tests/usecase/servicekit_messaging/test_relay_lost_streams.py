"""The relay after a loss: lost events are published again page by page, and new ones do not wait for them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text

from postflow.bus.v1 import bus_pb2
from servicekit.bus.publisher import Outgoing, Stored
from servicekit.bus.stream_view import StreamLook
from servicekit.messaging.eras import EraOver, Eras
from servicekit.messaging.relay import Relay
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.housekeeping import Housekeeping, Retention
from servicekit.pg.outbox import OutboxRow
from testkit.broker import MemoryBroker, events_in
from testkit.clocks import START
from testkit.eventually import eventually

AT_ONCE = 1_000_000
SLOWLY = 1
"""Events a second: one page, and then a long pause."""

PAGE = 1000


@dataclass(frozen=True, slots=True)
class Site:
    """One process and the stream to which it publishes."""

    database: Database
    broker: MemoryBroker

    def relay(self, *, rate: int = AT_ONCE, broker: MemoryBroker | None = None) -> Relay:
        broker = broker or self.broker
        return Relay(
            database=self.database,
            clock=DatabaseClock(),
            publisher=broker,
            stream=broker,
            connections=lambda: broker.connections,
            republish_rate=rate,
        )

    async def acknowledged(self, count: int, *, age: timedelta = timedelta(0)) -> None:
        """Stores events that the stream has, fifty in a message, with rows as an older release left them."""
        names = [f"e{number}" for number in range(count)]
        for start in range(0, count, 50):
            await self.broker.publish([_message(names[start : start + 50])])
        await self._insert(names, age=age)
        await self._execute(
            "update outbox set stream_time = :time, stream_sequence = (position - 1) / 50 + 1",
            time=(await self.broker.look()).created,
        )

    async def announce(self, relay: Relay, *names: str) -> None:
        relay.offer(await self._insert(names))

    async def _insert(self, names: Sequence[str], *, age: timedelta = timedelta(0)) -> list[OutboxRow]:
        rows = [OutboxRow(0, name, "events.s.o.n", _message([name]).payload) for name in names]
        async with self.database.statement() as connection:
            for start in range(0, len(rows), 10_000):
                batch = rows[start : start + 10_000]
                await connection.execute(
                    text("""
                        insert into outbox (event_id, subject, payload, create_time)
                        select id, 'events.s.o.n', payload, clock_timestamp() - cast(:age as interval)
                        from unnest(cast(:ids as text[]), cast(:payloads as bytea[])) as row (id, payload)
                    """),
                    {"ids": [row.event_id for row in batch], "payloads": [row.payload for row in batch], "age": age},
                )
        found = await self._rows(
            "select position, event_id, subject, payload from outbox where event_id = any(:names)", names=names[:PAGE]
        )
        return [OutboxRow(*row) for row in found]

    async def _execute(self, statement: str, **parameters: object) -> None:
        async with self.database.statement() as connection:
            await connection.execute(text(statement), parameters)

    async def _rows(self, statement: str, **parameters: object) -> list[Any]:
        async with self.database.statement() as connection:
            return list(await connection.execute(text(statement), parameters))

    async def one(self, statement: str) -> int:
        ((value,),) = await self._rows(statement)
        return int(value)

    async def is_marked(self, name: str) -> bool:
        ((sequence,),) = await self._rows("select stream_sequence from outbox where event_id = :name", name=name)
        return sequence is not None

    async def is_healed(self) -> bool:
        """Asserts that each row names a valid era and a message that holds its event."""
        if await self.one("select count(*) from outbox_era where healed is not null"):
            return False
        rows = await self._rows("""
            select event_id, stream_sequence from outbox join outbox_era on era_time = stream_time
            where stream_sequence <= coalesce(kept, stream_sequence)
        """)
        if len(rows) < await self.one("select count(*) from outbox"):
            return False
        held = {sequence: _names(message.payload) for sequence, message in self.broker.messages.items()}
        return all(name in held.get(sequence, ()) for name, sequence in rows)


def _message(names: Sequence[str]) -> Outgoing:
    events = [bus_pb2.Event(id=name, organization_id="o") for name in names]
    return Outgoing("events.s.o.n", bus_pb2.Envelope(events=events).SerializeToString(), names[0])


def _names(payload: bytes) -> set[str]:
    return {event.id for event in events_in(payload)}


@pytest.fixture
def site(database: Database) -> Site:
    return Site(database, MemoryBroker())


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


def _is_verified(relay: Relay, broker: MemoryBroker) -> Callable[[], bool]:
    return lambda: relay._verified == broker.connections


async def test_new_events_are_published_despite_very_many_lost_ones(database_url: str) -> None:
    """Gives each statement a seventh of a second: none may take time in proportion to the loss."""
    database = Database(database_url, application="test", statement_timeout=timedelta(milliseconds=150))
    patient = Site(Database(database_url, application="test"), MemoryBroker())
    site = Site(database, patient.broker)
    await patient.acknowledged(60_000)
    site.broker.wipe()
    relay = site.relay(rate=SLOWLY)
    async with _running(relay):
        await site.announce(relay, "new")
        await eventually(lambda: site.is_marked("new"))
        assert len(site.broker.events) <= PAGE + 1, "and nobody waited for the others"
    async with _running(site.relay()):
        await eventually(patient.is_healed, within=60)
    assert len(site.broker.events) == 60_001
    for each in (database, patient.database):
        await each.dispose()


async def test_lost_events_come_back_while_new_events_never_pause(site: Site) -> None:
    class Busy(MemoryBroker):
        """Announces another event each time that something is published."""

        number = 0

        async def publish(self, messages: Sequence[Outgoing]) -> list[Stored | None]:
            self.number += 1
            await site.announce(relay, f"new {self.number}")
            return await super().publish(messages)

    await site.acknowledged(2000)
    await site._insert(["left"], age=timedelta(minutes=1))
    busy = Busy()
    busy.connections = 1
    relay = site.relay(broker=busy)
    async with _running(relay):
        await site.announce(relay, "new")
        await eventually(lambda: {"left", "e1999"} <= {event.id for event in busy.events})


async def test_another_process_continues_after_the_death_of_one(site: Site) -> None:
    await site.acknowledged(5000)
    site.broker.wipe()
    dying = site.relay(rate=SLOWLY)
    task = asyncio.create_task(dying.run(asyncio.Event()))  # noqa: TID251 - it is killed
    await eventually(lambda: len(site.broker.events) == PAGE)
    task.cancel()
    await asyncio.wait((task,))
    async with _running(site.relay()):
        await eventually(site.is_healed)
    assert len(site.broker.events) == 5000, "none twice"


async def test_several_processes_publish_lost_events_once(site: Site) -> None:
    await site.acknowledged(10_000)
    site.broker.wipe()
    async with _running(site.relay(), site.relay(), site.relay()):
        await eventually(site.is_healed)
    assert (len(site.broker.events), site.broker.duplicates) == (10_000, 0)


async def test_a_stream_that_is_lost_again_meanwhile_gets_everything(site: Site) -> None:
    await site.acknowledged(5000)
    site.broker.wipe()
    relay = site.relay(rate=SLOWLY)
    async with _running(relay):
        await site.announce(relay, "new")
        await eventually(lambda: site.is_marked("new"))
        await eventually(lambda: len(site.broker.events) == PAGE + 1)
    site.broker.wipe()
    async with _running(site.relay()):
        await eventually(site.is_healed)
    assert len(site.broker.events) == 5001


@pytest.mark.parametrize("deeper", [10, 60, 69, 75])
async def test_a_tail_that_is_lost_again_while_it_is_published_comes_back(site: Site, deeper: int) -> None:
    """Loses messages 71 to 100 and, when some are back, all above `deeper`."""
    await site.acknowledged(5000)
    site.broker.roll_back(70)
    relay = site.relay(rate=SLOWLY)
    async with _running(relay):
        await site.announce(relay, "new")
        await eventually(lambda: site.is_marked("new"))
        await eventually(lambda: len(site.broker.events) == 70 * 50 + PAGE + 1)
    site.broker.roll_back(deeper)
    async with _running(site.relay()):
        await eventually(site.is_healed)
    assert {event.id for event in site.broker.events} == {"new", *(f"e{number}" for number in range(5000))}


async def test_comparing_again_does_not_start_over(site: Site) -> None:
    """Lets new events have the sequences of lost ones: neither passes for the other."""
    await site.acknowledged(5000)
    site.broker.roll_back(20)
    relay = site.relay(rate=SLOWLY)
    async with _running(relay):
        for turn in range(3):
            site.broker.connections += 1
            await eventually(_is_verified(relay, site.broker))
            await site.announce(relay, *(f"new {turn} {number}" for number in range(60)))
            await eventually(lambda: site.is_marked(f"new {turn} 59"))  # noqa: B023 - awaited at once
    assert await site.one("select count(*) from outbox_era") == 2
    async with _running(site.relay()):
        await eventually(site.is_healed)
    assert len(site.broker.events) == 5180, "each once"


async def test_a_refused_row_does_not_delay_later_ones(site: Site) -> None:
    await site.acknowledged(3000)
    site.broker.wipe()
    site.broker.refused = {"e10"}
    async with _running(site.relay()):
        await eventually(lambda: len(site.broker.events) >= 2950)
        site.broker.refused = set()
        await eventually(site.is_healed)
    assert len(site.broker.events) == 3000


async def test_a_row_that_is_always_refused_delays_no_lost_ones(site: Site) -> None:
    await site.acknowledged(3000)
    await site._insert(["refused"], age=timedelta(minutes=1))
    site.broker.refused = {"refused"}
    site.broker.wipe()
    relay = site.relay()
    async with _running(relay):
        await eventually(lambda: len(site.broker.events) == 3000)
    assert site.broker.refusals
    assert not relay._trouble


async def test_no_transaction_is_open_during_calls_of_the_stream(site: Site) -> None:
    class Curious(MemoryBroker):
        idle = 0

        async def publish(self, messages: Sequence[Outgoing]) -> list[Stored | None]:
            self.idle += await site.one(
                "select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in%'"
            )
            return await super().publish(messages)

    curious = Curious()
    everything = Site(site.database, curious)
    await everything.acknowledged(2000)
    curious.wipe()
    await everything._insert(["left"], age=timedelta(minutes=1))
    relay = everything.relay()
    async with _running(relay):
        await everything.announce(relay, "new")
        await eventually(everything.is_healed)
    assert curious.idle == 0


async def test_lost_rows_are_deleted_only_after_they_are_published_again(site: Site) -> None:
    await site.acknowledged(2500, age=timedelta(hours=23))
    housekeeping = Housekeeping(site.database, DatabaseClock(), Retention(outbox=timedelta(hours=1)))
    site.broker.wipe()
    relay = site.relay(rate=SLOWLY)
    async with _running(relay):
        await eventually(lambda: len(site.broker.events) == PAGE)
        await eventually(lambda: _left(site, 2500 - PAGE, housekeeping))
    async with _running(site.relay()):
        await eventually(site.is_healed)
    assert len(site.broker.events) == 2500
    assert await _left(site, 0, housekeeping)


async def _left(site: Site, count: int, housekeeping: Housekeeping) -> bool:
    await housekeeping.step()
    return await site.one("select count(*) from outbox") in range(count, count + 50)


class Rounds(MemoryBroker):
    """The view of a release whose client rounds times differently."""

    def __init__(self, broker: MemoryBroker, by: timedelta) -> None:
        super().__init__()
        self._broker = broker
        self._by = by

    async def publish(self, messages: Sequence[Outgoing]) -> list[Stored | None]:
        return await self._broker.publish(messages)

    async def payload(self, sequence: int) -> bytes | None:
        return await self._broker.payload(sequence)

    async def look(self) -> StreamLook:
        seen = await self._broker.look()
        return StreamLook(seen.created + self._by, seen.first_sequence)


@pytest.mark.parametrize("by", [timedelta(microseconds=-500), timedelta(microseconds=1)])
async def test_releases_that_round_times_differently_agree_about_the_stream(site: Site, by: timedelta) -> None:
    await site.acknowledged(200)
    other = site.relay(broker=Rounds(site.broker, by))
    relay = site.relay()
    async with _running(other, relay):
        for turn in range(3):
            await site.announce(relay, f"one {turn}")
            await site.announce(other, f"other {turn}")
            await eventually(lambda: site.is_marked(f"one {turn}"))  # noqa: B023 - awaited at once
            await eventually(lambda: site.is_marked(f"other {turn}"))  # noqa: B023 - awaited at once
            await relay.verify()
            await other.verify()
    assert await site.is_healed()
    assert len(site.broker.events) == 206


async def test_marks_of_an_unrecorded_stream_are_followed_up(site: Site) -> None:
    """Has marks of two streams, left by an older release that stopped midway."""
    await site.acknowledged(3000)
    earlier = START - timedelta(days=1)
    await site._execute("update outbox set stream_time = :earlier where position > 1000", earlier=earlier)
    async with _running(site.relay()):
        await eventually(lambda: len(site.broker.events) == 5000)
        await eventually(site.is_healed)


async def test_a_mark_that_comes_too_late_is_refused(site: Site) -> None:
    """Pauses its process while the stream is lost and another process notices it."""
    await site.acknowledged(100)
    slow, relay = site.relay(), site.relay()
    await slow.verify()
    era = slow._era
    assert era
    (row,) = await site._insert(["late"])
    site.broker.wipe()
    await relay.verify()
    with pytest.raises(EraOver):
        await slow._eras.mark(era, [(row.position, 3)])
    assert not await site.is_marked("late")
    async with _running(slow):
        await site.announce(slow, "new")
        await eventually(site.is_healed)
    assert len(site.broker.events) == 102


async def test_a_page_that_another_process_has_marked_meanwhile_is_left_alone(site: Site) -> None:
    """Pauses a process until its turn has ended."""
    await site.acknowledged(2000)
    site.broker.wipe()
    slow, other = Eras(site.database), Eras(site.database)
    current = await slow.compare(site.broker)
    for stored in (101, 102):
        unhealed = await slow.unhealed()
        assert unhealed
        page = await slow.lost(unhealed, PAGE)
        await other.republished(page, current, [(row.position, stored) for row in page.rows])
        with pytest.raises(EraOver):
            await slow.republished(page, current, [(row.position, 999) for row in page.rows])
    assert await site.one("select count(*) from outbox where stream_sequence = 999") == 0


async def test_a_page_is_not_marked_when_the_stream_was_lost_again_meanwhile(site: Site) -> None:
    await site.acknowledged(2000)
    site.broker.wipe()
    slow, other = Eras(site.database), Eras(site.database)
    current = await slow.compare(site.broker)
    unhealed = await slow.unhealed()
    assert unhealed
    page = await slow.lost(unhealed, PAGE)
    site.broker.wipe()
    await other.compare(site.broker)
    with pytest.raises(EraOver):
        await slow.republished(page, current, [(row.position, 999) for row in page.rows])
    assert await site.one("select count(*) from outbox where stream_sequence = 999") == 0


async def test_messages_discarded_by_a_limit_are_not_lost(site: Site) -> None:
    await site.acknowledged(500)
    for number in range(20):
        await site.broker.publish([_message([f"of another service {number}"])])
    site.broker.discard(below=11)
    await site.relay().verify()
    assert await site.one("select count(*) from outbox_era where kept is not null") == 0


async def test_an_era_is_deleted_when_its_rows_are_gone(site: Site) -> None:
    await site.acknowledged(100)
    for _ in range(3):
        site.broker.wipe()
        async with _running(site.relay()):
            await eventually(site.is_healed)
        await site._execute("update outbox_era set close_time = close_time - interval '3 days'")
    assert await site.one("select count(*) from outbox_era") == 2


async def test_marks_name_the_time_of_their_stream_before_a_loss(site: Site) -> None:
    """Checks the form that a release before eras writes and reads."""
    relay = site.relay()
    async with _running(relay):
        await site.announce(relay, "new")
        await eventually(lambda: site.is_marked("new"))
    assert await site._rows("select stream_time from outbox") == [(START,)]
