"""The stream of publish commands as dispatch sees it."""

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
