"""The pull loop: asks the server for as many messages as there is room for, and notices when it has stopped answering.

Messages come by callback on one inbox, which is several times cheaper than fetching. Requests carry a heartbeat; a
silence of three beats, a reconnect or a refusal throws away what is outstanding, makes sure that stream and consumer
exist and asks again, so that a restarted or emptied server costs seconds and no message.
"""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from servicekit.bus.delivery import Delivery
from servicekit.bus.streams import ConsumerSpec, ensure_consumer

log = logging.getLogger(__name__)

_EXPIRES = 30.0
_HEARTBEAT = 2.0
_SILENCE = 3 * _HEARTBEAT + 0.5
_STOP_CHECK = 0.25
_REFUSED_PAUSE = 0.5


class PullLoop:
    """Delivers to `receive`; the consumer calls `finished` once for every delivery, which makes room for another."""

    def __init__(
        self,
        connection: Client,
        spec: ConsumerSpec,
        receive: Callable[[Delivery], None],
        *,
        room: int,
        ensure_stream: Callable[[], Awaitable[object]],
    ) -> None:
        self._connection = connection
        self._js = connection.jetstream()
        self._spec = spec
        self._receive = receive
        self._room = room
        self._ensure_stream = ensure_stream
        self._inbox = ""
        self._held = 0
        self._asked = 0
        self._heard = 0.0
        self._reconnects = 0
        self._broken = True
        self._wake = asyncio.Event()

    @property
    def held(self) -> int:
        return self._held

    def finished(self, count: int = 1) -> None:
        self._held -= count
        if self._want() >= self._room // 4:
            self._wake.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Pulls until `stop`; deliveries already made stay with the consumer."""
        self._inbox = self._connection.new_inbox()
        subscription = await self._connection.subscribe(self._inbox, cb=self._on_message)
        while not stop.is_set():
            if self._broken or self._connection.stats["reconnects"] != self._reconnects:
                await self._begin_again()
            elif time.monotonic() - self._heard > _SILENCE:
                log.warning("%s: the server has gone silent", self._spec.durable)
                self._broken = True
            else:
                await self._ask()
            await self._pause(_REFUSED_PAUSE if self._broken else _STOP_CHECK)
        if self._connection.is_connected:
            await subscription.unsubscribe()

    async def _begin_again(self) -> None:
        self._reconnects = self._connection.stats["reconnects"]
        try:
            await self._ensure_stream()
            await ensure_consumer(self._js, self._spec)
        except (NatsError, TimeoutError, OSError) as error:
            log.warning("%s: not available yet: %s", self._spec.durable, error or type(error).__name__)
            return
        self._asked = 0
        self._heard = time.monotonic()
        self._broken = False
        self._wake.set()

    def _want(self) -> int:
        return self._room - self._held - self._asked

    async def _ask(self) -> None:
        want = self._want()
        if want < max(self._room // 4, 1):
            if self._asked == 0:
                self._heard = time.monotonic()  # nothing is outstanding, so there is nothing to hear
            return
        request = {"batch": want, "expires": int(_EXPIRES * 1e9), "idle_heartbeat": int(_HEARTBEAT * 1e9)}
        self._asked += want
        try:
            await self._connection.publish(
                f"$JS.API.CONSUMER.MSG.NEXT.{self._spec.stream}.{self._spec.durable}",
                json.dumps(request).encode(),
                reply=self._inbox,
            )
        except NatsError as error:
            log.warning("%s: cannot ask: %s", self._spec.durable, error)
            self._broken = True

    async def _on_message(self, message: Msg) -> None:
        self._heard = time.monotonic()
        if message.reply.startswith("$JS.ACK."):
            self._asked = max(self._asked - 1, 0)
            self._held += 1
            self._receive(Delivery(self._connection, message))
            return
        headers = message.headers or {}
        match headers.get("Status"):
            case "100":
                return
            case "408" | "404":
                self._asked = max(self._asked - int(headers.get("Nats-Pending-Messages", self._asked)), 0)
            case status:
                log.info("%s: %s %s", self._spec.durable, status, headers.get("Description", ""))
                self._broken = True
        self._wake.set()

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return
        self._wake.clear()
