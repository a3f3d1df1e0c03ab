import pytest
from nats.aio.client import Client

from servicekit.bus.streams import ensure_stream
from tests.contract.servicekit_bus.pulling import WORK


@pytest.fixture
async def stream(own_connection: Client) -> Client:
    """Returns a connection to a server of the test's own, which has the stream WORK."""
    await ensure_stream(own_connection.jetstream(), WORK)
    return own_connection
