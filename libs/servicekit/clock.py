"""Time inside a process. What is *due* is decided by the database's clock (`servicekit.pg.clock`)."""

import time
from datetime import UTC, datetime
from typing import Protocol

# The time that a suspended machine sleeps counts too: a lease held elsewhere goes on running meanwhile. Linux alone has
# a clock of its own for that. asyncio's timers know nothing of suspends: a waiter that must be exact looks here again.
_MONOTONIC: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    def now(self) -> datetime:
        """Wall-clock time, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards, suspends of the machine included; for deadlines and leases.

        Not the scale of `time.monotonic` or of the event loop: only differences between two readings mean anything.
        """
        ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.clock_gettime(_MONOTONIC)
