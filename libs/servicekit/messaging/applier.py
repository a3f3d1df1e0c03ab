"""Applies the events of a consumer: one transaction for a batch, and the rule of `servicekit.messaging.troubles`."""

import logging
import time
from collections.abc import Callable, Sequence

from google.protobuf.message import DecodeError
from opentelemetry import metrics, trace
from opentelemetry.trace import SpanKind

from servicekit.faults import Fault
from servicekit.messaging.routes import Received, Route, Routes, Unreadable, by_type, envelope_of
from servicekit.messaging.troubles import Patience, Round, Troubles
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.dead_letters import DeadLetter, DeadLetters, show_none
from servicekit.pg.errors import is_data_error, is_late, sqlstate
from servicekit.pg.inbox import Inbox
from servicekit.run.telemetry import linked_trace
from servicekit.run.transient import is_transient
from servicekit.run.zeros import from_zero

_log = logging.getLogger(__name__)

_tracer = trace.get_tracer(__name__)
_meter = metrics.get_meter(__name__)
_applied = _meter.create_counter("postflow.events.applied", description="Events applied by a consumer")
_parked = _meter.create_counter("postflow.events.parked", description="Messages parked as dead letters")
_failed = _meter.create_counter(
    "postflow.events.failed", description="Attempts at single events that failed because of a defect on our side"
)
_failing = _meter.create_gauge(
    "postflow.consumer.failing", description="1 while events cannot be applied because of a defect on our side"
)


class EventApplier:
    """Applies events for one consumer, which names its inbox and its dead letters."""

    def __init__(
        self,
        *,
        consumer: str,
        routes: Sequence[Route],
        database: Database,
        clock: DatabaseClock,
        dead_letters: DeadLetters,
        patience: Patience,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.consumer = consumer
        self.routes = Routes(routes)
        self._database = database
        self._clock = clock
        self._dead_letters = dead_letters
        self._inbox = Inbox(consumer)
        self._troubles = Troubles(patience)
        self._first_pause = patience.first_pause.total_seconds()
        self._monotonic = monotonic
        self._logged: set[tuple[str, str]] = set()
        for counter in (_applied, _parked, _failed):
            from_zero(counter, {"consumer": consumer})
        show_none(consumer)
        self._show()

    @property
    def is_failing(self) -> bool:
        return self._troubles.is_failing

    @property
    def failing_types(self) -> list[str]:
        return self._troubles.failing_types()

    async def apply(self, events: Sequence[Received]) -> dict[str, float]:
        """Applies or parks events. Returns the others by id, with the seconds after which they are to be redelivered.

        Raises if the database is unreachable: then all of them are to be redelivered.
        """
        this = Round(())
        if self._troubles.any:
            await self._apply_with_troubles(events, this)
        else:
            await self._attempt(events, this)
        for name in this.resting():
            self._troubles.rests(name, self._monotonic())
        self._show()
        return {each.id: self._pause(each) or self._first_pause for each in events if each.id in this.kept}

    async def _apply_with_troubles(self, events: Sequence[Received], this: Round) -> None:
        this.kept.update(each.id for each in events if self._pause(each))
        ready = [each for each in events if each.id not in this.kept]
        suspects = [each for each in ready if self._is_suspect(each)]
        await self._attempt([each for each in ready if not self._is_suspect(each)], this)
        for each in suspects:
            await self._attempt([each], this)

    async def redrive(self, letter: DeadLetter) -> None:
        """Applies a parked message and closes its letter in the same transaction. Raises the reason for a failure."""
        events = self.routes.read_all(letter.payload)
        await self._database.run(lambda tx: self._redrive_in(tx, letter, events))

    async def _redrive_in(self, tx: Transaction, letter: DeadLetter, events: Sequence[Received]) -> None:
        now = await self._clock.now(tx)
        if await self._dead_letters.redriven_in(tx, letter.id, now=now):
            # Parking has put them into the inbox, so the inbox does not filter here.
            await self._inbox.add(tx, [received.id for received in events], now=now)
            await self.routes.apply(tx, events, now)

    def broken(self, error: Exception) -> float:
        """Records a failure outside of a handler; returns the seconds before the consumer goes on."""
        pause = self._troubles.broken()
        self._complain("", error)
        self._show()
        return pause

    def works(self) -> None:
        self._troubles.works()
        self._show()

    def look_again(self) -> None:
        """Forgets events that other replicas have applied; called from time to time."""
        self._troubles.forget_stale(self._monotonic())
        self._show()

    def _pause(self, received: Received) -> float:
        return self._troubles.pause(received.type, received.id, self._monotonic())

    def _is_suspect(self, received: Received) -> bool:
        return self._troubles.is_suspect(received.type, received.id)

    async def _attempt(self, events: Sequence[Received], this: Round) -> None:
        """Halves a batch that fails until the culprit is found: one event must not delay its neighbours."""
        if this.any_failed:
            events = [each for each in events if not self._is_hopeless(each, this)]
        if not events:
            return
        try:
            fresh = await self._apply(events)
        except Exception as error:
            if is_unreachable(error):
                raise
            if len(events) == 1:
                await self._blame(events[0], error, this)
                return
            for part in _parts(events):
                await self._attempt(part, this)
        else:
            self._succeeded(events, fresh, this)

    def _is_hopeless(self, received: Received, this: Round) -> bool:
        if not this.is_over_for(received.type):
            return False
        this.kept.add(received.id)
        return True

    def _succeeded(self, events: Sequence[Received], fresh: set[str], this: Round) -> None:
        _applied.add(len(fresh), {"consumer": self.consumer})
        for name, each in by_type(events).items():
            ids = {received.id for received in each}
            new = len(ids & fresh)
            self._troubles.applied(name, ids, new)
            if new:
                this.applied(name)

    async def _apply(self, events: Sequence[Received]) -> set[str]:
        """Applies events in one transaction; returns the ids that were new."""
        origins = (received.event.traceparent for received in events if received.event.traceparent)
        with linked_trace(_tracer, f"{self.consumer} apply", origins, kind=SpanKind.CONSUMER) as span:
            if span.is_recording():
                span.set_attribute("messaging.batch.message_count", len(events))
                span.set_attribute("postflow.event_types", sorted(by_type(events)))
            return await self._database.run(lambda tx: self._apply_in(tx, events))

    async def _apply_in(self, tx: Transaction, events: Sequence[Received]) -> set[str]:
        now = await self._clock.now(tx)
        fresh = await self._inbox.add(tx, [received.id for received in events], now=now)
        if len(fresh) < len(events):
            events = [received for received in events if received.id in fresh]
        await self.routes.apply(tx, events, now)
        return fresh

    async def _blame(self, received: Received, error: Exception, this: Round) -> None:
        """Parks or keeps an event that failed alone."""
        if is_bad(error):
            _log.error("%s: event %s is bad", self.consumer, received.id, exc_info=error, extra=_about(received))
            await self._park_or_keep(received, reason_of(error), this)
            return
        event = received.event
        if self._failed(received, error, this):
            attempts = self._troubles.attempts_of(event.type, event.id)
            _log.error("%s: only event %s keeps failing; it is parked", self.consumer, event.id, exc_info=error)
            await self._park_or_keep(
                received, f"{reason_of(error)}; {attempts} attempts while others were applied", this
            )

    async def _park_or_keep(self, received: Received, reason: str, this: Round) -> None:
        """Parks an event; if that fails, it stays in the stream."""
        try:
            await self._park(received, reason)
        except Exception as error:
            if is_transient(error):
                raise
            self._failed(received, error, this)
        else:
            this.kept.discard(received.id)

    def _failed(self, received: Received, error: Exception, this: Round) -> bool:
        event = received.event
        _failed.add(1, {"consumer": self.consumer})
        this.failed_alone(event.type, event.id, again=self._is_suspect(received))
        self._complain(event.type, error)
        return self._troubles.failed_alone(event.type, event.id, self._monotonic())

    async def _park(self, received: Received, reason: str) -> None:
        """Parks an event together with its inbox row, so that it is parked only once if it is redelivered."""
        event = received.event
        async with self._database.transaction() as tx:
            now = await self._clock.now(tx)
            if await self._inbox.add(tx, [event.id], now=now):
                await self._dead_letters.add_in(
                    tx,
                    consumer=self.consumer,
                    subject=event.type,
                    reason=reason,
                    payload=envelope_of(event),
                    now=now,
                    organization_id=event.organization_id,
                )
        self._troubles.parked(event.type, event.id)
        _parked.add(1, {"consumer": self.consumer})

    async def park_unreadable(self, parked: Sequence[Unreadable]) -> None:
        if not parked:
            return
        async with self._database.transaction() as tx:
            now = await self._clock.now(tx)
            for each in parked:
                await self._dead_letters.add_in(
                    tx,
                    consumer=self.consumer,
                    subject=each.subject,
                    reason=each.reason,
                    payload=each.payload,
                    now=now,
                )
        for each in parked:
            _log.error("%s: parked a message on %s: %s", self.consumer, each.subject, each.reason)
        _parked.add(len(parked), {"consumer": self.consumer})

    def _complain(self, type_name: str, error: Exception) -> None:
        """Logs a kind of error once, with its stack, until the type has worked again."""
        kind = (type_name, f"{type(error).__name__} {sqlstate(error)}")
        if kind not in self._logged:
            self._logged.add(kind)
            what = type_name or "its messages"
            _log.error("%s: cannot apply %s, they stay in the stream", self.consumer, what, exc_info=error)

    def _show(self) -> None:
        troubled = {*self._troubles.failing_types(), *([""] if self._troubles.is_broken else [])}
        for name in {name for name, _ in self._logged} - troubled:
            _log.warning("%s: applies %s again", self.consumer, name or "its messages")
        self._logged = {(name, error) for name, error in self._logged if name in troubled}
        _failing.set(int(bool(troubled)), {"consumer": self.consumer})


def is_unreachable(error: BaseException) -> bool:
    """Returns whether all events must wait. A timeout is blamed on its event, whose neighbours may be fast."""
    return is_transient(error) and not is_late(error)


def is_bad(error: BaseException) -> bool:
    """Returns whether the event is to blame, not our code: refused, undecodable, or with unstorable values."""
    if isinstance(error, BaseExceptionGroup):
        return all(is_bad(one) for one in error.exceptions)
    return isinstance(error, Fault | DecodeError) or is_data_error(error)


def reason_of(error: BaseException) -> str:
    """Returns the reason for the dead letter, without any content of the event."""
    if isinstance(error, BaseExceptionGroup):
        return reason_of(error.exceptions[0])
    if isinstance(error, Fault):
        return f"{error.reason} while applying"
    state = sqlstate(error)
    return f"{type(error).__name__}{f' (SQLSTATE {state})' if state else ''} while applying"


def _parts(events: Sequence[Received]) -> list[Sequence[Received]]:
    """Splits events by type first, since most defects hit one type."""
    types = list(by_type(events).values())
    middle = len(events) // 2
    return list(types) if len(types) > 1 else [events[:middle], events[middle:]]


def _about(received: Received) -> dict[str, str]:
    return {"event_type": received.type, "organization_id": received.event.organization_id}
