"""A database with a book, and a stream of events."""

import pytest
from nats.aio.client import Client

from servicekit.bus.streams import ensure_stream
from servicekit.pg.database import Database
from tests.contract.servicekit_messaging.books import EVENTS, Book, with_book


@pytest.fixture
async def books(database: Database) -> Database:
    return await with_book(database)


@pytest.fixture
def book() -> Book:
    return Book()


@pytest.fixture
async def stream(own_connection: Client) -> Client:
    await ensure_stream(own_connection.jetstream(), EVENTS)
    return own_connection
