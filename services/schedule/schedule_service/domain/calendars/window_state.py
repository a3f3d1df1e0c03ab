"""The state of an account's send window at an instant."""

from dataclasses import dataclass
from datetime import datetime

from civil.windows import openings
from civil.zones import LATEST
from schedule_service.domain.calendars.account_schedule import Timetable


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowState:
    time: datetime
    open: bool
    open_time: datetime | None = None  # set for a closed window
    close_time: datetime | None = None  # set for an open one; None: it never closes


def window_state(timetable: Timetable, instant: datetime) -> WindowState:
    if timetable.send_window is None:
        return WindowState(time=instant, open=True)
    opening = next(openings(timetable.send_window, timetable.zone, after=instant))
    if instant < opening.start:
        return WindowState(time=instant, open=False, open_time=opening.start)
    return WindowState(time=instant, open=True, close_time=opening.end if opening.end < LATEST else None)
