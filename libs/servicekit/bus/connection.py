"""One NATS connection per process. A `Client` can be handed around before it is connected, and reconnects for ever."""

import logging
from contextlib import suppress

from nats.aio.client import Client
from nats.errors import Error as NatsError

from servicekit.run import transient

log = logging.getLogger(__name__)

transient.recognise(lambda error: isinstance(error, NatsError))


async def connect(client: Client, url: str, *, name: str) -> None:
    """Waits until the server answers, however long; the caller bounds the wait."""
    journal = _Journal(client)
    await client.connect(
        url,
        name=name,
        inbox_prefix=f"_INBOX_{name}",
        error_cb=journal.error,
        disconnected_cb=journal.disconnected,
        reconnected_cb=journal.reconnected,
        connect_timeout=2,
        reconnect_time_wait=0.25,  # type: ignore[arg-type]  # it is slept for
        max_reconnect_attempts=-1,
        ping_interval=10,
        max_outstanding_pings=2,
        pending_size=16 * 1024 * 1024,
        flusher_queue_size=4096,
    )


async def close(client: Client) -> None:
    """Also when it was never connected, because something else had failed before, or is not connected any more."""
    if client.is_connected or client.is_connecting or client.is_reconnecting:
        with suppress(OSError):  # it still wants to send what is left
            await client.close()


class ConnectionGone(Exception):
    """The client will not connect again; only a new process will."""


def check_open(client: Client) -> None:
    """A client that the server has refused closes for good, and then answers everything with the same error."""
    if client.is_closed:
        raise ConnectionGone("the connection to NATS was closed for good")


class _Journal:
    """One line per change: the client reports every failed attempt, and there are several each second."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._last = ""

    async def error(self, error: Exception) -> None:
        text = str(error) or type(error).__name__
        if text != self._last:
            log.warning("nats: %s", text)
        self._last = text

    async def disconnected(self) -> None:
        if not self._client.is_closed:
            log.warning("nats: disconnected")

    async def reconnected(self) -> None:
        log.info("nats: connected again")
        self._last = ""
