"""Time inside a process. The database's clock (`servicekit.pg.clock`) decides what is *due*."""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

# Counts time during which the machine is suspended, since a lease held elsewhere keeps running. Only Linux has such a
# clock. asyncio's timers do not count it: a waiter that must be exact reads this clock again.
_MONOTONIC: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    def now(self) -> datetime:
        """Returns the wall-clock time, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Returns seconds that never run backwards and include suspends of the machine: for deadlines and leases.

        The scale is neither `time.monotonic`'s nor the event loop's: only differences between readings are meaningful.
        """
        ...


class SkewRefused(ValueError):
    """A clock offset was set where it is not allowed."""


_skew = timedelta(0)
_skew_nanoseconds = 0


def skew(offset: timedelta, environment: str) -> None:
    """Shifts this process's wall clock, for tests of skewed hosts. Refused in production."""
    global _skew, _skew_nanoseconds
    if offset and environment == "production":
        raise SkewRefused("a clock offset is refused in production")
    _skew, _skew_nanoseconds = offset, offset // timedelta(microseconds=1) * 1000


def wall_nanoseconds() -> int:
    """Returns the wall-clock time since 1970, for ids."""
    return time.time_ns() + _skew_nanoseconds


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC) + _skew

    def monotonic(self) -> float:
        return time.clock_gettime(_MONOTONIC)
