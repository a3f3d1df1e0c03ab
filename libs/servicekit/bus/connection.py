"""One NATS connection per process. A `Client` can be handed around before it is connected, and reconnects for ever."""

import logging

from nats.aio.client import Client
from nats.errors import Error as NatsError

from servicekit.run import transient

log = logging.getLogger(__name__)

transient.recognise(lambda error: isinstance(error, NatsError))


async def connect(client: Client, url: str, *, name: str) -> None:
    """Waits until the server answers, however long; the caller bounds the wait."""

    async def on_error(error: Exception) -> None:
        log.warning("nats: %s", error or type(error).__name__)

    async def on_disconnect() -> None:
        log.warning("nats: disconnected")

    async def on_reconnect() -> None:
        log.info("nats: connected again")

    await client.connect(
        url,
        name=name,
        inbox_prefix=f"_INBOX_{name}",
        error_cb=on_error,
        disconnected_cb=on_disconnect,
        reconnected_cb=on_reconnect,
        connect_timeout=2,
        reconnect_time_wait=1,
        max_reconnect_attempts=-1,
        ping_interval=10,
        max_outstanding_pings=2,
        pending_size=16 * 1024 * 1024,
        flusher_queue_size=4096,
    )
