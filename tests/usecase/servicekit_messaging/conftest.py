"""A site on an empty database."""

import pytest

from servicekit.pg.database import Database
from testkit.broker import MemoryBroker
from tests.usecase.servicekit_messaging.sites import Site


@pytest.fixture
def site(database: Database) -> Site:
    return Site(database, MemoryBroker())
