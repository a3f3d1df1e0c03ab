"""The consumer of events: batches of envelopes, one transaction each, an acknowledgement after the commit.

A message that cannot be read, or an event whose handler fails for a reason of its own, is parked as a dead letter and
the consumer goes on. A database or broker that is away is waited for.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from google.protobuf.message import DecodeError, Message
from nats.aio.client import Client
from opentelemetry import metrics, trace
from opentelemetry.trace import Link, SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from postflow.bus.v1 import bus_pb2
from servicekit.bus.delivery import Ack, Delivery, Disposition, Park, RetryIn
from servicekit.bus.pull import PullLoop
from servicekit.bus.streams import ConsumerSpec
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.dead_letters import DeadLetters
from servicekit.pg.inbox import Inbox
from servicekit.run.transient import is_transient

log = logging.getLogger(__name__)

_AWAY_PAUSE = timedelta(seconds=1)
_ROOM = 2000
_MOST_PER_TRANSACTION = 250

_tracer = trace.get_tracer("servicekit.bus")
_meter = metrics.get_meter("servicekit.bus")
_applied = _meter.create_counter("postflow.events.applied", description="Events applied by a consumer, by type")
_ignored = _meter.create_counter(
    "postflow.events.ignored", description="Events of a type that the consumer does not know"
)
_parked = _meter.create_counter("postflow.events.parked", description="Messages put into the dead letters")
_PROPAGATOR = TraceContextTextMapPropagator()


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
        self._order = list(self._routes)
        self._database = database
        self._clock = clock
        self._inbox = Inbox(spec.durable)
        self._dead_letters = dead_letters
        self._linger = linger.total_seconds()
        self._arrived: list[Delivery] = []
        self._some = asyncio.Event()
        self._pull = PullLoop(connection, spec, self._receive, room=_ROOM, ensure_stream=ensure_stream)

    async def run(self, stop: asyncio.Event) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pull.run(stop))
            group.create_task(self._work(stop))

    def _receive(self, delivery: Delivery) -> None:
        self._arrived.append(delivery)
        self._some.set()

    async def _work(self, stop: asyncio.Event) -> None:
        while not (stop.is_set() and not self._arrived):
            try:
                async with asyncio.timeout(0.25):
                    await self._some.wait()
            except TimeoutError:
                continue
            # A moment's patience turns single events into batches; nobody waits for these.
            await asyncio.sleep(self._linger)
            self._some.clear()
            while self._arrived:
                batch, self._arrived = (
                    self._arrived[:_MOST_PER_TRANSACTION],
                    self._arrived[_MOST_PER_TRANSACTION:],
                )
                await self._take(batch)

    async def _take(self, batch: Sequence[Delivery]) -> None:
        readable: list[tuple[Delivery, list[Received]]] = []
        for delivery in batch:
            decoded = self._decode(delivery)
            if isinstance(decoded, Park):
                await self._answer(delivery, decoded)
            else:
                readable.append((delivery, decoded))
        try:
            await self._apply([received for _, events in readable for received in events])
        except Exception as error:  # the supervised edge of a consumer
            await self._isolate(readable, error)
            return
        for delivery, _ in readable:
            await self._answer(delivery, Ack())

    async def _isolate(self, readable: Sequence[tuple[Delivery, list[Received]]], error: Exception) -> None:
        """One bad event must not hold up its neighbours: each message is tried alone, and a failing one is parked."""
        if is_transient(error):
            log.warning("%s: waiting, the database is away: %s", self._spec.durable, error)
            for delivery, _ in readable:
                await self._answer(delivery, RetryIn(_AWAY_PAUSE))
            return
        for delivery, events in readable:
            await self._answer(delivery, await self._alone(events))

    async def _alone(self, events: Sequence[Received]) -> Disposition:
        for received in events:
            try:
                await self._apply([received])
            except Exception as error:  # the supervised edge of a consumer
                if is_transient(error):
                    return RetryIn(_AWAY_PAUSE)
                log.exception("%s: cannot apply event %s", self._spec.durable, received.event.id)
                await self._park(
                    received.event.type, f"{type(error).__name__} while applying", _envelope_of(received.event)
                )
        return Ack()

    async def _apply(self, events: Sequence[Received]) -> None:
        if not events:
            return
        with _tracer.start_as_current_span(f"{self._spec.durable} apply", kind=SpanKind.CONSUMER, links=_links(events)):
            await self._database.run(lambda tx: self._apply_in(tx, events))
        _applied.add(len(events), {"consumer": self._spec.durable})

    async def _apply_in(self, tx: Transaction, events: Sequence[Received]) -> None:
        now = await self._clock.now(tx.connection)
        fresh = await self._inbox.add(tx, [received.event.id for received in events], now=now)
        for name in self._order:
            ours = [each for each in events if each.event.type == name and each.event.id in fresh]
            if ours:
                await self._routes[name].apply(tx, ours, now)

    def _decode(self, delivery: Delivery) -> list[Received] | Park:
        try:
            envelope = bus_pb2.Envelope.FromString(delivery.payload)
        except DecodeError:
            return Park("the envelope cannot be decoded")
        if not envelope.events:
            return Park("the envelope holds no event")
        events: list[Received] = []
        for event in envelope.events:
            route = self._routes.get(event.type)
            if route is None:
                _ignored.add(1, {"consumer": self._spec.durable, "type": event.type})
                continue
            if not event.id or not event.organization_id:
                return Park(f"a {event.type} has no id or no organization")
            try:
                events.append(Received(event, route.message.FromString(event.payload)))
            except DecodeError:
                return Park(f"a {event.type} cannot be decoded")
        return events

    async def _answer(self, delivery: Delivery, disposition: Disposition) -> None:
        match disposition:
            case Ack():
                await delivery.ack()
            case RetryIn(delay):
                await delivery.retry_in(delay)
            case Park(reason):
                await self._park(delivery.subject, reason, delivery.payload)
                await delivery.terminate()
        self._pull.finished()

    async def _park(self, subject: str, reason: str, payload: bytes) -> None:
        log.error("%s: parked a message on %s: %s", self._spec.durable, subject, reason)
        _parked.add(1, {"consumer": self._spec.durable})
        await self._dead_letters.add(consumer=self._spec.durable, subject=subject, reason=reason, payload=payload)


def _envelope_of(event: bus_pb2.Event) -> bytes:
    return bus_pb2.Envelope(events=[event]).SerializeToString()


def _links(events: Sequence[Received]) -> list[Link]:
    """The origins that were sampled; most are not, and cost nothing here."""
    contexts = (
        trace.get_current_span(_PROPAGATOR.extract({"traceparent": received.event.traceparent})).get_span_context()
        for received in events
        if received.event.traceparent
    )
    return [Link(context) for context in contexts]
