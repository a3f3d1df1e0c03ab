"""Local days, case by case."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from civil.days import day_bounds, local_day
from civil.zones import find_zone


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "day", "start", "end"),
    [
        ("UTC", "2026-06-01", "2026-06-01T00:00", "2026-06-02T00:00"),
        ("Asia/Kathmandu", "2026-06-01", "2026-05-31T18:15", "2026-06-01T18:15"),
        # 23 and 25 hours
        ("Europe/Berlin", "2026-03-29", "2026-03-28T23:00", "2026-03-29T22:00"),
        ("Europe/Berlin", "2026-10-25", "2026-10-24T22:00", "2026-10-25T23:00"),
        # no midnight: the day begins at 01:00
        ("Africa/Cairo", "2024-04-26", "2024-04-25T22:00", "2024-04-26T21:00"),
        ("Asia/Beirut", "2024-03-31", "2024-03-30T22:00", "2024-03-31T21:00"),
        ("America/Havana", "2024-03-10", "2024-03-10T05:00", "2024-03-11T04:00"),
        # two midnights: the day begins at the first, or the day before is an hour longer
        ("America/Havana", "2024-11-03", "2024-11-03T04:00", "2024-11-04T05:00"),
        ("Africa/Cairo", "2024-10-31", "2024-10-30T21:00", "2024-10-31T22:00"),
        ("Asia/Beirut", "2024-10-26", "2024-10-25T21:00", "2024-10-26T22:00"),
        # the last hour is missing
        ("America/Nuuk", "2024-03-30", "2024-03-30T02:00", "2024-03-31T01:00"),
        # skipped, and its neighbours
        ("Pacific/Apia", "2011-12-29", "2011-12-29T10:00", "2011-12-30T10:00"),
        ("Pacific/Apia", "2011-12-30", "2011-12-30T10:00", "2011-12-30T10:00"),
        ("Pacific/Apia", "2011-12-31", "2011-12-30T10:00", "2011-12-31T10:00"),
        # at 00:01 the clocks went back to 23:01 of the day before: both dates last beyond midnight
        ("America/Goose_Bay", "2010-11-06", "2010-11-06T03:00", "2010-11-07T04:00"),
        ("America/Goose_Bay", "2010-11-07", "2010-11-07T03:00", "2010-11-08T04:00"),
    ],
)
def test_bounds_of_a_day(zone: str, day: str, start: str, end: str) -> None:
    assert day_bounds(date.fromisoformat(day), find_zone(zone)) == (utc(start), utc(end))


@pytest.mark.parametrize(
    ("zone", "instant", "day"),
    [
        ("Africa/Cairo", "2024-04-25T21:59", "2024-04-25"),
        ("Africa/Cairo", "2024-04-25T22:00", "2024-04-26"),
        ("Pacific/Apia", "2011-12-30T09:59", "2011-12-29"),
        ("Pacific/Apia", "2011-12-30T10:00", "2011-12-31"),
        ("America/Goose_Bay", "2010-11-07T03:00", "2010-11-07"),
        ("America/Goose_Bay", "2010-11-07T03:01", "2010-11-06"),
        ("America/Goose_Bay", "2010-11-07T04:00", "2010-11-07"),
        ("Pacific/Kiritimati", "2026-01-01T10:00", "2026-01-02"),
    ],
)
def test_the_day_of_an_instant_is_its_local_date(zone: str, instant: str, day: str) -> None:
    assert local_day(utc(instant), find_zone(zone)) == date.fromisoformat(day)


def test_an_instant_may_be_given_in_any_zone() -> None:
    evening = datetime(2026, 6, 1, 23, 30, tzinfo=timezone(timedelta(hours=-7)))
    assert local_day(evening, find_zone("UTC")) == date(2026, 6, 2)


def test_a_naive_instant_is_refused_by_an_assertion() -> None:
    with pytest.raises(AssertionError):
        local_day(utc("2026-06-01T00:00").replace(tzinfo=None), find_zone("UTC"))
