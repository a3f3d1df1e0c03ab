"""Clocks that stand for the clock of a service's database."""

from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncConnection

from servicekit.pg.clock import DatabaseClock
from servicekit.pg.session import Session
from testkit.clocks import START


class FrozenDatabaseClock(DatabaseClock):
    """Shows `moment`, and moves on by `tick` each time it is read; a test may set both."""

    def __init__(self, moment: datetime = START, *, tick: timedelta = timedelta(0)) -> None:
        self.moment = moment
        self.tick = tick

    async def now(self, connection: AsyncConnection | Session) -> datetime:
        return self.shown(self.moment)

    def shown(self, moment: datetime) -> datetime:
        self.moment += self.tick
        return self.moment


class ShiftedDatabaseClock(DatabaseClock):
    """Shows the database's time plus `shift`."""

    def __init__(self, shift: timedelta) -> None:
        self._shift = shift

    def shown(self, moment: datetime) -> datetime:
        return moment + self._shift
