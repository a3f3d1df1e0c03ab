"""What time it is, as far as anything due is concerned: the clock of the service's own database, once per batch."""

from datetime import datetime, timedelta

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from servicekit.clock import Clock
from servicekit.pg.database import Database

_NOW = text("select clock_timestamp()")

# By how much two undisciplined quartz clocks drift apart, per second: a reading is carried on that much more slowly.
_DRIFT = 100e-6
# Seconds for which a reading counts for more than slower ones after it.
_KEPT = 30.0


class DatabaseClock:
    async def now(self, connection: AsyncConnection) -> datetime:
        moment = (await connection.execute(_NOW)).scalar_one()
        assert isinstance(moment, datetime)
        return moment


class SteadyClock:
    """The database's time between two readings, and never ahead of it: what is due by this clock is due.

    For what must be exact to the millisecond and cannot ask each time. A process observes it once before it starts
    anything that reads it, and every few seconds from then on.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._reading: datetime | None = None
        self._at = 0.0

    async def start(self, database_clock: DatabaseClock, database: Database) -> None:
        """The first reading, to be made by a starter."""
        async with database.read() as connection:
            await self.observe(database_clock, connection)

    async def observe(self, database_clock: DatabaseClock, connection: AsyncConnection) -> datetime:
        asked = self._clock.monotonic()
        reading = await database_clock.now(connection)
        self.learn(reading, asked=asked, answered=self._clock.monotonic())
        return reading

    def learn(self, reading: datetime, *, asked: float, answered: float) -> None:
        """Takes in what the database's clock said at some moment between question and answer.

        When the answer arrives the database is at `reading` or later, by no more than the round trip. Of all such lower
        bounds the latest is kept for half a minute: a slow answer does not replace a better one. An estimate above the
        upper bound means that the database's clock was set back; then only the new reading counts. Where all answers
        are slow nothing shows that, hence the half minute.
        """
        latest = reading + timedelta(seconds=(answered - asked) * (1 + _DRIFT))
        known = self._reading and self._carried(self._reading, answered)
        if known is None or known > latest or known < reading or answered - self._at > _KEPT:
            self._reading, self._at = reading, answered

    def now(self) -> datetime:
        assert self._reading is not None, "a SteadyClock is read before a starter has observed it"
        return self._carried(self._reading, self._clock.monotonic())

    def _carried(self, reading: datetime, to: float) -> datetime:
        return reading + timedelta(seconds=(to - self._at) * (1 - _DRIFT))
