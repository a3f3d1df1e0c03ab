"""What Schedule does by itself, and how often."""

from datetime import timedelta

from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.housekeeping import Housekeeping, Retention
from servicekit.run import Loop

_HOUSEKEEPING_PERIOD = timedelta(minutes=1)


def housekeeping(database: Database, clock: DatabaseClock) -> Loop:
    return Loop("housekeeping", Housekeeping(database, clock, Retention()).step, _HOUSEKEEPING_PERIOD)
