"""The consumer of events: applies batches of envelopes, one transaction each, and acknowledges after the commit.

An unreadable message is parked as a dead letter; `servicekit.messaging.troubles` is the rule for an event that cannot
be applied. The consumer waits for an unreachable database or broker.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import assert_never

from google.protobuf.message import DecodeError
from nats.aio.client import Client
from opentelemetry import metrics

from postflow.bus.v1 import bus_pb2
from servicekit.bus.delivery import Ack, Delivery, Disposition, Park, RetryIn
from servicekit.bus.pull import PullLoop
from servicekit.bus.streams import ConsumerSpec
from servicekit.failpoints import declare, failpoint
from servicekit.messaging.applier import EventApplier
from servicekit.messaging.routes import Apply, Received, Route, Unreadable
from servicekit.messaging.troubles import Patience
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.dead_letters import DeadLetters
from servicekit.run.loops import wait
from servicekit.run.transient import is_transient

__all__ = ["Apply", "EventConsumer", "Patience", "Received", "Route"]

_log = logging.getLogger(__name__)

_APPLIED = declare("consumer.applied")

_UNREACHABLE_PAUSE = timedelta(seconds=1)
_ROOM = 512
_EVENTS_PER_TRANSACTION = 500
# A batch worth its transaction, of single events or of full messages.
_ENOUGH_MESSAGES = 100
_ENOUGH_BYTES = 64 * 1024

_meter = metrics.get_meter(__name__)
_ignored = _meter.create_counter(
    "postflow.events.ignored", description="Events of a type that the consumer does not know"
)


@dataclass(slots=True)
class _Letter:
    """A delivery, with the events that could be read and those that could not."""

    delivery: Delivery
    events: list[Received] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    answer: Disposition = field(default_factory=Ack)


class EventConsumer:
    """Follows events by one durable consumer and applies them to one database."""

    def __init__(
        self,
        *,
        connection: Client,
        spec: ConsumerSpec,
        routes: Sequence[Route],
        database: Database,
        clock: DatabaseClock,
        dead_letters: DeadLetters,
        ensure_stream: Callable[[], Awaitable[object]],
        linger: timedelta = timedelta(milliseconds=50),
        patience: Patience | None = None,
    ) -> None:
        self.name = f"consumer {spec.durable}"
        self._spec = spec
        self.applier = EventApplier(
            consumer=spec.durable,
            routes=routes,
            database=database,
            clock=clock,
            dead_letters=dead_letters,
            patience=patience or Patience(),
        )
        self._linger = linger.total_seconds()
        self._arrived: deque[Delivery] = deque()
        self._unanswered: set[Delivery] = set()
        self._some = asyncio.Event()
        self._pull = PullLoop(connection, spec, self._receive, room=_ROOM, ensure_stream=ensure_stream)

    async def run(self, stop: asyncio.Event) -> None:
        """Runs until `stop`; then finishes the current batch, and gives the rest back at once."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._wake_when(stop))
            work = group.create_task(self._work(stop))
            group.create_task(self._keep_until(work))
            await self._pull.run(stop)
        while self._arrived:
            await self._answer(self._arrived.popleft(), RetryIn(timedelta(0)))

    def _receive(self, delivery: Delivery) -> None:
        self._arrived.append(delivery)
        self._unanswered.add(delivery)
        self._some.set()

    async def _keep_until(self, over: asyncio.Task[None]) -> None:
        """Keeps extending the ack deadline of messages that we hold, so that only a dead process's are redelivered."""
        while not (await asyncio.wait((over,), timeout=self._spec.ack_wait.total_seconds() / 3))[0]:
            for delivery in tuple(self._unanswered):
                if delivery in self._unanswered:  # after the answer it would delay a redelivery
                    await delivery.in_progress()
            self.applier.look_again()

    async def _wake_when(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._some.set()

    async def _work(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            if not self._arrived:
                self._some.clear()
                await self._some.wait()
            if not self._is_enough():
                # A short pause turns single events into batches; nobody waits for these.
                await wait(stop, self._linger)
            if self._arrived and not stop.is_set() and not await self._take(self._next_batch()):
                await wait(stop, _UNREACHABLE_PAUSE.total_seconds())

    def _is_enough(self) -> bool:
        if len(self._arrived) >= _ENOUGH_MESSAGES:
            return True
        return sum(len(delivery.payload) for delivery in self._arrived) >= _ENOUGH_BYTES

    def _next_batch(self) -> list[_Letter]:
        batch: list[_Letter] = []
        size = 0
        while self._arrived and size < _EVENTS_PER_TRANSACTION:
            letter = self._read(self._arrived.popleft())
            batch.append(letter)
            size += max(len(letter.events), 1)
        return batch

    async def _take(self, batch: Sequence[_Letter]) -> bool:
        """Applies a batch. Returns False if all of it is to be redelivered, after a failure that is not an event's."""
        try:
            later = await self.applier.apply([received for letter in batch for received in letter.events])
            if later:
                for letter in batch:
                    _keep(letter, later)
            done = (letter for letter in batch if not isinstance(letter.answer, RetryIn))
            await self.applier.park_unreadable([each for letter in done for each in letter.unreadable])
        except Exception as error:  # noqa: BLE001 - the supervised edge of a consumer
            pause = self._pause_after(error)
            for letter in batch:
                await self._answer(letter.delivery, RetryIn(pause))
            return False
        self.applier.works()
        await failpoint(_APPLIED)
        for letter in batch:
            await self._answer(letter.delivery, letter.answer)
        return True

    def _pause_after(self, error: Exception) -> timedelta:
        if is_transient(error):
            _log.warning("%s: waiting for the database: %r", self._spec.durable, error)
            return _UNREACHABLE_PAUSE
        return timedelta(seconds=self.applier.broken(error))

    def _read(self, delivery: Delivery) -> _Letter:
        try:
            envelope = bus_pb2.Envelope.FromString(delivery.payload)
        except DecodeError:
            return _refused(delivery, "the envelope cannot be decoded")
        if not envelope.events:
            return _refused(delivery, "the envelope holds no event")
        letter = _Letter(delivery)
        read, subject = self.applier.routes.read, delivery.subject
        for event in envelope.events:
            match read(event, subject):
                case Received() as received:
                    letter.events.append(received)
                case Unreadable() as unreadable:
                    letter.unreadable.append(unreadable)
                case None if not self.applier.routes.follows(event.type):
                    _ignored.add(1, {"consumer": self._spec.durable, "type": event.type})
        return letter

    async def _answer(self, delivery: Delivery, disposition: Disposition) -> None:
        self._unanswered.discard(delivery)
        match disposition:
            case Ack():
                await delivery.ack()
            case RetryIn(delay):
                await delivery.retry_in(delay)
            case Park():
                await delivery.terminate()
            case _:
                assert_never(disposition)
        self._pull.finished()


def _keep(letter: _Letter, later: Mapping[str, float]) -> None:
    """Has a message redelivered while one of its events is to be retried; the inbox filters the others."""
    pauses = [later[received.id] for received in letter.events if received.id in later]
    if pauses:
        letter.answer = RetryIn(timedelta(seconds=min(pauses)))


def _refused(delivery: Delivery, reason: str) -> _Letter:
    unreadable = Unreadable(subject=delivery.subject, reason=reason, payload=delivery.payload)
    return _Letter(delivery, unreadable=[unreadable], answer=Park(reason))
