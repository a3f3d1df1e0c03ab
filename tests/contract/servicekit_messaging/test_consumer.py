"""The consumer of events on real servers: applies each once, parks bad ones, loses none."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.errors import NotFoundError
from sqlalchemy import text

from devstack.servers.nats import EmbeddedNats
from devstack.servers.postgres import EmbeddedPostgres
from postflow.bus.v1 import bus_pb2
from servicekit import failpoints
from servicekit.bus.publisher import Outgoing, PipelinedPublisher
from servicekit.bus.streams import ConsumerSpec, StreamSpec, ensure_stream
from servicekit.faults import InvalidRequest
from servicekit.ids import Uuid7Source
from servicekit.messaging.consumer import EventConsumer, Received, Route
from servicekit.messaging.routes import Routes
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.dead_letters import DeadLetter, DeadLetters
from testkit.databases import COMMON, migrate
from testkit.eventually import eventually

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
        numbers = [_number(received.message) for received in events]
        self.batches.append(numbers)
        await tx.connection.execute(
            text("insert into book select number, :now from unnest(cast(:numbers as int[])) as number"),
            {"numbers": numbers, "now": now},
        )
        if self.refused & set(numbers):
            raise BadEvent("REFUSED", "the text of somebody's post")
        if any(map(self.trips, numbers)):
            raise AttributeError("a mistake in the handler")


def _number(message: Message) -> int:
    assert isinstance(message, Duration | Timestamp)
    return message.seconds


async def _with_book(database: Database) -> Database:
    async with database.statement() as connection:
        # Without a key, an event that is applied twice shows as two rows.
        await connection.execute(text("create table if not exists book (number int, at timestamptz)"))
    return database


@pytest.fixture
async def books(database: Database) -> Database:
    return await _with_book(database)


@pytest.fixture
def book() -> Book:
    return Book()


@pytest.fixture
async def stream(own_connection: Client) -> Client:
    await ensure_stream(own_connection.jetstream(), EVENTS)
    return own_connection


def _consumer(
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
async def _running(*consumers: EventConsumer) -> AsyncIterator[asyncio.Event]:
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for consumer in consumers:
            group.create_task(consumer.run(stop))
        try:
            yield stop
        finally:
            stop.set()


def _event(number: int, message: Message | None = None) -> bus_pb2.Event:
    message = message or Duration(seconds=number)
    return bus_pb2.Event(
        id=f"event-{number}",
        type=message.DESCRIPTOR.full_name,
        organization_id="org",
        payload=message.SerializeToString(),
    )


def _envelope(events: Iterable[bus_pb2.Event]) -> bytes:
    return bus_pb2.Envelope(events=events).SerializeToString()


async def _publish(connection: Client, *payloads: bytes) -> None:
    ids = Uuid7Source()
    answers = await PipelinedPublisher(connection, timeout=20).publish(
        [Outgoing("events.test", payload, ids.new()) for payload in payloads]
    )
    assert all(answers)


async def _written(database: Database) -> list[int]:
    async with database.read() as connection:
        return [number for (number,) in await connection.execute(text("select number from book order by number"))]


async def _parked(database: Database) -> Sequence[DeadLetter]:
    return await DeadLetters(database, DatabaseClock(), Uuid7Source()).list(limit=1000)


def _becomes(question: Callable[[], Awaitable[T]], answer: T) -> Callable[[], Awaitable[bool]]:
    async def check() -> bool:
        return await question() == answer

    return check


async def _unanswered(connection: Client) -> int:
    try:
        info = await connection.jetstream().consumer_info("EVENTS", SPEC.durable)
    except NotFoundError:
        return -1
    return (info.num_pending or 0) + (info.num_ack_pending or 0)


async def test_events_are_applied_in_batches_and_in_order(stream: Client, books: Database, book: Book) -> None:
    await _publish(stream, *(_envelope([_event(number)]) for number in range(1000)))
    async with _running(_consumer(stream, books, book, linger_ms=100)):
        await eventually(_becomes(lambda: _unanswered(stream), 0))
    assert await _written(books) == list(range(1000))
    assert [number for batch in book.batches for number in batch] == list(range(1000))
    assert len(book.batches) < 20


async def test_a_batch_is_bounded_by_events_not_by_messages(stream: Client, books: Database, book: Book) -> None:
    await _publish(stream, *(_envelope(map(_event, range(start, start + 50))) for start in range(0, 5000, 50)))
    async with _running(_consumer(stream, books, book, linger_ms=100)):
        await eventually(_becomes(lambda: _unanswered(stream), 0))
    assert await _written(books) == list(range(5000))
    assert max(map(len, book.batches)) == 500


async def test_a_redelivered_event_is_applied_once(stream: Client, books: Database, book: Book) -> None:
    twice_in_one = _envelope([_event(1), _event(1)])
    together = [_envelope([_event(2)]), _envelope([_event(2), _event(3)])]
    async with _running(_consumer(stream, books, book)):
        await _publish(stream, twice_in_one, *together)
        await eventually(_becomes(lambda: _written(books), [1, 2, 3]))
        await _publish(stream, *together, _envelope([_event(4)]))
        await eventually(_becomes(lambda: _written(books), [1, 2, 3, 4]))
    assert not await _parked(books)


async def test_replicas_share_the_work_and_apply_everything_once(
    stream: Client, other_connection: Client, books: Database, book: Book
) -> None:
    again = Book()
    async with _running(_consumer(stream, books, book), _consumer(other_connection, books, again)):
        for first in range(0, 1000, 50):
            # Most events are in two messages.
            starts = range(first, first + 50, 10)
            await _publish(stream, *(_envelope(map(_event, range(start, start + 20))) for start in starts))
        await eventually(_becomes(lambda: _written(books), list(range(1010))))
        await eventually(_becomes(lambda: _unanswered(stream), 0))


async def test_unknown_types_are_skipped(stream: Client, books: Database, book: Book) -> None:
    unknown = _event(1)
    unknown.type = "postflow.future.v1.SomethingNew"
    async with _running(_consumer(stream, books, book)):
        await _publish(stream, _envelope([unknown]), _envelope([unknown, _event(2), _event(3, Timestamp(seconds=3))]))
        await eventually(_becomes(lambda: _written(books), [2, 3]))
        await eventually(_becomes(lambda: _unanswered(stream), 0))
    assert not await _parked(books)


@pytest.mark.parametrize("payload", [b"\xff\xff\xff", b"", b"not protobuf at all"])
async def test_an_unreadable_envelope_is_parked(
    stream: Client, books: Database, book: Book, payload: bytes
) -> None:
    async with _running(_consumer(stream, books, book)):
        await _publish(stream, payload, _envelope([_event(1)]))
        await eventually(_becomes(lambda: _written(books), [1]))
        await eventually(_becomes(lambda: _unanswered(stream), 0))
    (letter,) = await _parked(books)
    assert (letter.consumer, letter.subject, letter.payload) == ("test-events", "events.test", payload)


def _spoiled(**changes: object) -> bus_pb2.Event:
    event = _event(666)
    for name, value in changes.items():
        setattr(event, name, value)
    return event


@pytest.mark.parametrize(
    "spoiled",
    [
        _spoiled(payload=b"\xff\xff"),
        _spoiled(id=""),
        _spoiled(organization_id=""),
        _spoiled(id="a\0b"),
        _spoiled(id="x" * 10_000),
        _spoiled(organization_id="two\nlines"),
    ],
)
async def test_an_unreadable_event_is_parked_without_its_neighbours(
    stream: Client, books: Database, book: Book, spoiled: bus_pb2.Event
) -> None:
    async with _running(_consumer(stream, books, book)):
        await _publish(stream, _envelope([_event(1), spoiled, _event(2)]), _envelope([_event(3)]))
        await eventually(_becomes(lambda: _written(books), [1, 2, 3]))
        await eventually(_becomes(lambda: _unanswered(stream), 0))
    (letter,) = await _parked(books)
    assert bus_pb2.Envelope.FromString(letter.payload).events[0] == spoiled


async def test_a_refused_event_is_parked_without_its_neighbours(
    stream: Client, books: Database, book: Book
) -> None:
    book.refused = {7, 130}
    async with _running(_consumer(stream, books, book, linger_ms=100)):
        await _publish(stream, *(_envelope(map(_event, range(start, start + 10))) for start in range(0, 200, 10)))
        await eventually(_becomes(lambda: _unanswered(stream), 0))
    assert await _written(books) == [number for number in range(200) if number not in book.refused]
    letters = await _parked(books)
    assert {bus_pb2.Envelope.FromString(letter.payload).events[0].id for letter in letters} == {"event-7", "event-130"}
    assert {letter.reason for letter in letters} == {"REFUSED while applying"}
    assert len(book.batches) < 60, "found by halves, not one by one"


async def test_a_parked_event_is_not_parked_again(stream: Client, books: Database, book: Book) -> None:
    book.refused = {1}
    async with _running(_consumer(stream, books, book)):
        for turn in range(3):
            await _publish(stream, _envelope([_event(1), _event(10 + turn)]))
            await eventually(_becomes(lambda: _unanswered(stream), 0))
    assert len(await _parked(books)) == 1
    assert await _written(books) == [10, 11, 12]


@pytest.fixture
def dies_before_it_acknowledges() -> Iterator[None]:
    failpoints.install("consumer.applied=raise", "development")
    yield
    failpoints.install("", "development")


@pytest.mark.usefixtures("dies_before_it_acknowledges")
async def test_an_unacknowledged_event_is_redelivered_without_effect(
    stream: Client, books: Database, book: Book
) -> None:
    await _publish(stream, _envelope([_event(1), _event(2)]))
    with pytest.raises(ExceptionGroup) as caught:
        async with _running(_consumer(stream, books, book)):
            await asyncio.Event().wait()
    assert caught.group_contains(failpoints.FailpointHit)
    assert await _written(books) == [1, 2]
    assert await _unanswered(stream) == 1

    failpoints.install("", "development")
    async with _running(_consumer(stream, books, book)):
        await eventually(_becomes(lambda: _unanswered(stream), 0))
    assert await _written(books) == [1, 2]
    assert book.batches == [[1, 2]], "the second time it did not even reach the handler"


async def test_a_defect_that_hits_every_event_parks_none(
    stream: Client, books: Database, book: Book, caplog: pytest.LogCaptureFixture
) -> None:
    book.trips = lambda _number: True
    await _publish(stream, *(_envelope(map(_event, range(start, start + 10))) for start in range(0, 200, 10)))
    async with _running(_consumer(stream, books, book, linger_ms=100)):
        await eventually(lambda: len(book.batches) > 20)
        assert not await _parked(books)
        assert not await _written(books)
        book.trips = lambda _number: False
        await eventually(_becomes(lambda: _written(books), list(range(200))), within=40)
        await eventually(_becomes(lambda: _unanswered(stream), 0))
    assert not await _parked(books)
    stacks = [each for each in caplog.records if each.levelname == "ERROR" and each.exc_info]
    assert len(stacks) == 1, "once for each kind of error"


async def test_an_event_that_hits_a_defect_delays_no_other(stream: Client, books: Database, book: Book) -> None:
    book.trips = lambda number: number == 7
    await _publish(stream, *(_envelope(map(_event, range(start, start + 10))) for start in range(0, 200, 10)))
    async with _running(_consumer(stream, books, book, linger_ms=100)):
        await eventually(_becomes(lambda: _written(books), [number for number in range(200) if number != 7]))
        await eventually(_becomes(lambda: _unanswered(stream), 1))
        assert not await _parked(books)


async def test_nothing_is_acknowledged_before_its_commit(stream: Client, books: Database, book: Book) -> None:
    applied, release = asyncio.Event(), asyncio.Event()

    async def slowly(tx: Transaction, events: Sequence[Received], now: datetime) -> None:
        await book.apply(tx, events, now)
        applied.set()
        await release.wait()

    consumer = _consumer(stream, books, book)
    consumer.applier.routes = Routes([Route(message=Duration, apply=slowly)])
    async with _running(consumer):
        await _publish(stream, _envelope([_event(1)]))
        await applied.wait()
        assert await _unanswered(stream) == 1
        assert await _written(books) == []
        release.set()
        await eventually(_becomes(lambda: _unanswered(stream), 0))
    assert await _written(books) == [1]


async def test_stopping_finishes_the_current_batch_and_gives_back_the_rest(
    stream: Client, other_connection: Client, books: Database, book: Book
) -> None:
    applying, release = asyncio.Event(), asyncio.Event()

    async def slowly(tx: Transaction, events: Sequence[Received], now: datetime) -> None:
        applying.set()
        await release.wait()
        await book.apply(tx, events, now)

    long = timedelta(minutes=1)
    consumer = _consumer(stream, books, book, ack_wait=long)
    consumer.applier.routes = Routes([Route(message=Duration, apply=slowly)])
    await _publish(stream, *(_envelope(map(_event, range(start, start + 50))) for start in range(0, 1000, 50)))
    async with _running(consumer) as stop:
        await applying.wait()
        stop.set()
        release.set()
    done = len(await _written(books))
    assert 0 < done <= 500

    after = Book()
    async with _running(_consumer(other_connection, books, after, ack_wait=long)):
        await eventually(_becomes(lambda: _written(books), list(range(1000))), within=20)
    assert sum(map(len, after.batches)) == 1000 - done


async def test_the_ack_deadline_of_held_messages_is_extended(
    stream: Client, other_connection: Client, books: Database, book: Book
) -> None:
    said: dict[str, list[bytes]] = {}

    async def hear(message: Msg) -> None:
        said.setdefault(message.subject, []).append(message.data)

    await other_connection.subscribe(f"$JS.ACK.EVENTS.{SPEC.durable}.>", cb=hear)
    applying, release = asyncio.Event(), asyncio.Event()

    async def slowly(tx: Transaction, events: Sequence[Received], now: datetime) -> None:
        applying.set()
        await release.wait()
        await book.apply(tx, events, now)

    consumer = _consumer(stream, books, book, ack_wait=timedelta(seconds=1.5))
    consumer.applier.routes = Routes([Route(message=Duration, apply=slowly)])
    # Ten events make a transaction; the others wait.
    await _publish(stream, *(_envelope(map(_event, range(start, start + 50))) for start in range(0, 1000, 50)))
    async with _running(consumer):
        await applying.wait()
        await eventually(lambda: len(said) >= 20 and all(each[:3] == [b"+WPI"] * 3 for each in said.values()))
        release.set()
        await eventually(_becomes(lambda: _unanswered(stream), 0))
        await eventually(lambda: {each[-1] for each in said.values()} == {b"+ACK"})
    assert await _written(books) == list(range(1000))


async def test_a_killed_server_loses_and_repeats_no_event(
    stream: Client, books: Database, book: Book, fresh_nats: EmbeddedNats
) -> None:
    async with _running(_consumer(stream, books, book)):
        for turn in range(3):
            starts = range(1000 * turn, 1000 * turn + 1000, 10)
            await _publish(stream, *(_envelope(map(_event, range(start, start + 10))) for start in starts))
            await fresh_nats.kill()
            await fresh_nats.start()
        await eventually(_becomes(lambda: _written(books), list(range(3000))), within=20)


async def test_an_unreachable_database_is_waited_for(
    stream: Client, own_postgres: EmbeddedPostgres, tmp_path: Path, book: Book, caplog: pytest.LogCaptureFixture
) -> None:
    await migrate(own_postgres.url(), COMMON)
    database = await _with_book(Database(own_postgres.url(), application="test"))

    async with _running(_consumer(stream, database, book)):
        await _publish(stream, _envelope([_event(0)]))
        await eventually(_becomes(lambda: _written(database), [0]))
        await own_postgres.kill()
        # Bad events must wait as well: there is nowhere to park them.
        await _publish(stream, b"\xff\xff", *(_envelope([_event(number)]) for number in range(1, 300)))
        await eventually(lambda: "waiting" in caplog.text)
        await own_postgres.start()
        await eventually(_becomes(lambda: _unanswered(stream), 0), within=20)
        assert await _written(database) == list(range(300))
        assert len(await _parked(database)) == 1
    await database.dispose()


async def test_a_dead_letters_reason_contains_no_text_of_the_event(stream: Client, books: Database, book: Book) -> None:
    book.refused = {1}
    async with _running(_consumer(stream, books, book)):
        await _publish(stream, _envelope([_event(1)]))
        await eventually(_becomes(lambda: _unanswered(stream), 0))
    (letter,) = await _parked(books)
    assert "somebody's post" not in letter.reason
