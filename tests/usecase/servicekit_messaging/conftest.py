"""A site, and a relay with a stream in memory, on an empty database."""

import pytest

from servicekit.messaging.relay import Relay
from servicekit.pg.database import Database
from testkit.broker import MemoryBroker
from tests.usecase.servicekit_messaging.relays import Announcer, relay_of
from tests.usecase.servicekit_messaging.sites import Site


@pytest.fixture
def site(database: Database) -> Site:
    return Site(database, MemoryBroker())


@pytest.fixture
def broker() -> MemoryBroker:
    return MemoryBroker()


@pytest.fixture
def relay(database: Database, broker: MemoryBroker) -> Relay:
    return relay_of(database, broker)


@pytest.fixture
def announce(database: Database, relay: Relay) -> Announcer:
    return Announcer(database, relay)
