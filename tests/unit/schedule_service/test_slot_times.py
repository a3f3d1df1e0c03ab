"""The search for slot times: how far it reaches and what it finds."""

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

import pytest

from civil.weekly import WeeklySlot
from civil.windows import SendWindow
from civil.zones import find_zone
from schedule_service.domain.calendars.account_schedule import Timetable
from schedule_service.domain.calendars.slot_times import HORIZON, NOTICE, Search, search, slot_times
from servicekit.faults import InvalidField

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
"""A Monday."""
MONDAYS = Timetable(
    name="",
    zone=find_zone("UTC"),
    weekly_slots=(WeeklySlot(day=1, hour=9, minute=1), WeeklySlot(day=1, hour=17, minute=0)),
    max_posts_per_day=0,
    enabled=True,
)

WEEK = Search(start=NOW, end=NOW + timedelta(days=7), count=10)


def found(start: str, end: str, count: int = 10, timetable: Timetable = MONDAYS) -> list[str]:
    wanted = Search(start=utc(start), end=utc(end), count=count)
    return [time.instant.strftime("%m-%dT%H:%M") for time in slot_times(timetable, wanted).times]


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_the_search_begins_by_default_at_the_notice() -> None:
    assert search(after=None, before=None, count=1, now=NOW).start == NOW + NOTICE


def test_a_slot_exactly_at_the_notice_can_be_allocated() -> None:
    at_notice = search(after=None, before=None, count=1, now=NOW)
    assert slot_times(MONDAYS, at_notice).times[0].instant == NOW + NOTICE
    too_late = search(after=None, before=None, count=1, now=NOW + timedelta(microseconds=1))
    assert slot_times(MONDAYS, too_late).times[0].instant == utc("2026-03-02T17:00")


def test_the_start_is_included_and_the_end_excluded() -> None:
    assert found("2026-03-02T09:01", "2026-03-02T17:00") == ["03-02T09:01"]
    assert found("2026-03-02T09:01", "2026-03-02T17:00:00.000001") == ["03-02T09:01", "03-02T17:00"]


def test_a_search_may_begin_in_the_past() -> None:
    wanted = search(after=utc("2020-01-01T00:00"), before=None, count=1, now=NOW)
    assert slot_times(MONDAYS, wanted).times[0].instant == utc("2020-01-06T09:01")


def test_the_horizon_bounds_every_search() -> None:
    assert search(after=NOW, before=None, count=1, now=NOW).end == NOW + HORIZON
    assert search(after=NOW, before=NOW + 2 * HORIZON, count=1, now=NOW).end == NOW + HORIZON
    assert search(after=NOW, before=NOW + timedelta(days=1), count=1, now=NOW).end == NOW + timedelta(days=1)


@pytest.mark.parametrize("before", [NOW, NOW - timedelta(days=1)])
def test_an_end_not_after_the_start_is_refused(before: datetime) -> None:
    with pytest.raises(InvalidField) as refusal:
        search(after=NOW, before=before, count=1, now=NOW)
    assert refusal.value.metadata == {"field": "before"}
    assert "later than `after`" in refusal.value.message


def test_a_refused_end_is_answered_with_the_start_of_the_search() -> None:
    with pytest.raises(InvalidField) as refusal:
        search(after=None, before=NOW + NOTICE, count=1, now=NOW)
    assert "now + 60 s" in refusal.value.message


@pytest.mark.parametrize("after", ["0001-01-01T00:00", "0002-12-31T23:59", "9996-02-01T00:00", "9999-12-31T23:59"])
def test_a_start_at_the_ends_of_the_calendar_is_refused(after: str) -> None:
    with pytest.raises(InvalidField) as refusal:
        search(after=utc(after), before=None, count=1, now=NOW)
    assert refusal.value.metadata == {"field": "after"}


@pytest.mark.parametrize("after", ["0003-01-01T00:00", "9995-12-31T23:59"])
def test_any_other_start_can_be_searched_from(after: str) -> None:
    wanted = search(after=utc(after), before=None, count=1000, now=NOW)
    assert len(slot_times(MONDAYS, wanted).times) in {2 * 104, 2 * 105}


def test_a_full_search_ends_at_its_last_time() -> None:
    wanted = Search(start=NOW, end=NOW + HORIZON, count=2)
    assert slot_times(MONDAYS, wanted).searched_until == utc("2026-03-02T17:00")


def test_a_search_that_is_not_full_reaches_its_end() -> None:
    wanted = Search(start=NOW, end=NOW + timedelta(days=1), count=3)
    assert slot_times(MONDAYS, wanted).searched_until == NOW + timedelta(days=1)


@pytest.mark.parametrize("none", [replace(MONDAYS, enabled=False), replace(MONDAYS, weekly_slots=())])
def test_a_disabled_schedule_and_one_without_slots_have_no_times(none: Timetable) -> None:
    answer = slot_times(none, Search(start=NOW, end=NOW + HORIZON, count=1))
    assert (answer.times, answer.searched_until) == ((), NOW + HORIZON)


def test_a_search_finds_the_times_of_one_category() -> None:
    evening = MONDAYS.weekly_slots[1]
    news = replace(MONDAYS, categories={evening: "news"})
    hours = {
        category: [time.instant.hour for time in slot_times(news, replace(WEEK, category_id=category)).times]
        for category in (None, "", "news", "sport")
    }
    assert hours == {None: [9, 17], "": [9], "news": [17], "sport": []}
    assert slot_times(replace(news, enabled=False), replace(WEEK, category_id="news")).times == ()


def test_a_category_without_weekly_slots_has_no_times_until_the_end() -> None:
    none = slot_times(MONDAYS, replace(WEEK, category_id="news", end=WEEK.start + HORIZON))
    assert (none.times, none.searched_until) == ((), WEEK.start + HORIZON)


AFTERNOON = SendWindow(days=frozenset({1}), start=time(12), end=None)


@pytest.mark.parametrize(("window", "hours"), [(None, [9, 17]), (AFTERNOON, [17])])
def test_a_search_inside_the_window_passes_over_the_times_outside_it(
    window: SendWindow | None, hours: list[int]
) -> None:
    mondays = replace(MONDAYS, send_window=window)
    assert [found.instant.hour for found in slot_times(mondays, WEEK).times] == [9, 17]
    inside = replace(WEEK, inside_window_only=True)
    assert [found.instant.hour for found in slot_times(mondays, inside).times] == hours


def test_a_search_inside_the_window_goes_on_until_it_has_enough() -> None:
    answer = slot_times(
        replace(MONDAYS, send_window=AFTERNOON), Search(start=NOW, end=NOW + HORIZON, count=3, inside_window_only=True)
    )
    assert [found.instant.strftime("%m-%dT%H") for found in answer.times] == ["03-02T17", "03-09T17", "03-16T17"]
    assert answer.searched_until == answer.times[-1].instant
