"""The consumer of events: batches of envelopes, one transaction each, an acknowledgement after the commit.

A message that cannot be read, or an event whose handler fails for a reason of its own, is parked as a dead letter and
the consumer goes on. A database or broker that is away is waited for.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import assert_never

from google.protobuf.message import DecodeError, Message
from nats.aio.client import Client
from opentelemetry import metrics, trace
from opentelemetry.trace import SpanKind

from postflow.bus.v1 import bus_pb2
from servicekit.bus.delivery import Ack, Delivery, Disposition, Park, RetryIn
from servicekit.bus.pull import PullLoop
from servicekit.bus.streams import ConsumerSpec
from servicekit.failpoints import declare, failpoint
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.dead_letters import DeadLetters
from servicekit.pg.inbox import Inbox
from servicekit.run.loops import wait
from servicekit.run.telemetry import linked_trace
from servicekit.run.transient import is_transient

log = logging.getLogger(__name__)

_APPLIED = declare("consumer.applied")

_AWAY_PAUSE = timedelta(seconds=1)
_ROOM = 512
_EVENTS_PER_TRANSACTION = 500
_ENOUGH = 100  # messages that make a batch worth while
_LONGEST_ID = 200

_tracer = trace.get_tracer("servicekit.bus")
_meter = metrics.get_meter("servicekit.bus")
_applied = _meter.create_counter("postflow.events.applied", description="Events applied by a consumer")
_ignored = _meter.create_counter(
    "postflow.events.ignored", description="Events of a type that the consumer does not know"
)
_parked = _meter.create_counter("postflow.events.parked", description="Messages put into the dead letters")


@dataclass(frozen=True, slots=True)
class Received:
    """One event of an envelope, decoded."""

    event: bus_pb2.Event
    message: Message


Apply = Callable[[Transaction, Sequence[Received], datetime], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One message type and the use case that applies a batch of it."""

    message: type[Message]
    apply: Apply


@dataclass(frozen=True, slots=True)
class _Unreadable:
    reason: str
    payload: bytes


@dataclass(slots=True)
class _Letter:
    """A delivery, as far as it could be read."""

    delivery: Delivery
    events: list[Received] = field(default_factory=list)
    unreadable: list[_Unreadable] = field(default_factory=list)
    answer: Disposition = field(default_factory=Ack)


class EventConsumer:
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
    ) -> None:
        self.name = f"consumer {spec.durable}"
        self._spec = spec
        self._routes: Mapping[str, Route] = {route.message.DESCRIPTOR.full_name: route for route in routes}
        self._database = database
        self._clock = clock
        self._inbox = Inbox(spec.durable)
        self._dead_letters = dead_letters
        self._linger = linger.total_seconds()
        self._arrived: deque[Delivery] = deque()
        self._unanswered: set[Delivery] = set()
        self._some = asyncio.Event()
        self._pull = PullLoop(connection, spec, self._receive, room=_ROOM, ensure_stream=ensure_stream)

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`: the batch in hand is finished, the rest is given back at once."""
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
        """What waits here is not forgotten: only that of a dead process comes again after `ack_wait`."""
        while not (await asyncio.wait((over,), timeout=self._spec.ack_wait.total_seconds() / 3))[0]:
            for delivery in tuple(self._unanswered):
                if delivery in self._unanswered:  # said after the answer, it would delay a redelivery
                    await delivery.in_progress()

    async def _wake_when(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._some.set()

    async def _work(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            await self._some.wait()
            if len(self._arrived) < _ENOUGH:
                # A moment's patience turns single events into batches; nobody waits for these.
                await wait(stop, self._linger)
            self._some.clear()
            while self._arrived and not stop.is_set():
                if not await self._take(self._next_batch()):
                    await wait(stop, _AWAY_PAUSE.total_seconds())

    def _next_batch(self) -> list[_Letter]:
        batch: list[_Letter] = []
        size = 0
        while self._arrived and size < _EVENTS_PER_TRANSACTION:
            letter = self._read(self._arrived.popleft())
            batch.append(letter)
            size += max(len(letter.events), 1)
        return batch

    async def _take(self, batch: Sequence[_Letter]) -> bool:
        """False: the database is away, and everything comes again."""
        try:
            await self._apply_each([received for letter in batch for received in letter.events])
            await self._park_unreadable(batch)
        except Exception as error:
            if not is_transient(error):
                raise
            log.warning("%s: waiting, the database is away: %r", self._spec.durable, error)
            for letter in batch:
                await self._answer(letter.delivery, RetryIn(_AWAY_PAUSE))
            return False
        await failpoint(_APPLIED)
        for letter in batch:
            await self._answer(letter.delivery, letter.answer)
        return True

    async def _apply_each(self, events: Sequence[Received]) -> None:
        """One bad event must not hold up its neighbours: a batch that fails is halved until it is found, and parked."""
        if not events:
            return
        try:
            await self._apply(events)
        except Exception as error:
            if is_transient(error):
                raise
            if len(events) == 1:
                await self._park_event(events[0], error)
                return
            middle = len(events) // 2
            await self._apply_each(events[:middle])
            await self._apply_each(events[middle:])

    async def _apply(self, events: Sequence[Received]) -> None:
        origins = (received.event.traceparent for received in events if received.event.traceparent)
        with linked_trace(_tracer, f"{self._spec.durable} apply", origins, kind=SpanKind.CONSUMER):
            count = await self._database.run(lambda tx: self._apply_in(tx, events))
        _applied.add(count, {"consumer": self._spec.durable})

    async def _apply_in(self, tx: Transaction, events: Sequence[Received]) -> int:
        """How many of them were new."""
        now = await self._clock.now(tx.connection)
        fresh = await self._inbox.add(tx, [received.event.id for received in events], now=now)
        by_type: dict[str, dict[str, Received]] = {}
        for received in events:
            if received.event.id in fresh:
                by_type.setdefault(received.event.type, {}).setdefault(received.event.id, received)
        for name, route in self._routes.items():
            if ours := by_type.get(name):
                await route.apply(tx, list(ours.values()), now)
        return len(fresh)

    async def _park_event(self, received: Received, error: Exception) -> None:
        """Together with its inbox row: an event is parked once, however often it is delivered."""
        event = received.event
        log.error("%s: cannot apply event %s of type %s", self._spec.durable, event.id, event.type, exc_info=error)
        async with self._database.transaction() as tx:
            now = await self._clock.now(tx.connection)
            if await self._inbox.add(tx, [event.id], now=now):
                await self._dead_letters.add_in(
                    tx,
                    consumer=self._spec.durable,
                    subject=event.type,
                    reason=f"{type(error).__name__} while applying",
                    payload=_envelope_of(event),
                    now=now,
                )
        _parked.add(1, {"consumer": self._spec.durable})

    async def _park_unreadable(self, batch: Sequence[_Letter]) -> None:
        parked = [(letter.delivery.subject, each) for letter in batch for each in letter.unreadable]
        if not parked:
            return
        async with self._database.transaction() as tx:
            now = await self._clock.now(tx.connection)
            for subject, each in parked:
                await self._dead_letters.add_in(
                    tx,
                    consumer=self._spec.durable,
                    subject=subject,
                    reason=each.reason,
                    payload=each.payload,
                    now=now,
                )
        for subject, each in parked:
            log.error("%s: parked a message on %s: %s", self._spec.durable, subject, each.reason)
        _parked.add(len(parked), {"consumer": self._spec.durable})

    def _read(self, delivery: Delivery) -> _Letter:
        try:
            envelope = bus_pb2.Envelope.FromString(delivery.payload)
        except DecodeError:
            return _refused(delivery, "the envelope cannot be decoded")
        if not envelope.events:
            return _refused(delivery, "the envelope holds no event")
        letter = _Letter(delivery)
        for read in self._decode(envelope.events):
            if isinstance(read, Received):
                letter.events.append(read)
            else:
                letter.unreadable.append(read)
        return letter

    def _decode(self, events: Sequence[bus_pb2.Event]) -> Iterator[Received | _Unreadable]:
        for event in events:
            route = self._routes.get(event.type)
            if route is None:
                _ignored.add(1, {"consumer": self._spec.durable, "type": event.type})
            elif not (_is_id(event.id) and _is_id(event.organization_id)):
                yield _Unreadable(f"a {event.type} has no usable id or organization", _envelope_of(event))
            else:
                try:
                    yield Received(event, route.message.FromString(event.payload))
                except DecodeError:
                    yield _Unreadable(f"a {event.type} cannot be decoded", _envelope_of(event))

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


def _refused(delivery: Delivery, reason: str) -> _Letter:
    return _Letter(delivery, unreadable=[_Unreadable(reason, delivery.payload)], answer=Park(reason))


def _envelope_of(event: bus_pb2.Event) -> bytes:
    return bus_pb2.Envelope(events=[event]).SerializeToString()


def _is_id(text: str) -> bool:
    """PostgreSQL takes no NUL in a text, and an index no longer key than a third of a page."""
    return 0 < len(text) <= _LONGEST_ID and text.isprintable()
