"""The types of events that a consumer follows, and the use case of each."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Self, TypeVar

from google.protobuf.message import DecodeError, Message

from postflow.bus.v1 import bus_pb2
from servicekit.faults import InvalidRequest
from servicekit.pg.database import Transaction
from servicekit.record import record

_LONGEST_ID = 200


@record(frozen=True, slots=True, kw_only=False)
class Received:
    """One event of an envelope, decoded. Its id and type are apart, because a message makes a new text at each look."""

    event: bus_pb2.Event
    message: Message
    id: str
    type: str

    @classmethod
    def of(cls, event: bus_pb2.Event, message: Message) -> Self:
        return cls(event, message, event.id, event.type)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A message or event that cannot be decoded, or whose id an inbox could not hold."""

    subject: str
    reason: str
    payload: bytes


Apply = Callable[[Transaction, Sequence[Received], datetime], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One message type and the use case that applies a batch of it."""

    message: type[Message]
    apply: Apply
    # Of the others nothing is kept, not even in the inbox; None: all are wanted.
    wanted: Callable[[Any], bool] | None = None


M = TypeVar("M", bound=Message)
T = TypeVar("T")
UseCase = Callable[[Transaction, Sequence[T], datetime], Awaitable[object]]


def route(
    message: type[M], decode: Callable[[M], T], use_case: UseCase[T], *, wanted: Callable[[M], bool] | None = None
) -> Route:
    """Returns the route of messages that each hold one value; `decode` raises a Fault for an unacceptable one.

    A message that is not `wanted` is passed over at no cost in the database.
    """
    return replace(_route(message, lambda _event, each: [decode(each)], use_case), wanted=wanted)


def envelope_route(message: type[M], decode: Callable[[bus_pb2.Event, M], T], use_case: UseCase[T]) -> Route:
    """Returns the route of messages whose event matters too, for its organization and trace."""
    return _route(message, lambda event, each: [decode(event, each)], use_case)


def flat_route(message: type[M], decode: Callable[[M], Sequence[T]], use_case: UseCase[T]) -> Route:
    """Returns the route of messages that each hold several values."""
    return _route(message, lambda _event, each: decode(each), use_case)


def _route(message: type[M], decode: Callable[[bus_pb2.Event, M], Sequence[T]], use_case: UseCase[T]) -> Route:
    async def apply(tx: Transaction, received: Sequence[Received], now: datetime) -> None:
        decoded: list[T] = []
        for each in received:
            # A route gets only the type that it is registered for. Skipping others would lose events.
            assert isinstance(each.message, message)
            decoded.extend(decode(each.event, each.message))
        await use_case(tx, decoded, now)

    return Route(message=message, apply=apply)


class Routes:
    def __init__(self, routes: Sequence[Route]) -> None:
        self._by_type = {route.message.DESCRIPTOR.full_name: route for route in routes}

    def follows(self, type_name: str) -> bool:
        return type_name in self._by_type

    def read(self, event: bus_pb2.Event, subject: str) -> Received | Unreadable | None:
        """Decodes an event. Returns None if its type is not followed, or it is not wanted."""
        name = event.type
        route = self._by_type.get(name)
        if route is None:
            return None
        event_id = event.id
        if not (_is_id(event_id) and _is_id(event.organization_id)):
            return _unreadable(event, subject, f"a {name} has no usable id or organization")
        try:
            message = route.message.FromString(event.payload)
        except DecodeError:
            return _unreadable(event, subject, f"a {name} cannot be decoded")
        if route.wanted is not None and not route.wanted(message):
            return None
        return Received(event, message, event_id, name)

    def read_all(self, payload: bytes) -> list[Received]:
        """Returns the events of an envelope. Raises InvalidRequest with the reason if one is unreadable."""
        try:
            events = bus_pb2.Envelope.FromString(payload).events
        except DecodeError:
            raise InvalidRequest("MALFORMED_EVENT", "the envelope cannot be decoded") from None
        found: list[Received] = []
        for event in events:
            match self.read(event, ""):
                case Received() as received:
                    found.append(received)
                case Unreadable(reason=reason):
                    raise InvalidRequest("MALFORMED_EVENT", reason)
                case None:
                    raise InvalidRequest("MALFORMED_EVENT", "the type of the event is not followed")
        if not found:
            raise InvalidRequest("MALFORMED_EVENT", "the envelope holds no event")
        return found

    async def apply(self, tx: Transaction, events: Sequence[Received], now: datetime) -> None:
        """Applies the events type by type, each event once."""
        sorted_events = by_type(events)
        for name, route in self._by_type.items():
            if of_type := sorted_events.get(name):
                await route.apply(tx, list({received.id: received for received in of_type}.values()), now)


def by_type(events: Sequence[Received]) -> dict[str, list[Received]]:
    found: dict[str, list[Received]] = {}
    for received in events:
        found.setdefault(received.type, []).append(received)
    return found


def envelope_of(event: bus_pb2.Event) -> bytes:
    return bus_pb2.Envelope(events=[event]).SerializeToString()


def _unreadable(event: bus_pb2.Event, subject: str, reason: str) -> Unreadable:
    return Unreadable(subject=subject, reason=reason, payload=envelope_of(event))


def _is_id(text: str) -> bool:
    """Returns whether PostgreSQL can store and index the text: no NUL, not longer than a third of a page."""
    return 0 < len(text) <= _LONGEST_ID and text.isprintable()
