"""The streams as dispatch sees them: PUBLISH, which carries the commands, and EVENTS, which carries the answers."""

from collections.abc import Set
from datetime import datetime, timedelta
from typing import NamedTuple

ROUNDING = timedelta(milliseconds=1)
"""The tolerance for a stream's creation time, which clients and releases round differently."""


class Room(NamedTuple):
    """The number of commands that may be sent now, and the organizations that have used up their share."""

    size: int
    filled: frozenset[str] = frozenset()


NO_ROOM = Room(0)


class StreamMark(NamedTuple):
    """A stream's creation time and last sequence."""

    create_time: datetime
    last_sequence: int

    def has_lost_since(self, before: "StreamMark") -> bool:
        """Returns whether it is another stream now, or its last sequence is lower than before."""
        is_another = abs(self.create_time - before.create_time) > ROUNDING
        return is_another or self.last_sequence < before.last_sequence


class Holding(NamedTuple):
    """The messages that a stream holds: all from the first to the last, except those removed in between."""

    first_sequence: int
    last_sequence: int
    removed: Set[int] = frozenset()

    def holds(self, sequence: int) -> bool:
        return self.first_sequence <= sequence <= self.last_sequence and sequence not in self.removed


class Hearing(NamedTuple):
    """The last sequence of EVENTS, and the one up to which Queue has applied the events that it consumes."""

    last_sequence: int
    heard_sequence: int

    @property
    def is_complete(self) -> bool:
        """Returns whether Queue has applied every event that is stored."""
        return self.heard_sequence >= self.last_sequence
