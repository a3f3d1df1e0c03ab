"""The clock that decides what is due: that of the service's own database, read once per batch."""

from collections.abc import Awaitable
from datetime import datetime, timedelta
from typing import TypeVar

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from servicekit.clock import Clock
from servicekit.pg.database import Database
from servicekit.pg.session import Session, Statement

T = TypeVar("T")

_NOW = Statement("select clock_timestamp()")

# The drift between two undisciplined quartz clocks, per second: readings are extrapolated that much more slowly.
_DRIFT = 100e-6
# Seconds for which a reading is preferred to slower ones after it.
_KEPT = 30.0


class DatabaseClock:
    async def now(self, connection: AsyncConnection | Session) -> datetime:
        if isinstance(connection, Session):
            moment = await connection.fetch_value(_NOW)
        else:
            moment = (await connection.execute(text(_NOW.text))).scalar_one()
        assert isinstance(moment, datetime)
        return self.shown(moment)

    def shown(self, moment: datetime) -> datetime:
        """Returns what this clock shows when the database's shows `moment`, which a statement read with its rows."""
        return moment


class SteadyClock:
    """Extrapolates the database's time between two readings. It is never ahead: what is due by this clock is due.

    For code that must be exact to the millisecond and cannot query each time. A process observes it once before it
    starts anything that reads it, and every few seconds from then on.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._reading: datetime | None = None
        self._at = 0.0

    async def start(self, database_clock: DatabaseClock, database: Database) -> None:
        """Makes the first reading; a starter calls this."""
        async with database.read() as connection:
            await self.observe(database_clock, connection)

    async def observe(self, database_clock: DatabaseClock, connection: AsyncConnection | Session) -> datetime:
        asked = self._clock.monotonic()
        reading = await database_clock.now(connection)
        self.learn(reading, asked=asked, answered=self._clock.monotonic())
        return reading

    async def observe_beside(
        self, database_clock: DatabaseClock, read: Awaitable[tuple[datetime, T]]
    ) -> tuple[datetime, T]:
        """Observes a statement that reads the database's time beside something else, and returns both."""
        asked = self._clock.monotonic()
        moment, found = await read
        reading = database_clock.shown(moment)
        self.learn(reading, asked=asked, answered=self._clock.monotonic())
        return reading, found

    def learn(self, reading: datetime, *, asked: float, answered: float) -> None:
        """Learns a reading of the database's clock at some moment between question and answer.

        When the answer arrives, the database's time is `reading` or later, by at most the round trip. The latest of all
        such lower bounds is kept for half a minute, so that a slow answer does not replace a better one. An estimate
        above the upper bound means that the database's clock was set back; then only the new reading counts. If all
        answers are slow, nothing reveals that, hence the half minute.
        """
        latest = reading + timedelta(seconds=(answered - asked) * (1 + _DRIFT))
        known = self._reading and self._carried(self._reading, answered)
        if known is None or known > latest or known < reading or answered - self._at > _KEPT:
            self._reading, self._at = reading, answered

    def now(self) -> datetime:
        assert self._reading is not None, "a SteadyClock was read before a starter observed it"
        return self._carried(self._reading, self._clock.monotonic())

    def _carried(self, reading: datetime, to: float) -> datetime:
        return reading + timedelta(0, (to - self._at) * (1 - _DRIFT))
