"""The policy for weekly slots, case by case."""

from datetime import UTC, date, datetime, time, timedelta, timezone
from itertools import islice, pairwise

import pytest

from civil.weekly import Occurrence, WeeklySlot, none_is_within, occurrences
from civil.windows import SendWindow
from civil.zones import find_zone

DAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")


def slot(text: str) -> WeeklySlot:
    day, clock = text.split()
    hour, minute = clock.split(":")
    return WeeklySlot(day=DAYS.index(day), hour=int(hour), minute=int(minute))


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def between(zone: str, after: str, until: str, *slots: str) -> list[Occurrence]:
    return list(occurrences(map(slot, slots), find_zone(zone), after=utc(after), until=utc(until)))


def instants(found: list[Occurrence]) -> list[str]:
    return [one.instant.strftime("%Y-%m-%dT%H:%M") for one in found]


@pytest.mark.parametrize(
    ("zone", "now", "weekly", "answer", "shifted"),
    [
        ("America/New_York", "2024-03-09T12:00", "Sun 02:30", "2024-03-10T07:30Z = 2024-03-10T03:30-04:00", True),
        ("America/New_York", "2024-11-03T05:30", "Sun 01:30", "2024-11-10T06:30Z = 2024-11-10T01:30-05:00", False),
        ("Australia/Lord_Howe", "2024-10-05T00:00", "Sun 02:15", "2024-10-05T15:45Z = 2024-10-06T02:45+11:00", True),
        ("Africa/Casablanca", "2024-04-13T00:00", "Sun 02:30", "2024-04-14T02:30Z = 2024-04-14T03:30+01:00", True),
        ("Pacific/Apia", "2011-12-29T12:00", "Fri 10:00", "2012-01-05T20:00Z = 2012-01-06T10:00+14:00", False),
        ("Africa/Cairo", "2024-04-25T12:00", "Fri 00:00", "2024-04-25T22:00Z = 2024-04-26T01:00+03:00", True),
        ("America/Nuuk", "2024-03-30T12:00", "Sat 23:30", "2024-03-31T01:30Z = 2024-03-31T00:30-01:00", True),
        ("Antarctica/Troll", "2024-03-30T12:00", "Sun 01:30", "2024-03-31T01:30Z = 2024-03-31T03:30+02:00", True),
        ("America/Vancouver", "2026-11-01T18:00", "Mon 09:00", "2026-11-02T16:00Z = 2026-11-02T09:00-07:00", False),
    ],
)
def test_known_answers(zone: str, now: str, weekly: str, answer: str, shifted: bool) -> None:
    found = next(occurrences([slot(weekly)], find_zone(zone), after=utc(now)))
    instant, shown = map(datetime.fromisoformat, answer.split(" = "))
    assert found.instant == instant
    assert found.local.replace(tzinfo=timezone(found.offset)).isoformat() == shown.isoformat()
    assert (found.local_date, found.local_time) == (shown.date(), shown.time())
    assert found.shifted is shifted
    assert found.slot == slot(weekly)


def test_a_shifted_occurrence_keeps_the_nominal_time_of_its_slot() -> None:
    (found,) = between("America/Nuuk", "2024-03-30T12:00", "2024-04-01T00:00", "Sat 23:30")
    assert (found.nominal.date(), found.nominal.time()) == (date(2024, 3, 30), time(23, 30))
    assert found.nominal.tzinfo is None
    assert found.shift == timedelta(hours=1)
    assert (found.local_date, found.local_time) == (date(2024, 3, 31), time(0, 30))


def test_a_time_shown_twice_occurs_at_the_first() -> None:
    found = between("Europe/Berlin", "2026-10-24T12:00", "2026-10-25T12:00", "Sun 02:00", "Sun 02:30", "Sun 03:00")
    assert instants(found) == ["2026-10-25T00:00", "2026-10-25T00:30", "2026-10-25T02:00"]
    assert found[1].offset == timedelta(hours=2)


def test_nothing_occurs_in_the_second_pass_of_a_repeated_hour() -> None:
    weekly = [f"Sun 02:{minute:02}" for minute in range(60)]
    assert between("Europe/Berlin", "2026-10-25T00:59", "2026-10-25T01:59", *weekly) == []


def test_shifted_slots_come_in_time_order() -> None:
    found = between("America/New_York", "2024-03-10T00:00", "2024-03-10T12:00", "Sun 02:30", "Sun 03:00", "Sun 04:00")
    assert [(one.slot.hour, one.shifted) for one in found] == [(3, False), (2, True), (4, False)]
    assert instants(found) == ["2024-03-10T07:00", "2024-03-10T07:30", "2024-03-10T08:00"]


def test_a_slot_shifted_past_midnight_comes_in_time_order() -> None:
    found = between("America/Nuuk", "2024-03-30T12:00", "2024-03-31T12:00", "Sun 00:00", "Sun 00:45", "Sat 23:30")
    assert [one.slot for one in found] == [slot("Sun 00:00"), slot("Sat 23:30"), slot("Sun 00:45")]


def test_the_unshifted_of_two_slots_at_one_instant_wins() -> None:
    (found,) = between("America/New_York", "2024-03-10T00:00", "2024-03-10T12:00", "Sun 02:30", "Sun 03:30")
    assert found.slot == slot("Sun 03:30")
    assert not found.shifted


def test_a_duplicate_slot_counts_once() -> None:
    assert len(between("UTC", "2026-01-01T00:00", "2026-01-08T00:00", "Mon 09:00", "Mon 09:00")) == 1


def test_skipped_dates_are_dropped_and_their_neighbours_stay() -> None:
    daily = [f"{day} 10:00" for day in DAYS]
    found = between("Pacific/Apia", "2011-12-28T00:00", "2012-01-01T00:00", *daily)
    assert [one.local_date.day for one in found] == [28, 29, 31, 1]
    assert not any(one.shifted for one in found)


def test_a_date_dropped_across_the_turn_of_a_utc_year() -> None:
    daily = [f"{day} 12:00" for day in DAYS]
    found = between("Pacific/Kiritimati", "1994-12-29T00:00", "1995-01-03T00:00", *daily)
    assert [one.local_date.isoformat() for one in found] == [
        "1994-12-29",
        "1994-12-30",
        "1995-01-01",
        "1995-01-02",
        "1995-01-03",
    ]


def test_days_shown_twice_at_the_date_line_occur_once() -> None:
    daily = [f"{day} {hour}:00" for day in DAYS for hour in ("00", "06", "12", "18")]
    found = between("Pacific/Kwajalein", "1969-09-27T00:00", "1969-10-04T00:00", *daily)
    nominals = [one.nominal for one in found]
    assert {later - earlier for earlier, later in pairwise(nominals)} == {timedelta(hours=6)}


def test_after_is_excluded_and_until_included() -> None:
    week = between("UTC", "2026-01-05T09:00", "2026-01-12T09:00", "Mon 09:00")
    assert instants(week) == ["2026-01-12T09:00"]
    assert between("UTC", "2026-01-05T09:00", "2026-01-12T08:59", "Mon 09:00") == []


def test_after_is_exact_to_the_microsecond() -> None:
    nine = utc("2026-01-05T09:00")
    just_before = nine - timedelta(microseconds=1)
    assert next(occurrences([slot("Mon 09:00")], find_zone("UTC"), after=just_before)).instant == nine


def test_an_interval_that_ends_before_it_starts_is_empty() -> None:
    assert between("Europe/Berlin", "2026-06-01T00:00", "2026-01-01T00:00", "Mon 09:00") == []


def test_without_slots_there_is_no_occurrence() -> None:
    assert list(occurrences([], find_zone("Europe/Berlin"), after=utc("2026-01-01T00:00"))) == []


def test_without_an_end_occurrences_go_on_week_by_week() -> None:
    found = list(islice(occurrences([slot("Wed 12:00")], find_zone("Asia/Tokyo"), after=utc("2026-01-01T00:00")), 5000))
    assert {later.instant - earlier.instant for earlier, later in pairwise(found)} == {timedelta(days=7)}


def test_the_answers_end_with_the_calendar() -> None:
    found = list(occurrences([slot("Wed 12:00")], find_zone("Europe/Berlin"), after=utc("9997-12-01T00:00")))
    assert [one.local_date for one in found] == [date(9997, 12, day) for day in (3, 10, 17, 24, 31)]
    assert list(occurrences([slot("Wed 12:00")], find_zone("UTC"), after=datetime.max.replace(tzinfo=UTC))) == []


def test_the_beginning_of_the_calendar_is_accepted() -> None:
    everything = occurrences([slot("Wed 12:00")], find_zone("America/New_York"), after=datetime.min.replace(tzinfo=UTC))
    assert next(everything).local_time == time(12)


def test_instants_are_in_utc_for_a_question_in_any_zone() -> None:
    after = datetime(2026, 1, 5, 9, tzinfo=timezone(timedelta(hours=9)))
    found = next(occurrences([slot("Mon 09:00")], find_zone("UTC"), after=after))
    assert found.instant == utc("2026-01-05T09:00")
    assert found.instant.tzinfo is UTC


def test_a_naive_instant_is_refused_by_an_assertion() -> None:
    with pytest.raises(AssertionError):
        next(occurrences([slot("Mon 09:00")], find_zone("UTC"), after=utc("2026-01-05T00:00").replace(tzinfo=None)))


@pytest.mark.parametrize(
    ("day", "hour", "minute"), [(-1, 0, 0), (7, 0, 0), (0, -1, 0), (0, 24, 0), (0, 0, -1), (0, 0, 60)]
)
def test_times_outside_a_week_are_refused(day: int, hour: int, minute: int) -> None:
    with pytest.raises(ValueError, match="not a time of the week"):
        WeeklySlot(day=day, hour=hour, minute=minute)


@pytest.mark.parametrize(
    ("hours", "window", "expected"),
    [
        ([9, 17], SendWindow(days=frozenset({1}), start=time(12), end=None), False),
        ([9, 17], SendWindow(days=frozenset({0, 2}), start=time(12), end=None), True),
        ([9, 17], SendWindow(days=frozenset({1}), start=time(10), end=time(17)), True),
        ([9, 17], None, False),
        ([], SendWindow(days=frozenset({1}), start=time(12), end=None), False),
    ],
)
def test_a_window_may_leave_no_slot(hours: list[int], window: SendWindow | None, expected: bool) -> None:
    mondays = [WeeklySlot(day=1, hour=hour, minute=0) for hour in hours]
    assert none_is_within(mondays, window) is expected
