"""Openings of send windows and local days, over changes of the clocks in both directions."""

from datetime import UTC, datetime, time, timedelta

import pytest

from civil.windows import SendWindow
from publisher_service.domain.account_schedule import AccountSchedule, day_of, opening, zone_of

WEEKDAYS = frozenset({1, 2, 3, 4, 5})
EVERY_DAY = frozenset(range(7))


def a_schedule(zone: str, window: SendWindow | None) -> AccountSchedule:
    return AccountSchedule(organization_id="acme", social_account_id="page", version=1, time_zone=zone, window=window)


def hours(start: int, end: int | None, days: frozenset[int] = EVERY_DAY) -> SendWindow:
    return SendWindow(days=days, start=time(start), end=None if end is None else time(end))


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_without_a_window_it_is_always_open() -> None:
    assert opening(a_schedule("Europe/Berlin", None), at("2026-03-02T03:00")) is None
    assert opening(a_schedule("Europe/Berlin", hours(0, None)), at("2026-03-02T03:00")) is None


@pytest.mark.parametrize(
    ("zone", "window", "instant", "start", "end"),
    [
        # Open, before it opens, on its first and its last instant.
        ("Europe/Berlin", hours(9, 18), "2026-03-02T12:00", "2026-03-02T08:00", "2026-03-02T17:00"),
        ("Europe/Berlin", hours(9, 18), "2026-03-02T03:00", "2026-03-02T08:00", "2026-03-02T17:00"),
        ("Europe/Berlin", hours(9, 18), "2026-03-02T08:00", "2026-03-02T08:00", "2026-03-02T17:00"),
        ("Europe/Berlin", hours(9, 18), "2026-03-02T17:00", "2026-03-03T08:00", "2026-03-03T17:00"),
        # From Friday to Monday, over the night in which the clocks go forward: an hour earlier in UTC.
        ("Europe/Berlin", hours(9, 18, WEEKDAYS), "2026-03-27T18:00", "2026-03-30T07:00", "2026-03-30T16:00"),
        # And back.
        ("Europe/Berlin", hours(9, 18, WEEKDAYS), "2026-10-23T18:00", "2026-10-26T08:00", "2026-10-26T17:00"),
        # A window in the hour that the clocks skip does not open that day.
        ("Europe/Berlin", hours(2, 3), "2026-03-29T00:00", "2026-03-30T00:00", "2026-03-30T01:00"),
        # The hour that they repeat is in the window twice.
        ("Europe/Berlin", hours(2, 3), "2026-10-25T00:30", "2026-10-25T00:00", "2026-10-25T02:00"),
        # Lord Howe changes by half an hour, at 02:00: forward to 02:30, and back to 01:30.
        ("Australia/Lord_Howe", hours(1, 3), "2026-10-03T14:00", "2026-10-03T14:30", "2026-10-03T16:00"),
        ("Australia/Lord_Howe", hours(1, 3), "2026-04-04T13:00", "2026-04-04T14:00", "2026-04-04T16:30"),
    ],
)
def test_an_opening_follows_the_clocks_on_the_wall(
    zone: str, window: SendWindow, instant: str, start: str, end: str
) -> None:
    found = opening(a_schedule(zone, window), at(instant))
    assert found is not None
    assert (found.start, found.end) == (at(start), at(end))


@pytest.mark.parametrize(
    ("zone", "instant", "date", "hours_of_day"),
    [
        ("", "2026-03-02T23:59", "2026-03-02", 24.0),
        ("Europe/Berlin", "2026-03-28T23:00", "2026-03-29", 23.0),
        ("Europe/Berlin", "2026-10-25T22:59", "2026-10-25", 25.0),
        ("Australia/Lord_Howe", "2026-10-03T20:00", "2026-10-04", 23.5),
        ("Australia/Lord_Howe", "2026-04-04T20:00", "2026-04-05", 24.5),
        # The clocks skip midnight.
        ("Asia/Beirut", "2026-03-28T22:00", "2026-03-29", 23.0),
    ],
)
def test_a_day_is_as_long_as_the_clocks_make_it(zone: str, instant: str, date: str, hours_of_day: float) -> None:
    day = day_of(zone, at(instant))
    assert (day.date.isoformat(), day.end - day.start) == (date, timedelta(hours=hours_of_day))
    assert day.start <= at(instant) < day.end


def test_days_follow_each_other_without_a_gap() -> None:
    day = day_of("Europe/Berlin", at("2026-01-01T12:00"))
    for _ in range(366):
        after = day_of("Europe/Berlin", day.end)
        assert after.start == day.end
        assert (after.date - day.date).days == 1
        day = after


def test_a_zone_that_this_release_does_not_have_is_read_as_utc() -> None:
    assert zone_of("Mars/Olympus").name == "UTC"
    assert zone_of("").name == "UTC"
