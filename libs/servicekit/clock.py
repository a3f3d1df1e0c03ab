"""Time inside a process. What is *due* is decided by the database's clock (`servicekit.pg.clock`)."""

import time
from datetime import UTC, datetime, timedelta
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


class SkewRefused(ValueError):
    """A clock is set wrong on purpose where that is not allowed."""


_skew = timedelta(0)


def skew(offset: timedelta, environment: str) -> None:
    """Sets the wall-clock time of this process off by that much, for tests of skewed hosts. Refused in production."""
    global _skew  # noqa: PLW0603 - a host has one wall clock
    if offset and environment == "production":
        raise SkewRefused("a clock offset is refused in production")
    _skew = offset


def wall_nanoseconds() -> int:
    """Wall-clock time since 1970, for ids."""
    return time.time_ns() + _skew // timedelta(microseconds=1) * 1000


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC) + _skew

    def monotonic(self) -> float:
        return time.clock_gettime(_MONOTONIC)
