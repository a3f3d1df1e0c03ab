"""Events that a consumer cannot read or apply, on real servers."""

import pytest
from nats.aio.client import Client

from postflow.bus.v1 import bus_pb2
from servicekit.pg.database import Database
from testkit.eventually import eventually
from tests.contract.servicekit_messaging.books import (
    Book,
    becomes,
    consumer_of,
    envelope,
    event,
    parked_letters,
    publish,
    running,
    unanswered,
    written,
)


@pytest.mark.parametrize("payload", [b"\xff\xff\xff", b"", b"not protobuf at all"])
async def test_an_unreadable_envelope_is_parked(stream: Client, books: Database, book: Book, payload: bytes) -> None:
    async with running(consumer_of(stream, books, book)):
        await publish(stream, payload, envelope([event(1)]))
        await eventually(becomes(lambda: written(books), [1]))
        await eventually(becomes(lambda: unanswered(stream), 0))
    (letter,) = await parked_letters(books)
    assert (letter.consumer, letter.subject, letter.payload) == ("test-events", "events.test", payload)


def _spoiled(**changes: object) -> bus_pb2.Event:
    spoiled = event(666)
    for name, value in changes.items():
        setattr(spoiled, name, value)
    return spoiled


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
    async with running(consumer_of(stream, books, book)):
        await publish(stream, envelope([event(1), spoiled, event(2)]), envelope([event(3)]))
        await eventually(becomes(lambda: written(books), [1, 2, 3]))
        await eventually(becomes(lambda: unanswered(stream), 0))
    (letter,) = await parked_letters(books)
    assert bus_pb2.Envelope.FromString(letter.payload).events[0] == spoiled


async def test_a_refused_event_is_parked_without_its_neighbours(stream: Client, books: Database, book: Book) -> None:
    book.refused = {7, 130}
    async with running(consumer_of(stream, books, book, linger_ms=100)):
        await publish(stream, *(envelope(map(event, range(start, start + 10))) for start in range(0, 200, 10)))
        await eventually(becomes(lambda: unanswered(stream), 0))
    assert await written(books) == [number for number in range(200) if number not in book.refused]
    letters = await parked_letters(books)
    assert {bus_pb2.Envelope.FromString(letter.payload).events[0].id for letter in letters} == {"event-7", "event-130"}
    assert {letter.reason for letter in letters} == {"REFUSED while applying"}
    assert len(book.batches) < 60, "found by halves, not one by one"


async def test_a_parked_event_is_not_parked_again(stream: Client, books: Database, book: Book) -> None:
    book.refused = {1}
    async with running(consumer_of(stream, books, book)):
        for turn in range(3):
            await publish(stream, envelope([event(1), event(10 + turn)]))
            await eventually(becomes(lambda: unanswered(stream), 0))
    assert len(await parked_letters(books)) == 1
    assert await written(books) == [10, 11, 12]


async def test_a_defect_that_hits_every_event_parks_none(
    stream: Client, books: Database, book: Book, caplog: pytest.LogCaptureFixture
) -> None:
    book.trips = lambda _number: True
    await publish(stream, *(envelope(map(event, range(start, start + 10))) for start in range(0, 200, 10)))
    async with running(consumer_of(stream, books, book, linger_ms=100)):
        await eventually(lambda: len(book.batches) > 20)
        assert not await parked_letters(books)
        assert not await written(books)
        book.trips = lambda _number: False
        await eventually(becomes(lambda: written(books), list(range(200))), within=40)
        await eventually(becomes(lambda: unanswered(stream), 0))
    assert not await parked_letters(books)
    stacks = [each for each in caplog.records if each.levelname == "ERROR" and each.exc_info]
    assert len(stacks) == 1, "once for each kind of error"


async def test_an_event_that_hits_a_defect_delays_no_other(stream: Client, books: Database, book: Book) -> None:
    book.trips = lambda number: number == 7
    await publish(stream, *(envelope(map(event, range(start, start + 10))) for start in range(0, 200, 10)))
    async with running(consumer_of(stream, books, book, linger_ms=100)):
        await eventually(becomes(lambda: written(books), [number for number in range(200) if number != 7]))
        await eventually(becomes(lambda: unanswered(stream), 1))
        assert not await parked_letters(books)


async def test_a_dead_letters_reason_contains_no_text_of_the_event(stream: Client, books: Database, book: Book) -> None:
    book.refused = {1}
    async with running(consumer_of(stream, books, book)):
        await publish(stream, envelope([event(1)]))
        await eventually(becomes(lambda: unanswered(stream), 0))
    (letter,) = await parked_letters(books)
    assert "somebody's post" not in letter.reason
