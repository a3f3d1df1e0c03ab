"""An in-memory stream that loses, rolls back and discards messages like the real one; tests/contract compares them."""

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
        self.unreachable = False
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
        """Deletes the stream and creates it again, as an operator may."""
        self._created += timedelta(seconds=1)
        self.roll_back(0)

    def roll_back(self, to: int) -> None:
        """Restores an older copy of the store, as a server may after a crash."""
        self.messages = {sequence: message for sequence, message in self.messages.items() if sequence <= to}
        self._last = to
        self._ids = {message.message_id: sequence for sequence, message in self.messages.items()}
        self.connections += 1

    def discard(self, below: int) -> None:
        """Discards the oldest messages, as a stream does at its limit."""
        self.messages = {sequence: message for sequence, message in self.messages.items() if sequence >= below}
        self._first = below

    def take_over(self, sequence: int, payload: bytes) -> None:
        """Stores a message of another publisher under this sequence."""
        self.messages[sequence] = Outgoing("somebody.else", payload, "")
        self._last = max(self._last, sequence)

    @property
    def events(self) -> list[bus_pb2.Event]:
        """Returns every event in the stream now, in the stream's order."""
        return [event for message in self.messages.values() for event in events_in(message.payload)]

    def _store(self, message: Outgoing) -> Stored | None:
        if self.unreachable or any(event.id in self.refused for event in events_in(message.payload)):
            self.refusals += 1
            return None
        if message.message_id and (before := self._ids.get(message.message_id)) is not None:
            self.duplicates += 1
            return Stored(before, duplicate=True)
        self._last += 1
        self.messages[self._last] = message
        self._ids[message.message_id] = self._last
        return Stored(self._last)

    def _check(self) -> None:
        if self.unreachable:
            raise ConnectionError("the broker is unreachable")


def events_in(payload: bytes) -> list[bus_pb2.Event]:
    return list(bus_pb2.Envelope.FromString(payload).events)
