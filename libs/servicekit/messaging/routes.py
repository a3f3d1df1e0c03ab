"""What a consumer follows: which types of events, and the use case of each."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from google.protobuf.message import DecodeError, Message

from postflow.bus.v1 import bus_pb2
from servicekit.faults import InvalidRequest
from servicekit.pg.database import Transaction

_LONGEST_ID = 200


@dataclass(frozen=True, slots=True)
class Received:
    """One event of an envelope, decoded."""

    event: bus_pb2.Event
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """What cannot even be decoded, or names no event that an inbox could hold."""

    subject: str
    reason: str
    payload: bytes


Apply = Callable[[Transaction, Sequence[Received], datetime], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One message type and the use case that applies a batch of it."""

    message: type[Message]
    apply: Apply


class Routes:
    def __init__(self, routes: Sequence[Route]) -> None:
        self._by_type = {route.message.DESCRIPTOR.full_name: route for route in routes}

    def read(self, event: bus_pb2.Event, subject: str) -> Received | Unreadable | None:
        """None: an event of a type that is not followed."""
        route = self._by_type.get(event.type)
        if route is None:
            return None
        if not (_is_id(event.id) and _is_id(event.organization_id)):
            return _unreadable(event, subject, f"a {event.type} has no usable id or organization")
        try:
            return Received(event, route.message.FromString(event.payload))
        except DecodeError:
            return _unreadable(event, subject, f"a {event.type} cannot be decoded")

    def read_all(self, payload: bytes) -> list[Received]:
        """Every event of an envelope; raises the reason why it cannot be."""
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
        """Type by type, each event once."""
        sorted_events = by_type(events)
        for name, route in self._by_type.items():
            if ours := sorted_events.get(name):
                await route.apply(tx, list({received.event.id: received for received in ours}.values()), now)


def by_type(events: Sequence[Received]) -> dict[str, list[Received]]:
    found: dict[str, list[Received]] = {}
    for received in events:
        found.setdefault(received.event.type, []).append(received)
    return found


def envelope_of(event: bus_pb2.Event) -> bytes:
    return bus_pb2.Envelope(events=[event]).SerializeToString()


def _unreadable(event: bus_pb2.Event, subject: str, reason: str) -> Unreadable:
    return Unreadable(subject=subject, reason=reason, payload=envelope_of(event))


def _is_id(text: str) -> bool:
    """PostgreSQL takes no NUL in a text, and an index no longer key than a third of a page."""
    return 0 < len(text) <= _LONGEST_ID and text.isprintable()
