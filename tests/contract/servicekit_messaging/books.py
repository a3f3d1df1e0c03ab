"""A consumer that writes numbers into a book, for the tests of consumers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from nats.aio.client import Client
from nats.js.errors import NotFoundError
from sqlalchemy import text

from postflow.bus.v1 import bus_pb2
from servicekit.bus.publisher import Outgoing, PipelinedPublisher
from servicekit.bus.streams import ConsumerSpec, StreamSpec, ensure_stream
from servicekit.faults import InvalidRequest
from servicekit.ids import Uuid7Source
from servicekit.messaging.consumer import EventConsumer, Received, Route
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.dead_letters import DeadLetter, DeadLetters

T = TypeVar("T")


EVENTS = StreamSpec(name="EVENTS", subjects=("events.>",), work_queue=False, max_age=timedelta(hours=1))


SPEC = ConsumerSpec(
    stream="EVENTS", durable="test-events", filter_subjects=("events.>",), ack_wait=timedelta(seconds=2)
)


class BadEvent(InvalidRequest):
    """The error of a handler that refuses an event."""


class Book:
    """A use case that records numbers, refuses some of them, and may have a defect."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.refused: set[int] = set()
        self.trips: Callable[[int], bool] = lambda _number: False

    async def apply(self, tx: Transaction, events: Sequence[Received], now: datetime) -> None:
        numbers = [number_of(received.message) for received in events]
        self.batches.append(numbers)
        await tx.connection.execute(
            text("insert into book select number, :now from unnest(cast(:numbers as int[])) as number"),
            {"numbers": numbers, "now": now},
        )
        if self.refused & set(numbers):
            raise BadEvent("REFUSED", "the text of somebody's post")
        if any(map(self.trips, numbers)):
            raise AttributeError("a mistake in the handler")


def number_of(message: Message) -> int:
    assert isinstance(message, Duration | Timestamp)
    return message.seconds


async def with_book(database: Database) -> Database:
    async with database.statement() as connection:
        # Without a key, an event that is applied twice shows as two rows.
        await connection.execute(text("create table if not exists book (number int, at timestamptz)"))
    return database


def consumer_of(
    connection: Client, database: Database, book: Book, *, linger_ms: int = 5, ack_wait: timedelta = SPEC.ack_wait
) -> EventConsumer:
    js = connection.jetstream()
    return EventConsumer(
        connection=connection,
        spec=replace(SPEC, ack_wait=ack_wait),
        routes=[Route(message=Duration, apply=book.apply), Route(message=Timestamp, apply=book.apply)],
        database=database,
        clock=DatabaseClock(),
        dead_letters=DeadLetters(database, DatabaseClock(), Uuid7Source()),
        ensure_stream=lambda: ensure_stream(js, EVENTS),
        linger=timedelta(milliseconds=linger_ms),
    )


@asynccontextmanager
async def running(*consumers: EventConsumer) -> AsyncIterator[asyncio.Event]:
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for consumer in consumers:
            group.create_task(consumer.run(stop))
        try:
            yield stop
        finally:
            stop.set()


def event(number: int, message: Message | None = None) -> bus_pb2.Event:
    message = message or Duration(seconds=number)
    return bus_pb2.Event(
        id=f"event-{number}",
        type=message.DESCRIPTOR.full_name,
        organization_id="org",
        payload=message.SerializeToString(),
    )


def envelope(events: Iterable[bus_pb2.Event]) -> bytes:
    return bus_pb2.Envelope(events=events).SerializeToString()


async def publish(connection: Client, *payloads: bytes) -> None:
    ids = Uuid7Source()
    answers = await PipelinedPublisher(connection, timeout=20).publish(
        [Outgoing("events.test", payload, ids.new()) for payload in payloads]
    )
    assert all(answers)


async def written(database: Database) -> list[int]:
    async with database.read() as connection:
        return [number for (number,) in await connection.execute(text("select number from book order by number"))]


async def parked_letters(database: Database) -> Sequence[DeadLetter]:
    return await DeadLetters(database, DatabaseClock(), Uuid7Source()).list(limit=1000)


def becomes(question: Callable[[], Awaitable[T]], answer: T) -> Callable[[], Awaitable[bool]]:
    async def check() -> bool:
        return await question() == answer

    return check


async def unanswered(connection: Client) -> int:
    try:
        info = await connection.jetstream().consumer_info("EVENTS", SPEC.durable)
    except NotFoundError:
        return -1
    return (info.num_pending or 0) + (info.num_ack_pending or 0)
