"""A relay with a stream in memory, and announcements that are numbers."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta

from google.protobuf.duration_pb2 import Duration
from google.protobuf.wrappers_pb2 import BytesValue
from sqlalchemy import text

from servicekit.bus.publisher import Outgoing, Stored
from servicekit.ids import Uuid7Source
from servicekit.messaging.relay import Relay
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.outbox import Announcement, Outbox
from testkit.broker import MemoryBroker
from testkit.database_clocks import ShiftedDatabaseClock

OLD_NOW = ShiftedDatabaseClock(-timedelta(minutes=5))
_LARGE = BytesValue(value=b"x" * 400_000)


class Announcer:
    """Announces numbers, each in a row of its own, as transactions of one event leave them.

    With `left=True` like a process that died before its relay published them.
    """

    def __init__(self, database: Database, relay: Relay) -> None:
        self._database = database
        self._outbox = Outbox(Uuid7Source(), relay.offer)
        self._left = Outbox(Uuid7Source(), lambda rows: None)

    async def __call__(self, numbers: Iterable[int], *, left: bool = False, subject: str = "events.test.o.n") -> None:
        clock, outbox = (OLD_NOW, self._left) if left else (DatabaseClock(), self._outbox)
        async with self._database.transaction() as tx:
            now = await clock.now(tx.connection)
            rows = [row for number in numbers for row in outbox.packed([_announcement(number, subject)], now=now)]
            await outbox.store(tx, rows, now=now)

    async def together(self, numbers: Iterable[int], *, left: bool = False) -> None:
        """Announces numbers of one transaction, which share rows."""
        clock, outbox = (OLD_NOW, self._left) if left else (DatabaseClock(), self._outbox)
        async with self._database.transaction() as tx:
            announcements = [_announcement(number, "events.test.o.n") for number in numbers]
            await outbox.append(tx, announcements, now=await clock.now(tx.connection))

    async def large(self, numbers: Iterable[int]) -> None:
        """Announces numbers in events of 400 KB, like a process that died before its relay published them."""
        async with self._database.transaction() as tx:
            announcements = [replace(_announcement(each, "events.test.o.n"), message=_LARGE) for each in numbers]
            await self._left.append(tx, announcements, now=await OLD_NOW.now(tx.connection))


def _announcement(number: int, subject: str) -> Announcement:
    return Announcement(
        subject=subject, organization_id="o", aggregate_id=str(number), message=Duration(seconds=number)
    )


class WeighingBroker(MemoryBroker):
    """Notes how many bytes it is given at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.weights: list[int] = []

    async def publish(self, messages: Sequence[Outgoing]) -> list[Stored | None]:
        self.weights.append(sum(len(message.payload) for message in messages))
        return await super().publish(messages)


def relay_of(database: Database, broker: MemoryBroker) -> Relay:
    return Relay(
        database=database,
        clock=DatabaseClock(),
        publisher=broker,
        stream=broker,
        connections=lambda: broker.connections,
    )


async def is_open(database: Database, rows: int) -> bool:
    return await count_open(database) == rows


async def count_open(database: Database) -> int:
    async with database.read() as connection:
        count: int = (
            await connection.execute(text("select count(*) from outbox where stream_sequence is null"))
        ).scalar_one()
        return count


async def all_marked(database: Database, of: int) -> bool:
    async with database.read() as connection:
        row = (
            await connection.execute(text("select count(*) as all, count(stream_sequence) as marked from outbox"))
        ).one()
    return bool(row.all == row.marked == of)


def numbers_in(broker: MemoryBroker) -> list[int]:
    return [int(event.aggregate_id) for event in broker.events]
