"""The consumer of events on real servers: applies each once, parks bad ones, loses none."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from nats.aio.client import Client
from nats.aio.msg import Msg

from devstack.servers.nats import EmbeddedNats
from devstack.servers.postgres import EmbeddedPostgres
from servicekit import failpoints
from servicekit.messaging.consumer import Received, Route
from servicekit.messaging.routes import Routes
from servicekit.pg.database import Database, Transaction
from testkit.databases import COMMON, migrate
from testkit.eventually import eventually
from tests.contract.servicekit_messaging.books import (
    SPEC,
    Book,
    becomes,
    consumer_of,
    envelope,
    event,
    parked_letters,
    publish,
    running,
    unanswered,
    with_book,
    written,
)


async def test_events_are_applied_in_batches_and_in_order(stream: Client, books: Database, book: Book) -> None:
    await publish(stream, *(envelope([event(number)]) for number in range(1000)))
    async with running(consumer_of(stream, books, book, linger_ms=100)):
        await eventually(becomes(lambda: unanswered(stream), 0))
    assert await written(books) == list(range(1000))
    assert [number for batch in book.batches for number in batch] == list(range(1000))
    assert len(book.batches) < 20


async def test_a_batch_is_bounded_by_events_not_by_messages(stream: Client, books: Database, book: Book) -> None:
    await publish(stream, *(envelope(map(event, range(start, start + 50))) for start in range(0, 5000, 50)))
    async with running(consumer_of(stream, books, book, linger_ms=100)):
        await eventually(becomes(lambda: unanswered(stream), 0))
    assert await written(books) == list(range(5000))
    assert max(map(len, book.batches)) == 500


async def test_a_redelivered_event_is_applied_once(stream: Client, books: Database, book: Book) -> None:
    twice_in_one = envelope([event(1), event(1)])
    together = [envelope([event(2)]), envelope([event(2), event(3)])]
    async with running(consumer_of(stream, books, book)):
        await publish(stream, twice_in_one, *together)
        await eventually(becomes(lambda: written(books), [1, 2, 3]))
        await publish(stream, *together, envelope([event(4)]))
        await eventually(becomes(lambda: written(books), [1, 2, 3, 4]))
    assert not await parked_letters(books)


async def test_replicas_share_the_work_and_apply_everything_once(
    stream: Client, other_connection: Client, books: Database, book: Book
) -> None:
    again = Book()
    async with running(consumer_of(stream, books, book), consumer_of(other_connection, books, again)):
        for first in range(0, 1000, 50):
            # Most events are in two messages.
            starts = range(first, first + 50, 10)
            await publish(stream, *(envelope(map(event, range(start, start + 20))) for start in starts))
        await eventually(becomes(lambda: written(books), list(range(1010))))
        await eventually(becomes(lambda: unanswered(stream), 0))


async def test_unknown_types_are_skipped(stream: Client, books: Database, book: Book) -> None:
    unknown = event(1)
    unknown.type = "postflow.future.v1.SomethingNew"
    async with running(consumer_of(stream, books, book)):
        await publish(stream, envelope([unknown]), envelope([unknown, event(2), event(3, Timestamp(seconds=3))]))
        await eventually(becomes(lambda: written(books), [2, 3]))
        await eventually(becomes(lambda: unanswered(stream), 0))
    assert not await parked_letters(books)


@pytest.fixture
def dies_before_it_acknowledges() -> Iterator[None]:
    failpoints.install("consumer.applied=raise", "development")
    yield
    failpoints.install("", "development")


@pytest.mark.usefixtures("dies_before_it_acknowledges")
async def test_an_unacknowledged_event_is_redelivered_without_effect(
    stream: Client, books: Database, book: Book
) -> None:
    await publish(stream, envelope([event(1), event(2)]))
    with pytest.raises(ExceptionGroup) as caught:
        async with running(consumer_of(stream, books, book)):
            await asyncio.Event().wait()
    assert caught.group_contains(failpoints.FailpointHit)
    assert await written(books) == [1, 2]
    assert await unanswered(stream) == 1

    failpoints.install("", "development")
    async with running(consumer_of(stream, books, book)):
        await eventually(becomes(lambda: unanswered(stream), 0))
    assert await written(books) == [1, 2]
    assert book.batches == [[1, 2]], "the second time it did not even reach the handler"


async def test_nothing_is_acknowledged_before_its_commit(stream: Client, books: Database, book: Book) -> None:
    applied, release = asyncio.Event(), asyncio.Event()

    async def slowly(tx: Transaction, events: Sequence[Received], now: datetime) -> None:
        await book.apply(tx, events, now)
        applied.set()
        await release.wait()

    consumer = consumer_of(stream, books, book)
    consumer.applier.routes = Routes([Route(message=Duration, apply=slowly)])
    async with running(consumer):
        await publish(stream, envelope([event(1)]))
        await applied.wait()
        assert await unanswered(stream) == 1
        assert await written(books) == []
        release.set()
        await eventually(becomes(lambda: unanswered(stream), 0))
    assert await written(books) == [1]


async def test_stopping_finishes_the_current_batch_and_gives_back_the_rest(
    stream: Client, other_connection: Client, books: Database, book: Book
) -> None:
    applying, release = asyncio.Event(), asyncio.Event()

    async def slowly(tx: Transaction, events: Sequence[Received], now: datetime) -> None:
        applying.set()
        await release.wait()
        await book.apply(tx, events, now)

    long = timedelta(minutes=1)
    consumer = consumer_of(stream, books, book, ack_wait=long)
    consumer.applier.routes = Routes([Route(message=Duration, apply=slowly)])
    await publish(stream, *(envelope(map(event, range(start, start + 50))) for start in range(0, 1000, 50)))
    async with running(consumer) as stop:
        await applying.wait()
        stop.set()
        release.set()
    done = len(await written(books))
    assert 0 < done <= 500

    after = Book()
    async with running(consumer_of(other_connection, books, after, ack_wait=long)):
        await eventually(becomes(lambda: written(books), list(range(1000))), within=20)
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

    consumer = consumer_of(stream, books, book, ack_wait=timedelta(seconds=1.5))
    consumer.applier.routes = Routes([Route(message=Duration, apply=slowly)])
    # Ten events make a transaction; the others wait.
    await publish(stream, *(envelope(map(event, range(start, start + 50))) for start in range(0, 1000, 50)))
    async with running(consumer):
        await applying.wait()
        await eventually(lambda: len(said) >= 20 and all(each[:3] == [b"+WPI"] * 3 for each in said.values()))
        release.set()
        await eventually(becomes(lambda: unanswered(stream), 0))
        await eventually(lambda: {each[-1] for each in said.values()} == {b"+ACK"})
    assert await written(books) == list(range(1000))


async def test_a_killed_server_loses_and_repeats_no_event(
    stream: Client, books: Database, book: Book, fresh_nats: EmbeddedNats
) -> None:
    async with running(consumer_of(stream, books, book)):
        for turn in range(3):
            starts = range(1000 * turn, 1000 * turn + 1000, 10)
            await publish(stream, *(envelope(map(event, range(start, start + 10))) for start in starts))
            await fresh_nats.kill()
            await fresh_nats.start()
        await eventually(becomes(lambda: written(books), list(range(3000))), within=20)


async def test_an_unreachable_database_is_waited_for(
    stream: Client, own_postgres: EmbeddedPostgres, tmp_path: Path, book: Book, caplog: pytest.LogCaptureFixture
) -> None:
    await migrate(own_postgres.url(), COMMON)
    database = await with_book(Database(own_postgres.url(), application="test"))

    async with running(consumer_of(stream, database, book)):
        await publish(stream, envelope([event(0)]))
        await eventually(becomes(lambda: written(database), [0]))
        await own_postgres.kill()
        # Bad events must wait as well: there is nowhere to park them.
        await publish(stream, b"\xff\xff", *(envelope([event(number)]) for number in range(1, 300)))
        await eventually(lambda: "waiting" in caplog.text)
        await own_postgres.start()
        await eventually(becomes(lambda: unanswered(stream), 0), within=20)
        assert await written(database) == list(range(300))
        assert len(await parked_letters(database)) == 1
    await database.dispose()
