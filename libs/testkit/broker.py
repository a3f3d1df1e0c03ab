"""A stream in memory that loses, rolls back and forgets as the real one does; tests/contract holds it to that."""

from collections.abc import Sequence
from datetime import timedelta

from postflow.bus.v1 import bus_pb2
from servicekit.bus.publisher import Outgoing, Stored
from servicekit.bus.stream_view import StreamLook
from testkit.clocks import START


class MemoryBroker:
    """Both sides of a relay: its `publisher` and its `stream`."""

    def __init__(self) -> None:
        self.messages: dict[int, Outgoing] = {}
        self.connections = 0
        self.away = False
        self.refused: set[str] = set()
        self.refusals = 0
        self.duplicates = 0
        self._created = START
        self._first = 1
        self._last = 0
        self._ids: dict[str, int] = {}

    async def publish(self, messages: Sequence[Outgoing]) -> list[Stored | None]:
        return [self._store(message) for message in messages]

    async def look(self) -> StreamLook:
        self._check()
        return StreamLook(self._created, self._first)

    async def payload(self, sequence: int) -> bytes | None:
        self._check()
        message = self.messages.get(sequence)
        return message.payload if message else None

    def wipe(self) -> None:
        """Somebody deleted the stream, and somebody made it anew."""
        self._created += timedelta(seconds=1)
        self.roll_back(0)

    def roll_back(self, to: int) -> None:
        """The server came back with an older copy of its store."""
        self.messages = {sequence: message for sequence, message in self.messages.items() if sequence <= to}
        self._last = to
        self._ids = {message.message_id: sequence for sequence, message in self.messages.items()}
        self.connections += 1

    def discard(self, below: int) -> None:
        """The stream has reached a limit of its own, and lets the oldest go."""
        self.messages = {sequence: message for sequence, message in self.messages.items() if sequence >= below}
        self._first = below

    def take_over(self, sequence: int, payload: bytes) -> None:
        """Somebody else published it, and now it has this number."""
        self.messages[sequence] = Outgoing("somebody.else", payload, "")
        self._last = max(self._last, sequence)

    @property
    def events(self) -> list[bus_pb2.Event]:
        """Everything that is in the stream now, in its order."""
        return [event for message in self.messages.values() for event in events_in(message.payload)]

    def _store(self, message: Outgoing) -> Stored | None:
        if self.away or any(event.id in self.refused for event in events_in(message.payload)):
            self.refusals += 1
            return None
        if (before := self._ids.get(message.message_id)) is not None:
            self.duplicates += 1
            return Stored(before, duplicate=True)
        self._last += 1
        self.messages[self._last] = message
        self._ids[message.message_id] = self._last
        return Stored(self._last)

    def _check(self) -> None:
        if self.away:
            raise ConnectionError("the broker is away")


def events_in(payload: bytes) -> list[bus_pb2.Event]:
    return list(bus_pb2.Envelope.FromString(payload).events)
