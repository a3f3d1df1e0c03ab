"""Send windows, case by case."""

from datetime import UTC, datetime, time, timedelta, timezone
from itertools import islice, pairwise

import pytest

from civil.windows import Opening, SendWindow, is_open, openings
from civil.zones import EARLIEST, LATEST, find_zone

DAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
OFFICE = "Mon Tue Wed Thu Fri 09:00-18:00"


def window(text: str) -> SendWindow:
    """Parses a window; `24:00` is the end of the day."""
    *days, hours = text.split()
    start, end = hours.split("-")
    return SendWindow(
        days=frozenset(map(DAYS.index, days)) or frozenset(range(7)),
        start=time.fromisoformat(start),
        end=None if end == "24:00" else time.fromisoformat(end),
    )


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def opened(text: str, zone: str, after: str, count: int) -> list[str]:
    found = islice(openings(window(text), find_zone(zone), after=utc(after)), count)
    return [f"{start:%Y-%m-%dT%H:%M} {end:%Y-%m-%dT%H:%M}" for start, end in found]


def test_the_end_is_excluded_and_the_start_included() -> None:
    for wall, shown in [("08:59:59.999999", False), ("09:00", True), ("17:59:59.999999", True), ("18:00", False)]:
        monday = datetime.fromisoformat(f"2026-06-01T{wall}")
        assert window(OFFICE).contains(monday) is shown
        assert is_open(window(OFFICE), find_zone("UTC"), monday.replace(tzinfo=UTC)) is shown


def test_other_days_are_closed() -> None:
    week = [datetime(2026, 6, 7, 12) + timedelta(days=day) for day in range(7)]
    assert [window(OFFICE).contains(wall) for wall in week] == [False, True, True, True, True, True, False]


def test_the_wall_clock_decides_and_not_utc() -> None:
    assert is_open(window(OFFICE), find_zone("Europe/Berlin"), utc("2026-06-01T07:00"))
    assert not is_open(window(OFFICE), find_zone("Europe/Berlin"), utc("2026-06-01T16:00"))
    in_tokyo = datetime(2026, 6, 1, 16, tzinfo=timezone(timedelta(hours=9)))
    assert is_open(window(OFFICE), find_zone("Europe/Berlin"), in_tokyo)


def test_openings_follow_the_days() -> None:
    assert opened(OFFICE, "Europe/Berlin", "2026-06-04T20:00", 3) == [
        "2026-06-05T07:00 2026-06-05T16:00",
        "2026-06-08T07:00 2026-06-08T16:00",
        "2026-06-09T07:00 2026-06-09T16:00",
    ]


def test_the_first_opening_may_have_begun_before() -> None:
    assert opened(OFFICE, "UTC", "2026-06-05T12:00", 1) == ["2026-06-05T09:00 2026-06-05T18:00"]
    assert opened(OFFICE, "UTC", "2026-06-05T17:59", 1) == ["2026-06-05T09:00 2026-06-05T18:00"]
    assert opened(OFFICE, "UTC", "2026-06-05T18:00", 1) == ["2026-06-08T09:00 2026-06-08T18:00"]


def test_adjoining_days_are_one_opening() -> None:
    assert opened("Mon Tue 00:00-24:00", "Europe/Berlin", "2026-10-20T12:00", 2) == [
        "2026-10-18T22:00 2026-10-20T22:00",
        "2026-10-25T23:00 2026-10-27T23:00",
    ]
    assert opened("Sat Sun 00:00-24:00", "UTC", "2026-06-07T12:00", 1) == ["2026-06-06T00:00 2026-06-08T00:00"]


def test_a_window_of_six_whole_days_is_closed_on_the_seventh() -> None:
    assert opened("Mon Tue Wed Thu Fri Sat 00:00-24:00", "UTC", "2026-06-03T12:00", 2) == [
        "2026-06-01T00:00 2026-06-07T00:00",
        "2026-06-08T00:00 2026-06-14T00:00",
    ]


def test_a_window_that_ends_just_before_midnight_closes() -> None:
    whole = SendWindow(days=frozenset(range(7)), start=time(), end=time.max)
    first, second = islice(openings(whole, find_zone("UTC"), after=utc("2026-06-01T12:00")), 2)
    assert second.start - first.end == timedelta.resolution


def test_a_window_inside_a_gap_does_not_open_that_day() -> None:
    assert opened("02:00-03:00", "America/New_York", "2024-03-09T12:00", 1) == ["2024-03-11T06:00 2024-03-11T07:00"]
    assert opened("02:10-02:20", "Australia/Lord_Howe", "2024-10-04T16:00", 1) == ["2024-10-06T15:10 2024-10-06T15:20"]


def test_a_gap_shortens_an_opening() -> None:
    assert opened("01:30-02:30", "America/New_York", "2024-03-10T00:00", 1) == ["2024-03-10T06:30 2024-03-10T07:00"]
    assert opened("02:30-04:00", "America/New_York", "2024-03-10T00:00", 1) == ["2024-03-10T07:00 2024-03-10T08:00"]
    assert opened("01:00-04:00", "America/New_York", "2024-03-10T00:00", 1) == ["2024-03-10T06:00 2024-03-10T08:00"]


def test_a_repeated_hour_is_open_twice() -> None:
    assert opened("01:10-01:20", "America/New_York", "2024-11-03T00:00", 3) == [
        "2024-11-03T05:10 2024-11-03T05:20",
        "2024-11-03T06:10 2024-11-03T06:20",
        "2024-11-04T06:10 2024-11-04T06:20",
    ]
    assert opened("01:00-02:00", "America/New_York", "2024-11-03T00:00", 1) == ["2024-11-03T05:00 2024-11-03T07:00"]
    assert opened("00:00-01:30", "America/New_York", "2024-11-03T00:00", 2) == [
        "2024-11-03T04:00 2024-11-03T05:30",
        "2024-11-03T06:00 2024-11-03T06:30",
    ]


def test_clocks_that_go_back_over_midnight_reopen_the_day_before() -> None:
    """Goes back from 00:01 on Sunday to 23:01 on Saturday."""
    assert opened("Sat 00:00-24:00", "America/Goose_Bay", "2010-11-06T12:00", 2) == [
        "2010-11-06T03:00 2010-11-07T03:00",
        "2010-11-07T03:01 2010-11-07T04:00",
    ]
    assert opened("Sun 00:00-24:00", "America/Goose_Bay", "2010-11-06T12:00", 2) == [
        "2010-11-07T03:00 2010-11-07T03:01",
        "2010-11-07T04:00 2010-11-08T04:00",
    ]


def test_a_skipped_date_neither_opens_nor_closes() -> None:
    assert opened("Fri 09:00-18:00", "Pacific/Apia", "2011-12-29T12:00", 1) == ["2012-01-05T19:00 2012-01-06T04:00"]
    all_but_friday = "Sun Mon Tue Wed Thu Sat 00:00-24:00"
    assert opened(all_but_friday, "Pacific/Apia", "2011-12-30T10:00", 1) == ["2011-12-24T10:00 2012-01-05T10:00"]
    assert opened(all_but_friday, "Pacific/Apia", "2012-01-05T09:59", 1) == ["2011-12-24T10:00 2012-01-05T10:00"]


def test_a_closing_inside_a_gap_is_skipped() -> None:
    """Jumps from 23:00 on Saturday to 00:00 on Sunday."""
    assert opened("00:00-23:00", "America/Nuuk", "2024-03-31T12:00", 1) == ["2024-03-30T02:00 2024-04-01T00:00"]


def test_a_window_that_never_closes_is_one_endless_opening() -> None:
    always = window("00:00-24:00")
    assert always.always
    found = list(openings(always, find_zone("Europe/Berlin"), after=utc("2026-06-01T00:00")))
    assert found == [Opening(EARLIEST, LATEST)]
    assert list(openings(always, find_zone("Europe/Berlin"), after=LATEST)) == []


def test_the_answers_end_with_the_calendar() -> None:
    found = list(openings(window("Wed 09:00-18:00"), find_zone("UTC"), after=utc("9997-12-20T00:00")))
    assert [opening.start.day for opening in found] == [24, 31]
    assert list(openings(window(OFFICE), find_zone("UTC"), after=utc("9999-12-31T00:00"))) == []


def test_the_beginning_of_the_calendar_is_accepted() -> None:
    for text in (OFFICE, "Mon Tue Wed Thu Fri Sat 00:00-24:00"):
        first, second = islice(openings(window(text), find_zone("Asia/Tokyo"), after=utc("0001-01-01")), 2)
        assert EARLIEST <= first.start < first.end < second.start


def test_openings_are_found_lazily_for_decades() -> None:
    found = list(islice(openings(window("Wed 12:00-13:00"), find_zone("Asia/Tokyo"), after=utc("2026-01-01")), 3000))
    assert {later.start - earlier.start for earlier, later in pairwise(found)} == {timedelta(days=7)}


@pytest.mark.parametrize(
    ("days", "start", "end", "why"),
    [
        ([], time(9), time(18), "not days of the week"),
        ([7], time(9), time(18), "not days of the week"),
        ([-1, 2], time(9), time(18), "not days of the week"),
        ([1], time(18), time(9), "must end after it starts, not at 09:00 from 18:00"),
        ([1], time(9), time(9), "must end after it starts"),
        ([1], time(9), time(), "must end after it starts"),
        ([1], time(9, tzinfo=UTC), time(18), "without a zone"),
        ([1], time(9), time(18, tzinfo=UTC), "without a zone"),
    ],
)
def test_an_invalid_window_is_refused(days: list[int], start: time, end: time, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        SendWindow(days=frozenset(days), start=start, end=end)


def test_naive_instants_are_refused_by_an_assertion() -> None:
    with pytest.raises(AssertionError):
        window(OFFICE).contains(utc("2026-06-01T12:00"))
    with pytest.raises(AssertionError):
        is_open(window(OFFICE), find_zone("UTC"), datetime(2026, 6, 1, 12))
    with pytest.raises(AssertionError):
        next(openings(window(OFFICE), find_zone("UTC"), after=datetime(2026, 6, 1, 12)))
