"""A process with a relay and the stream to which it publishes, for the tests of losses."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import text

from postflow.bus.v1 import bus_pb2
from servicekit.bus.publisher import Outgoing
from servicekit.messaging.relay import Relay
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.outbox import OutboxRow
from testkit.broker import MemoryBroker, events_in

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
            await self.broker.publish([message_of(names[start : start + 50])])
        await self._insert(names, age=age)
        await self._execute(
            "update outbox set stream_time = :time, stream_sequence = (position - 1) / 50 + 1",
            time=(await self.broker.look()).created,
        )

    async def announce(self, relay: Relay, *names: str) -> None:
        relay.offer(await self._insert(names))

    async def _insert(self, names: Sequence[str], *, age: timedelta = timedelta(0)) -> list[OutboxRow]:
        rows = [OutboxRow(0, name, "events.s.o.n", message_of([name]).payload) for name in names]
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
        held = {sequence: names_in(message.payload) for sequence, message in self.broker.messages.items()}
        return all(name in held.get(sequence, ()) for name, sequence in rows)


def message_of(names: Sequence[str]) -> Outgoing:
    events = [bus_pb2.Event(id=name, organization_id="o") for name in names]
    return Outgoing("events.s.o.n", bus_pb2.Envelope(events=events).SerializeToString(), names[0])


def names_in(payload: bytes) -> set[str]:
    return {event.id for event in events_in(payload)}


@asynccontextmanager
async def running(*relays: Relay) -> AsyncIterator[None]:
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for relay in relays:
            group.create_task(relay.run(stop))
        try:
            yield
        finally:
            stop.set()


def is_verified(relay: Relay, broker: MemoryBroker) -> Callable[[], bool]:
    return lambda: relay._verified == broker.connections
