"""The pull loop: requests as many messages as there is room for, and notices when the server stops answering.

Messages come by callback on one inbox, which is several times cheaper than fetching. Requests carry a heartbeat. After
a silence of three beats, a reconnect or a refusal the loop abandons outstanding requests, makes sure that stream and
consumer exist, and requests again: a restarted or emptied server costs seconds and no message.
"""

import asyncio
import json
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError
from nats.js.api import StreamInfo
from opentelemetry import metrics

from servicekit.bus.connection import check_open
from servicekit.bus.delivery import Answers, Delivery, still_pending, stream_sequence
from servicekit.bus.streams import LONGEST_REQUEST, ConsumerSpec, ensure_consumer
from servicekit.run.loops import wait

_log = logging.getLogger(__name__)

_meter = metrics.get_meter(__name__)
_pending = _meter.create_gauge(
    "postflow.consumer.pending", description="Messages in the stream that the consumer has not been given yet"
)

_LOOK_PERIOD = 0.5
_FIRST_PAUSE = 0.25
_LAST_PAUSE = 2.0
_LEAVE_SECONDS = 0.4
_QUIET_SECONDS = 0.1
_EVICT_AFTER = 60.0


class PullLoop:
    """Delivers to `receive`; the consumer calls `finished` once per delivery, which makes room for another."""

    def __init__(
        self,
        connection: Client,
        spec: ConsumerSpec,
        receive: Callable[[Delivery], None],
        *,
        room: int,
        ensure_stream: Callable[[], Awaitable[object]],
        heartbeat: timedelta = timedelta(seconds=2),
    ) -> None:
        self._connection = connection
        self._js = connection.jetstream()
        self._spec = spec
        self._receive = receive
        self._room = room
        self._ensure_stream = ensure_stream
        self._heartbeat = heartbeat.total_seconds()
        self._inbox = ""
        self._generation = 0
        self._held = 0
        self._asked = 0
        self._heard = 0.0
        self._begun_on = 0
        self._broken = True
        self._failures = 0
        self._complaint = ""
        self._evict_at = 0.0
        self._stream_time: datetime | None = None
        self._highest = 0
        self._last_reply = ""
        self._answers = Answers(connection)
        self._wake = asyncio.Event()

    @property
    def held(self) -> int:
        return self._held

    def finished(self, count: int = 1) -> None:
        self._held -= count
        if self._want() >= self._least():
            self._wake.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Pulls until `stop`; the consumer keeps the deliveries that it has."""
        _pending.set(0, {"consumer": self._spec.durable})
        self._inbox = self._connection.new_inbox()
        subscription = await self._connection.subscribe(f"{self._inbox}.*", cb=self._on_message)
        async with asyncio.TaskGroup() as group:
            stopped = group.create_task(self._wake_when(stop))
            while not stop.is_set():
                if self._is_broken():
                    await self._unless_reconnected(group.create_task(self._restart(stop)), stopped)
                else:
                    await self._ask()
                    await wait(self._wake, _LOOK_PERIOD)
                    self._wake.clear()
                self._observe()
            stopped.cancel()
        await self._leave(subscription)

    async def _unless_reconnected(self, attempt: asyncio.Task[None], stopped: asyncio.Task[None]) -> None:
        """Waits for the attempt, but cancels it after a reconnect: the old connection's requests stay unanswered."""
        connections = self._connections()
        while not (attempt.done() or stopped.done()) and self._connections() == connections:
            await asyncio.wait((attempt, stopped), timeout=_LOOK_PERIOD, return_when=asyncio.FIRST_COMPLETED)
        attempt.cancel()

    async def _wake_when(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._wake.set()

    def _is_broken(self) -> bool:
        check_open(self._connection)
        if not self._broken:
            if self._connections() != self._begun_on:
                self._break("reconnected")
            elif self._connection.is_connected and _now() - self._heard > 3 * self._heartbeat + 0.5:
                self._break("the server has gone silent")
        return self._broken

    def _break(self, why: str) -> None:
        """Holds back answers until the stream has proved to be the same."""
        self._complain(why)
        self._broken = True
        self._answers.suspend()

    async def _restart(self, stop: asyncio.Event) -> None:
        if self._failures or not self._connection.is_connected:
            await wait(stop, min(_FIRST_PAUSE * 2.0 ** min(self._failures, 10), _LAST_PAUSE) * random.uniform(0.7, 1))
        if not self._connection.is_connected:
            return
        self._failures += 1
        connections, delivered = self._connections(), self._highest
        try:
            await self._ensure_stream()
            stream = await self._js.stream_info(self._spec.stream)
            await ensure_consumer(self._js, self._spec, evict=_now() >= self._evict_at)
        except (NatsError, TimeoutError, OSError) as error:
            self._evict_at = min(self._evict_at, _now() + _EVICT_AFTER)
            self._complain(f"not available yet: {str(error) or type(error).__name__}")
            return
        self._recognise(stream, delivered)
        self._evict_at = math.inf
        self._generation += 1
        self._asked, self._heard, self._begun_on, self._broken = 0, _now(), connections, False
        await self._answers.resume()

    def _recognise(self, stream: StreamInfo, delivered: int) -> None:
        known = self._stream_time in {None, stream.created}
        if not known or stream.state.last_seq < delivered:
            _log.warning("%s: the stream was wiped or rolled back", self._spec.durable)
            self._answers.void()
            self._answers = Answers(self._connection)
            self._highest = 0
        self._stream_time = stream.created

    def _observe(self) -> None:
        if self._last_reply:
            _pending.set(still_pending(self._last_reply), {"consumer": self._spec.durable})
            self._last_reply = ""

    def _connections(self) -> int:
        return self._connection.stats["reconnects"]

    def _want(self) -> int:
        return self._room - self._held - self._asked

    def _least(self) -> int:
        return max(self._room // 4, 1)

    async def _ask(self) -> None:
        want = self._want()
        if want < self._least():
            if self._asked == 0:
                self._heard = _now()  # no request is outstanding, so no heartbeat is due
            return
        longest = LONGEST_REQUEST.total_seconds()
        request = {"batch": want, "expires": int(longest * 1e9), "idle_heartbeat": int(self._heartbeat * 1e9)}
        self._asked += want
        try:
            await self._connection.publish(
                f"$JS.API.CONSUMER.MSG.NEXT.{self._spec.stream}.{self._spec.durable}",
                json.dumps(request).encode(),
                reply=self._reply_subject(),
            )
        except NatsError as error:
            self._break(f"cannot request: {error}")

    def _reply_subject(self) -> str:
        return f"{self._inbox}.{self._generation}"

    async def _on_message(self, message: Msg) -> None:
        # A delivery carries the subject under which it was published; only the server's own messages carry our inbox.
        if message.reply.startswith("$JS.ACK."):
            self._take(message)
        elif message.subject == self._reply_subject():
            self._hear(message)

    def _take(self, message: Msg) -> None:
        self._heard, self._failures = _now(), 0
        self._held += 1
        # Messages of abandoned requests count, too: we may request a few too many, never too few.
        self._asked = max(self._asked - 1, 0)
        self._highest = max(self._highest, stream_sequence(message.reply))
        self._last_reply = message.reply
        self._receive(Delivery(self._answers, message))

    def _hear(self, message: Msg) -> None:
        headers = message.headers or {}
        match headers.get("Status"):
            case "100":
                self._heard, self._failures, self._complaint = _now(), 0, ""
                return
            case "408" | "404":
                self._heard = _now()
                self._asked = max(self._asked - int(headers.get("Nats-Pending-Messages", self._asked)), 0)
            case status:
                description = headers.get("Description", "").strip().partition("\n")[0]
                # The server answers so while it deletes a stream. A stream that is created before it has finished
                # loses its folder, and accepts no message until the server restarts.
                self._failures = max(self._failures, 1)
                self._break(f"refused: {status} {description}")
        self._wake.set()

    def _complain(self, text: str) -> None:
        """Logs a complaint, once in a row."""
        if text != self._complaint:
            _log.warning("%s: %s", self._spec.durable, text)
        self._complaint = text

    async def _leave(self, subscription: Subscription) -> None:
        """Waits for messages in transit, so that the consumer can give them back at once."""
        if not self._connection.is_connected:
            return
        await self._until_quiet()
        try:
            async with asyncio.timeout(_LEAVE_SECONDS):
                await subscription.drain()  # type: ignore[no-untyped-call]
        except (NatsError, TimeoutError) as error:
            _log.info("%s: left without draining: %r", self._spec.durable, error)

    async def _until_quiet(self) -> None:
        """Waits until no message has come for a moment, a few moments at most.

        The server drops messages that it has taken out of the stream for a subscription that is gone: they would be
        redelivered only after `ack_wait`.
        """
        end = _now() + _LEAVE_SECONDS
        while (now := _now()) < end and (rest := self._heard + _QUIET_SECONDS - now) > 0:
            self._wake.clear()
            await wait(self._wake, rest)


def _now() -> float:
    return time.monotonic()
