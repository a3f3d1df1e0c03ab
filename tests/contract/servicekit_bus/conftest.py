from collections.abc import AsyncIterator

import pytest
from nats.aio.client import Client

from devstack.servers.nats import EmbeddedNats
from servicekit.bus.connection import close, connect


@pytest.fixture
async def own_connection(fresh_nats: EmbeddedNats) -> AsyncIterator[Client]:
    """To a server that this test may kill and wipe."""
    client = Client()
    await connect(client, fresh_nats.url, name="test")
    yield client
    await close(client)


@pytest.fixture
async def other_connection(fresh_nats: EmbeddedNats) -> AsyncIterator[Client]:
    """To the same server: another replica's."""
    client = Client()
    await connect(client, fresh_nats.url, name="other")
    yield client
    await close(client)
