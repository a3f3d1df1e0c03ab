"""CheckSendWindow: says whether posts of an account may be sent at an instant, and until or from when."""

from datetime import datetime
from typing import NamedTuple

from schedule_service.adapters.postgres.account_schedules import find_schedule
from schedule_service.domain.calendars.account_schedule import AccountSchedule, found, require_times
from schedule_service.domain.calendars.slot_times import require_in_reach
from schedule_service.domain.calendars.window_state import WindowState, window_state
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database


class CheckedWindow(NamedTuple):
    schedule: AccountSchedule
    state: WindowState


class CheckSendWindow:
    def __init__(self, *, database: Database, clock: DatabaseClock) -> None:
        self._database = database
        self._clock = clock

    async def __call__(self, *, organization_id: str, social_account_id: str, time: datetime | None) -> CheckedWindow:
        """Checks the window at `time`, or now."""
        async with self._database.read_session() as session:
            instant = time or await self._clock.now(session)
            require_in_reach(instant, "time")
            schedule = found(await find_schedule(session, organization_id, social_account_id), social_account_id)
        if schedule.timetable.send_window:
            require_times(schedule)
        return CheckedWindow(schedule, window_state(schedule.timetable, instant))
