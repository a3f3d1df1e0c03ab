"""Time inside a process. What is *due* is decided by the database's clock (`servicekit.pg.clock`)."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """Wall-clock time, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never run backwards; for deadlines."""
        ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()
