"""Send windows: open or closed, and until or from when."""

from datetime import UTC, datetime, time, timedelta

import pytest

from civil.windows import SendWindow
from civil.zones import LATEST, find_zone
from schedule_service.domain.calendars.account_schedule import Timetable
from schedule_service.domain.calendars.slot_times import HORIZON
from schedule_service.domain.calendars.window_state import WindowState, window_state

EVERY_DAY = frozenset(range(7))


def window(days: frozenset[int], start: str = "00:00", end: str | None = None) -> SendWindow:
    return SendWindow(days=days, start=time.fromisoformat(start), end=time.fromisoformat(end) if end else None)


OFFICE_HOURS = window(frozenset({1, 2, 3, 4, 5}), "09:00", "18:00")


def state(send_window: SendWindow | None, zone: str, instant: str) -> WindowState:
    timetable = Timetable(
        name="",
        zone=find_zone(zone),
        weekly_slots=(),
        max_posts_per_day=0,
        enabled=False,
        send_window=send_window,
    )
    return window_state(timetable, utc(instant))


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def opened(instant: str, close_time: str | None) -> WindowState:
    return WindowState(time=utc(instant), open=True, close_time=utc(close_time) if close_time else None)


def closed(instant: str, open_time: str) -> WindowState:
    return WindowState(time=utc(instant), open=False, open_time=utc(open_time))


@pytest.mark.parametrize("send_window", [None, window(EVERY_DAY)])
def test_no_window_and_a_window_of_all_hours_never_close(send_window: SendWindow | None) -> None:
    assert state(send_window, "Europe/Berlin", "2026-03-02T03:00") == opened("2026-03-02T03:00", None)


def test_the_start_is_open_and_the_end_is_closed() -> None:
    before, start, last, end = "2026-03-02T07:59:59.999999", "2026-03-02T08:00", "2026-03-02T16:59", "2026-03-02T17:00"
    assert state(OFFICE_HOURS, "Europe/Berlin", before) == closed(before, start)
    assert state(OFFICE_HOURS, "Europe/Berlin", start) == opened(start, end)
    assert state(OFFICE_HOURS, "Europe/Berlin", last) == opened(last, end)
    assert state(OFFICE_HOURS, "Europe/Berlin", end) == closed(end, "2026-03-03T08:00")


def test_a_window_on_weekdays_opens_after_the_weekend() -> None:
    friday_evening = "2026-03-06T20:00"
    assert state(OFFICE_HOURS, "Europe/Berlin", friday_evening) == closed(friday_evening, "2026-03-09T08:00")


def test_adjoining_days_are_one_opening() -> None:
    weekend = window(frozenset({0, 6}))
    assert state(weekend, "UTC", "2026-03-08T12:00") == opened("2026-03-08T12:00", "2026-03-09T00:00")
    assert state(weekend, "UTC", "2026-03-05T12:00") == closed("2026-03-05T12:00", "2026-03-07T00:00")


def test_a_window_inside_a_gap_opens_the_next_day() -> None:
    night = window(EVERY_DAY, "02:00", "03:00")
    assert state(night, "America/New_York", "2024-03-10T06:30") == closed("2024-03-10T06:30", "2024-03-11T06:00")


def test_a_repeated_hour_is_open_twice() -> None:
    night = window(EVERY_DAY, "01:00", "01:30")
    assert state(night, "America/New_York", "2024-11-03T05:10") == opened("2024-11-03T05:10", "2024-11-03T05:30")
    assert state(night, "America/New_York", "2024-11-03T05:40") == closed("2024-11-03T05:40", "2024-11-03T06:00")


def test_the_last_valid_instant_has_an_answer() -> None:
    last = (LATEST - HORIZON).replace(tzinfo=None).isoformat()
    saturdays = window(frozenset({6}), "09:00", "10:00")
    answer = state(saturdays, "Pacific/Apia", last)
    assert answer.open_time is not None
    assert timedelta() < answer.open_time - utc(last) <= timedelta(days=7)
