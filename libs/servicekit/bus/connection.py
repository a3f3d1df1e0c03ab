"""The NATS connection of a process. A `Client` can be passed around before it is connected, and reconnects forever."""

import asyncio
import logging
from contextlib import suppress

from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js.errors import ServiceUnavailableError

from servicekit.run import transient
from servicekit.run.addresses import Misconfigured, without_password

_log = logging.getLogger(__name__)

_JETSTREAM_QUESTIONS = 3
_JETSTREAM_PAUSE = 0.5
_CANCEL_PAUSE = 0.1

transient.recognise(lambda error: isinstance(error, NatsError))


async def connect(client: Client, url: str, *, name: str) -> None:
    """Waits until the server answers; the caller bounds the wait.

    Raises Misconfigured if the server refuses us or has no JetStream.
    """
    journal = _Journal(client, without_password(url))
    try:
        async with asyncio.TaskGroup() as group:
            refusal = group.create_task(journal.refused.wait())
            connecting = group.create_task(_connect(client, url, name, journal))
            try:
                await asyncio.wait((refusal, connecting), return_when=asyncio.FIRST_COMPLETED)
            finally:
                refusal.cancel()
                await _end(connecting)
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    if journal.refused.is_set():
        raise Misconfigured("nats_url", "the server refuses this user and password")
    journal.is_started = True
    await _require_jetstream(client)


async def _end(connecting: "asyncio.Task[None]") -> None:
    """Cancels repeatedly: Python 3.11's `asyncio.wait_for` can lose a cancellation when a connection is refused."""
    while not connecting.done():
        connecting.cancel()
        await asyncio.wait((connecting,), timeout=_CANCEL_PAUSE)


async def _connect(client: Client, url: str, name: str, journal: "_Journal") -> None:
    await client.connect(
        url,
        name=name,
        inbox_prefix=f"_INBOX_{name}",
        error_cb=journal.error,
        disconnected_cb=journal.disconnected,
        reconnected_cb=journal.reconnected,
        connect_timeout=2,
        reconnect_time_wait=0.25,  # type: ignore[arg-type]  # passed to asyncio.sleep
        max_reconnect_attempts=-1,
        ping_interval=10,
        max_outstanding_pings=2,
        pending_size=16 * 1024 * 1024,
        flusher_queue_size=4096,
    )


async def _require_jetstream(client: Client) -> None:
    """Checks for JetStream. A cluster without a leader answers with a code, a server without JetStream not at all."""
    for attempt in range(_JETSTREAM_QUESTIONS):
        try:
            await client.jetstream().account_info()
        except ServiceUnavailableError as error:
            if error.err_code is None and attempt == _JETSTREAM_QUESTIONS - 1:
                raise Misconfigured("nats_url", "the server has no JetStream: start it with -js") from None
        except (NatsError, TimeoutError):
            return  # the users of the streams wait for them
        else:
            return
        await asyncio.sleep(_JETSTREAM_PAUSE)


async def close(client: Client) -> None:
    """Closes the connection, if there is one."""
    if client.is_connected or client.is_connecting or client.is_reconnecting:
        with suppress(OSError):  # it tries to send what is left
            await client.close()
        await asyncio.sleep(0)  # it cancels its tasks without waiting for them


class ConnectionGone(Exception):
    """The client will never connect again; only a new process will."""


def check_open(client: Client) -> None:
    """Raises ConnectionGone if the client is closed for good, after a refusal by the server."""
    if client.is_closed:
        raise ConnectionGone("the connection to NATS was closed for good")


class _Journal:
    """Logs a line per change, while the client reports every failed attempt, several each second."""

    def __init__(self, client: Client, address: str) -> None:
        self.refused = asyncio.Event()
        self.is_started = False
        self._client = client
        self._address = address
        self._last = ""

    async def error(self, error: Exception) -> None:
        text = str(error) or type(error).__name__
        if "authorization violation" in text.lower() and not self.is_started:
            self.refused.set()
        elif text != self._last:
            _log.warning("nats: %s: %s", self._address, text)
        self._last = text

    async def disconnected(self) -> None:
        if not self._client.is_closed:
            _log.warning("nats: disconnected")

    async def reconnected(self) -> None:
        _log.info("nats: reconnected")
        self._last = ""
