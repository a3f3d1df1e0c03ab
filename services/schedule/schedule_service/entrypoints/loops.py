"""Periodic work of Schedule."""

from datetime import timedelta

from schedule_service.application.calendars.follow_slots import ForgetPastSlots
from schedule_service.application.timers.delete_finished_timers import DeleteFinishedTimers
from schedule_service.application.zone_changes.watch_tzdata import WatchTzdata
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.housekeeping import Housekeeping, Retention
from servicekit.run import Loop

_FINISHED_PERIOD = timedelta(minutes=1)
_FORGET_PERIOD = timedelta(minutes=1)
_HOUSEKEEPING_PERIOD = timedelta(minutes=1)
_TZDATA_PERIOD = timedelta(minutes=1)


def housekeeping(database: Database, clock: DatabaseClock) -> Loop:
    return Loop("housekeeping", Housekeeping(database, clock, Retention()).step, _HOUSEKEEPING_PERIOD)


def forget_past_slots(forget: ForgetPastSlots) -> Loop:
    return Loop("past slots", forget, _FORGET_PERIOD)


def finished_timers(delete: DeleteFinishedTimers) -> Loop:
    return Loop("finished timers", delete, _FINISHED_PERIOD)


def tzdata_watch(watch: WatchTzdata) -> Loop:
    return Loop("tzdata watch", watch, _TZDATA_PERIOD)
