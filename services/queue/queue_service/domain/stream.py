"""The stream of publish commands as dispatch sees it."""

from datetime import datetime, timedelta
from typing import NamedTuple

ROUNDING = timedelta(milliseconds=1)
"""By which the creation time of one stream may differ: clients and releases round it in their ways."""


class Room(NamedTuple):
    """How many commands may be sent now, and the organizations that have their share of what is outstanding."""

    size: int
    filled: frozenset[str] = frozenset()


NO_ROOM = Room(0)


class StreamMark(NamedTuple):
    """How far a stream is: when it was made, and the last sequence that it has given."""

    create_time: datetime
    last_sequence: int

    def has_lost_since(self, before: "StreamMark") -> bool:
        """It is another stream, or has gone back behind what it had stored."""
        is_another = abs(self.create_time - before.create_time) > ROUNDING
        return is_another or self.last_sequence < before.last_sequence
