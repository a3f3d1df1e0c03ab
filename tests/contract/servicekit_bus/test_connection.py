import asyncio
from collections.abc import Callable

import pytest
from nats.aio.client import Client
from nats.errors import TimeoutError as NatsTimeout

from devstack.servers.nats import EmbeddedNats
from servicekit.bus.connection import ConnectionGone, check_open, close, connect
from servicekit.run.transient import is_transient
from testkit.eventually import eventually


@pytest.fixture(autouse=True)
def everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "servicekit.bus.connection")


async def test_connect_waits_for_a_server(fresh_nats: EmbeddedNats, caplog: pytest.LogCaptureFixture) -> None:
    await fresh_nats.stop()
    client = Client()
    async with asyncio.TaskGroup() as group:
        group.create_task(connect(client, fresh_nats.url, name="test"))
        await eventually(lambda: caplog.records)
        await eventually(lambda: client.server_pool[0].reconnects >= 2)
        await fresh_nats.start()
    assert client.is_connected
    await close(client)
    assert len(caplog.records) == 1, "the same refusal is logged once"


async def test_a_client_reconnects_when_its_server_is_back(
    own_connection: Client, fresh_nats: EmbeddedNats, caplog: pytest.LogCaptureFixture
) -> None:
    await fresh_nats.kill()
    await eventually(lambda: not own_connection.is_connected)
    await fresh_nats.start()
    await eventually(lambda: own_connection.is_connected and own_connection.stats["reconnects"] == 1)
    await own_connection.flush()
    await eventually(lambda: "reconnected" in caplog.text)
    assert len(caplog.records) <= 4


async def test_a_connection_that_was_never_made_can_be_closed() -> None:
    await close(Client())


async def test_a_connection_whose_server_is_gone_can_be_closed(
    fresh_nats: EmbeddedNats, caplog: pytest.LogCaptureFixture
) -> None:
    client = Client()
    await connect(client, fresh_nats.url, name="test")
    await fresh_nats.kill()
    await client.publish("unsaid", b"what is left to say")
    async with asyncio.timeout(5):
        await close(client)
    with pytest.raises(ConnectionGone):
        check_open(client)


async def test_an_orderly_end_is_not_reported(fresh_nats: EmbeddedNats, caplog: pytest.LogCaptureFixture) -> None:
    client = Client()
    await connect(client, fresh_nats.url, name="test")
    check_open(client)
    await close(client)
    # asyncio may log about tasks that an earlier test left to the garbage collector.
    assert not [record for record in caplog.records if record.name.startswith(("servicekit", "nats"))]


def test_a_broker_that_does_not_answer_is_a_transient_error() -> None:
    assert is_transient(NatsTimeout())
    assert not is_transient(ConnectionGone())


async def test_connect_can_be_cancelled_at_any_moment(free_port: Callable[[], int]) -> None:
    """Cancels each wait one turn of the loop later than another, to meet the moment of the refusal, too."""
    url = f"nats://127.0.0.1:{free_port()}"
    # A TaskGroup would wait for a task that hangs.
    waits = [asyncio.create_task(connect(Client(), url, name="test")) for _ in range(100)]  # noqa: TID251
    for wait in waits:
        await asyncio.sleep(0)
        wait.cancel()
    _, hung = await asyncio.wait(waits, timeout=5)
    assert not hung
