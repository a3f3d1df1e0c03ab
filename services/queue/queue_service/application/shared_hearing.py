"""The events that Queue has applied, asked once for all watchers of this process."""

import asyncio
import time
from typing import Protocol

from queue_service.domain.stream import Hearing

_PERIOD = 0.25


class Events(Protocol):
    async def hearing(self) -> Hearing | None: ...


class SharedHearing:
    def __init__(self, events: Events, *, period: float = _PERIOD) -> None:
        self._events = events
        self._period = period
        self._lock = asyncio.Lock()
        self._asked: float | None = None
        self._heard = 0

    async def heard(self) -> int:
        """Returns the sequence up to which Queue has applied all events; 0 while the stream is unreachable."""
        async with self._lock:
            if self._asked is None or time.monotonic() >= self._asked + self._period:
                hearing = await self._events.hearing()
                self._heard = hearing.heard_sequence if hearing else 0
                self._asked = time.monotonic()
            return self._heard
