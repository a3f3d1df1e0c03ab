"""What time it is, as far as anything due is concerned: the clock of the service's own database, once per batch."""

from datetime import datetime, timedelta

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from servicekit.clock import Clock

_NOW = text("select clock_timestamp()")


class DatabaseClock:
    async def now(self, connection: AsyncConnection) -> datetime:
        moment = (await connection.execute(_NOW)).scalar_one()
        assert isinstance(moment, datetime)
        return moment


class SteadyClock:
    """The database's time between two readings: the last reading carried on by the monotonic clock.

    For what must be exact to the millisecond and cannot ask each time; `observe` it every few seconds.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._reading: datetime | None = None
        self._at = 0.0

    async def observe(self, database_clock: DatabaseClock, connection: AsyncConnection) -> datetime:
        asked = self._clock.monotonic()
        reading = await database_clock.now(connection)
        # The database read its clock between question and answer: halfway is off by half a round trip at most.
        self._reading, self._at = reading, (asked + self._clock.monotonic()) / 2
        return reading

    def now(self) -> datetime:
        """Before the first reading: the clock of this machine."""
        if self._reading is None:
            return self._clock.now()
        return self._reading + timedelta(seconds=self._clock.monotonic() - self._at)
