"""Reads a stream in order from a sequence on, for readers that keep nothing: an ephemeral consumer pushes to them.

The server numbers what it pushes, and tells the last number with its heartbeats, so a lost message is noticed. The
user opens the consumer again then, after the last message that came.
"""

import asyncio
import time
from collections.abc import Callable, Sequence

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

_HEARTBEAT = 1.0
_SILENCE = 4 * _HEARTBEAT
_ABANDONED = 30.0  # seconds after which the server deletes a consumer that nobody hears
_LEAVE = 2.0

Receive = Callable[[int, bytes], None]
"""Takes the sequence and the payload of a message."""


class OrderedReader:
    def __init__(self, connection: Client, stream: str, subjects: Sequence[str], receive: Receive) -> None:
        self._connection = connection
        self._js = connection.jetstream(timeout=2.0)
        self._stream = stream
        self._subjects = list(subjects)
        self._receive = receive
        self._subscription: Subscription | None = None
        self._name = ""
        self._reconnects = -1
        self._heard = 0.0
        self._delivered = 0
        self._has_gap = False
        self.pending = 0
        self.is_done = asyncio.Event()
        """Set once all that was stored before the consumer was opened has come."""

    async def open(self, first_sequence: int) -> None:
        """Begins with this sequence."""
        inbox = self._connection.new_inbox()
        self._reconnects = self._connection.stats["reconnects"]
        self._subscription = await self._connection.subscribe(inbox, cb=self._on_message)
        info = await self._js.add_consumer(
            self._stream,
            ConsumerConfig(
                filter_subjects=self._subjects,
                deliver_subject=inbox,
                deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
                opt_start_seq=max(first_sequence, 1),
                ack_policy=AckPolicy.NONE,
                mem_storage=True,
                num_replicas=1,
                idle_heartbeat=_HEARTBEAT,
                flow_control=True,
                inactive_threshold=_ABANDONED,
            ),
        )
        self._name, self._heard = info.name, time.monotonic()
        self.pending = info.num_pending or 0
        self._check_done()

    @property
    def is_broken(self) -> bool:
        """Returns whether messages may be missing, or none will come any more."""
        is_silent = time.monotonic() - self._heard > _SILENCE
        return self._has_gap or is_silent or self._connection.stats["reconnects"] != self._reconnects

    async def is_idle(self) -> bool:
        """Returns whether everything that the stream holds for this reader has come."""
        info = await self._js.consumer_info(self._stream, self._name)
        delivered = info.delivered.consumer_seq if info.delivered else 0
        return not info.num_pending and delivered == self._delivered

    async def close(self) -> None:
        try:
            async with asyncio.timeout(_LEAVE):
                if self._subscription:
                    await self._subscription.unsubscribe()
                if self._name and self._connection.is_connected:
                    await self._js.delete_consumer(self._stream, self._name)
        except (NatsError, TimeoutError, OSError):
            pass  # the server deletes it by itself

    async def _on_message(self, message: Msg) -> None:
        self._heard = time.monotonic()
        headers = message.headers or {}
        if headers.get("Status") == "100":
            if message.reply:
                await self._connection.publish(message.reply)
            elif stalled := headers.get("Nats-Consumer-Stalled"):
                await self._connection.publish(stalled)
            if int(headers.get("Nats-Last-Consumer", self._delivered)) != self._delivered:
                self._has_gap = True
            return
        numbers = message.metadata.sequence
        if self._has_gap or numbers.consumer != self._delivered + 1:
            self._has_gap = True
            return
        self._delivered += 1
        self._receive(numbers.stream, message.data)
        self._check_done()

    def _check_done(self) -> None:
        # The first messages may come before the answer that says how many there are.
        if self._name and self._delivered >= self.pending:
            self.is_done.set()
