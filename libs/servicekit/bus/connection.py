"""One NATS connection per process; it reconnects for ever and never blocks the start of a server that works without it."""

import logging

import nats
from nats.aio.client import Client

log = logging.getLogger(__name__)


async def connect(url: str, *, name: str) -> Client:
    """Waits until the server answers; the caller bounds the wait."""

    async def on_error(error: Exception) -> None:
        log.warning("nats: %s", error or type(error).__name__)

    async def on_disconnect() -> None:
        log.warning("nats: disconnected")

    async def on_reconnect() -> None:
        log.info("nats: connected again")

    return await nats.connect(
        url,
        name=name,
        inbox_prefix=f"_INBOX_{name}".encode(),
        error_cb=on_error,
        disconnected_cb=on_disconnect,
        reconnected_cb=on_reconnect,
        connect_timeout=2,
        reconnect_time_wait=0.25,
        max_reconnect_attempts=-1,
        ping_interval=10,
        max_outstanding_pings=2,
        pending_size=16 * 1024 * 1024,
        flusher_queue_size=4096,
    )
