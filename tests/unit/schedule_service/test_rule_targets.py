"""The targets of rules: named answers, pages, and how little they cost."""

import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from types import FrameType
from typing import Any

import pytest

from civil.recurrence import occurs
from civil.weekly import WeeklySlot
from civil.zones import find_zone
from schedule_service.domain.calendars.rule_targets import (
    HORIZON,
    LONGEST_HORIZON,
    RuleTarget,
    Span,
    page_of,
    span,
    targets,
)
from schedule_service.domain.calendars.schedule_rule import AssetPolicy, ScheduleRule, Terms, recurrence
from servicekit.faults import InvalidField

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
"""A Monday."""
EVERY_HOUR = ",".join(map(str, range(24)))
EVERY_MINUTE = ",".join(map(str, range(60)))
EVERY_DAY = "MO,TU,WE,TH,FR,SA,SU"


def rule(rule_id: str = "r1", zone: str = "UTC", *, version: int = 1, **terms: Any) -> ScheduleRule:
    """Returns a rule without checking its terms: a stored one may be older than the checks."""
    given: dict[str, Any] = {
        "name": "",
        "weekly_slots": (),
        "rrule": "",
        "start_time": None,
        "start_date": date(2026, 1, 1) if "rrule" in terms else None,
        "end_date": None,
        "excluded_dates": (),
        "channels": ("facebook",),
        "category_id": "",
        "asset_policy": AssetPolicy.OPTIONAL,
        "enabled": True,
    }
    return ScheduleRule(
        organization_id="acme",
        id=rule_id,
        brand_id="brand",
        terms=Terms(time_zone=find_zone(zone), **(given | terms)),
        version=version,
        create_time=NOW,
        update_time=NOW,
        tzdata_version="",
    )


def slot(day: int, hour: int, minute: int = 0) -> WeeklySlot:
    return WeeklySlot(day=day, hour=hour, minute=minute)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def found(asked: ScheduleRule, start: str, end: str) -> list[tuple[str, str]]:
    """Returns (instant, nominal local time) of each target."""
    return [
        (f"{each.instant:%Y-%m-%dT%H:%M}", each.key.removeprefix(f"{asked.id}/"))
        for each in targets(asked, start=utc(start), end=utc(end))
    ]


@pytest.mark.parametrize(
    ("zone", "day", "hour", "minute", "now", "instant", "nominal", "local"),
    [
        ("America/New_York", 0, 2, 30, "2024-03-09T12:00", "2024-03-10T07:30", "2024-03-10/02:30", "2024-03-10T03:30"),
        ("America/New_York", 0, 1, 30, "2024-11-03T05:31", "2024-11-10T06:30", "2024-11-10/01:30", "2024-11-10T01:30"),
        (
            "Australia/Lord_Howe",
            *(0, 2, 15),
            *("2024-10-05T00:00", "2024-10-05T15:45", "2024-10-06/02:15", "2024-10-06T02:45"),
        ),
        (
            "Africa/Casablanca",
            *(0, 2, 30),
            *("2024-04-13T00:00", "2024-04-14T02:30", "2024-04-14/02:30", "2024-04-14T03:30"),
        ),
        ("Pacific/Apia", 5, 10, 0, "2011-12-29T12:00", "2012-01-05T20:00", "2012-01-06/10:00", "2012-01-06T10:00"),
        ("Africa/Cairo", 5, 0, 0, "2024-04-25T12:00", "2024-04-25T22:00", "2024-04-26/00:00", "2024-04-26T01:00"),
        ("America/Nuuk", 6, 23, 30, "2024-03-30T12:00", "2024-03-31T01:30", "2024-03-30/23:30", "2024-03-31T00:30"),
        ("Antarctica/Troll", 0, 1, 30, "2024-03-30T12:00", "2024-03-31T01:30", "2024-03-31/01:30", "2024-03-31T03:30"),
        ("America/Vancouver", 1, 9, 0, "2026-11-01T18:00", "2026-11-02T16:00", "2026-11-02/09:00", "2026-11-02T09:00"),
    ],
)
def test_both_kinds_of_rule_give_the_expected_targets(
    zone: str, day: int, hour: int, minute: int, now: str, instant: str, nominal: str, local: str
) -> None:
    by_day = f"FREQ=WEEKLY;BYDAY={('SU', 'MO', 'TU', 'WE', 'TH', 'FR', 'SA')[day]}"
    for asked in (
        rule("r1", zone, weekly_slots=(slot(day, hour, minute),)),
        rule("r1", zone, rrule=by_day, start_time=time(hour, minute), start_date=date(2005, 5, 5)),
    ):
        first = next(targets(asked, start=utc(now), end=utc(now) + HORIZON))
        assert first.instant == utc(instant)
        assert first.key == f"r1/{nominal}"
        assert first.local.isoformat(timespec="minutes") == local
        assert bool(first.shift) == (nominal.replace("/", "T") != local)


def test_the_start_is_included_but_not_the_end() -> None:
    mondays = rule(weekly_slots=(slot(1, 9),))
    assert len(found(mondays, "2026-03-02T09:00", "2026-03-09T09:00")) == 1
    assert len(found(mondays, "2026-03-02T09:00:00.000001", "2026-03-09T09:00:00.000001")) == 1
    assert found(mondays, "2026-03-02T09:01", "2026-03-09T09:00") == []


def test_dates_bound_a_rule_and_excluded_ones_are_left_out() -> None:
    for daily in (
        rule(
            weekly_slots=tuple(slot(day, 9) for day in range(7)),
            start_date=date(2026, 3, 3),
            end_date=date(2026, 3, 6),
            excluded_dates=(date(2026, 3, 4), date(2026, 3, 5)),
        ),
        rule(
            rrule="FREQ=DAILY",
            start_time=time(9),
            start_date=date(2026, 3, 3),
            end_date=date(2026, 3, 6),
            excluded_dates=(date(2026, 3, 4), date(2026, 3, 5)),
        ),
    ):
        assert [nominal for _, nominal in found(daily, "2026-01-01T00:00", "2027-01-01T00:00")] == [
            "2026-03-03/09:00",
            "2026-03-06/09:00",
        ]


def test_dates_are_those_of_the_nominal_time_not_of_the_instant() -> None:
    """Saturday 23:30 in Nuuk is shifted to Sunday 00:30."""
    saturdays = rule("r1", "America/Nuuk", weekly_slots=(slot(6, 23, 30),))
    there = ("2024-03-31T01:30", "2024-03-30/23:30")
    cases: list[tuple[dict[str, Any], list[tuple[str, str]]]] = [
        ({"end_date": date(2024, 3, 30)}, [there]),
        ({"excluded_dates": (date(2024, 3, 31),)}, [there]),
        ({"start_date": date(2024, 3, 31)}, []),
        ({"excluded_dates": (date(2024, 3, 30),)}, []),
    ]
    for dates, expected in cases:
        asked = replace(saturdays, terms=replace(saturdays.terms, **dates))
        assert found(asked, "2024-03-31T00:00", "2024-04-01T00:00") == expected


def test_the_unshifted_one_of_two_times_at_one_instant_is_kept() -> None:
    both = rule("r1", "America/Nuuk", weekly_slots=(slot(0, 0, 30), slot(6, 23, 30)))
    assert found(both, "2024-03-30T12:00", "2024-04-01T00:00") == [("2024-03-31T01:30", "2024-03-31/00:30")]


def test_an_excluded_time_hides_no_other_at_its_instant() -> None:
    both = rule(
        "r1", "America/Nuuk", weekly_slots=(slot(0, 0, 30), slot(6, 23, 30)), excluded_dates=(date(2024, 3, 31),)
    )
    assert found(both, "2024-03-30T12:00", "2024-04-01T00:00") == [("2024-03-31T01:30", "2024-03-30/23:30")]


def test_a_page_beginning_in_a_gap_includes_times_shifted_into_it() -> None:
    nightly = rule("r1", "America/New_York", rrule="FREQ=DAILY;BYHOUR=2,3;BYMINUTE=15,30,45", start_time=None)
    assert found(nightly, "2026-03-08T07:20", "2026-03-08T12:00") == [
        ("2026-03-08T07:30", "2026-03-08/03:30"),
        ("2026-03-08T07:45", "2026-03-08/03:45"),
    ]
    only_in_gap = rule("r1", "America/New_York", rrule="FREQ=DAILY;BYHOUR=2;BYMINUTE=15,30,45", start_time=None)
    assert found(only_in_gap, "2026-03-08T07:20", "2026-03-08T12:00") == [
        ("2026-03-08T07:30", "2026-03-08/02:30"),
        ("2026-03-08T07:45", "2026-03-08/02:45"),
    ]


def test_until_and_an_end_date_both_hold() -> None:
    rrule: dict[str, Any] = {"rrule": "FREQ=DAILY;UNTIL=20260304", "start_time": time(9)}
    for end_date, last in [(date(2026, 3, 3), "03"), (date(2026, 3, 5), "04"), (None, "04")]:
        nominal = [each for _, each in found(rule(**rrule, end_date=end_date), "2026-03-01T00:00", "2026-04-01T00:00")]
        assert nominal[-1] == f"2026-03-{last}/09:00"


def test_a_count_starts_at_the_start_date_in_every_listing() -> None:
    thrice = rule(rrule="FREQ=WEEKLY;BYDAY=MO;COUNT=3", start_time=time(9), start_date=date(2026, 3, 1))
    assert [nominal[:10] for _, nominal in found(thrice, "2026-03-10T00:00", "2027-01-01T00:00")] == ["2026-03-16"]
    without = replace(thrice, terms=replace(thrice.terms, excluded_dates=(date(2026, 3, 9),)))
    assert [nominal[:10] for _, nominal in found(without, "2026-03-01T00:00", "2027-01-01T00:00")] == [
        "2026-03-02",
        "2026-03-16",
    ]


def test_targets_are_sorted_by_time_then_by_key() -> None:
    rules = [rule("b", weekly_slots=(slot(1, 9),)), rule("a", weekly_slots=(slot(1, 8), slot(1, 9)))]
    page = page_of(rules, Span(start=NOW - timedelta(hours=1), end=NOW + timedelta(hours=1)), size=10)
    assert [each.key for each in page.targets] == ["a/2026-03-02/08:00", "a/2026-03-02/09:00", "b/2026-03-02/09:00"]
    assert page.rest is None


def test_the_next_page_may_begin_within_an_instant() -> None:
    rules = [rule(rule_id, weekly_slots=(slot(1, 9),)) for rule_id in "abc"]
    whole = Span(start=NOW, end=NOW + timedelta(days=14))
    first = page_of(rules, whole, size=2)
    assert first.rest == Span(start=NOW, end=whole.end, behind="b/2026-03-02/09:00")
    second = page_of(rules, first.rest, size=2)
    assert [each.key[0] for each in second.targets] == ["c", "a"]
    assert second.rest is not None
    last = page_of(rules, second.rest, size=2)
    assert ([each.key[0] for each in last.targets], last.rest) == (["b", "c"], None)


def test_the_span_is_thirty_days_from_now_by_default() -> None:
    assert span(after=None, horizon=None, now=NOW) == Span(start=NOW, end=NOW + timedelta(days=30))
    past = utc("1999-01-01T00:00")
    assert span(after=past, horizon=timedelta(seconds=1), now=NOW) == Span(start=past, end=past + timedelta(seconds=1))


@pytest.mark.parametrize("after", ["0001-01-01T00:00", "0002-12-31T23:59", "9996-01-01T00:00", "9999-12-31T23:59"])
def test_a_start_at_the_ends_of_the_calendar_is_refused(after: str) -> None:
    with pytest.raises(InvalidField) as refused:
        span(after=utc(after), horizon=None, now=NOW)
    assert refused.value.metadata == {"field": "after"}


@pytest.mark.parametrize("after", ["0003-01-01T00:00", "9995-12-31T23:59"])
def test_any_other_start_can_be_checked(after: str) -> None:
    daily = [rule(weekly_slots=tuple(slot(day, 9) for day in range(7)))]
    page = page_of(daily, span(after=utc(after), horizon=LONGEST_HORIZON, now=NOW), size=1000)
    assert len(page.targets) == 366


# A walk from the start of a rule, or over all excluded dates, would execute hundreds of thousands of lines; a walk over
# all years of the calendar, millions.
_A_PAGE = 25_000


def lines_run(call: Callable[[], object]) -> int:
    """Counts the lines that a call executes, which a busy machine does not change."""
    count = 0

    def trace(frame: FrameType, event: str, arg: object) -> Callable[..., Any]:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


YEAR = tuple(date(2026, 1, 1) + timedelta(days=n) for n in range(1000))
NASTY: dict[str, ScheduleRule] = {
    "every minute": rule(rrule=f"FREQ=HOURLY;BYMINUTE={EVERY_MINUTE}", start_time=time(0)),
    "every minute since the first": rule(
        rrule=f"FREQ=HOURLY;BYMINUTE={EVERY_MINUTE}", start_time=time(0), start_date=date(1, 1, 1)
    ),
    "every minute of a day": rule(rrule=f"FREQ=DAILY;BYHOUR={EVERY_HOUR};BYMINUTE={EVERY_MINUTE}"),
    "every minute, on excluded dates": rule(
        rrule=f"FREQ=HOURLY;BYMINUTE={EVERY_MINUTE}", start_time=time(0), excluded_dates=YEAR
    ),
    "every minute, on every other date": rule(
        rrule=f"FREQ=HOURLY;BYMINUTE={EVERY_MINUTE}", start_time=time(0), excluded_dates=YEAR[::2]
    ),
    "every minute until long ago": rule(
        rrule=f"FREQ=HOURLY;BYMINUTE={EVERY_MINUTE};UNTIL=20260101T000500", start_time=time(0)
    ),
    "every minute, ended": rule(
        rrule=f"FREQ=HOURLY;BYMINUTE={EVERY_MINUTE}", start_time=time(0), end_date=date(2026, 1, 2)
    ),
    "a day that no month has": rule(rrule="FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30", start_time=time(9)),
    "a leap day on a Monday": rule(rrule="FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO", start_time=time(9)),
    "a week that June has not": rule(rrule="FREQ=YEARLY;BYWEEKNO=53;BYMONTH=6", start_time=time(9)),
    "an hour that is always passed over": rule(rrule="FREQ=HOURLY;INTERVAL=2;BYHOUR=8", start_time=time(9)),
    "the widest steps": rule(rrule="FREQ=HOURLY;INTERVAL=10000", start_time=time(9), start_date=date(1970, 1, 1)),
    "the last minute of a year": rule(
        rrule=f"FREQ=YEARLY;BYDAY={EVERY_DAY};BYHOUR={EVERY_HOUR};BYMINUTE={EVERY_MINUTE};BYSETPOS=-1"
    ),
    "every hour for two thousand years": rule(rrule="FREQ=HOURLY", start_time=time(9), start_date=date(26, 1, 1)),
    "the most slots, on excluded dates": rule(
        weekly_slots=tuple(sorted(slot(n % 7, n // 7 % 24, n % 60) for n in range(500))), excluded_dates=YEAR
    ),
    "a slot before its start": rule(weekly_slots=(slot(1, 9),), start_date=date(2300, 1, 1)),
}


@pytest.mark.parametrize("name", NASTY)
def test_a_page_of_a_nasty_rule_costs_no_more_than_its_span(name: str) -> None:
    asked = NASTY[name]
    wanted = Span(start=NOW, end=NOW + LONGEST_HORIZON)
    assert lines_run(lambda: page_of([asked], wanted, size=200)) < _A_PAGE


def test_the_occurrences_of_a_count_are_counted_once() -> None:
    counted = rule(rrule="FREQ=WEEKLY;BYDAY=MO;COUNT=5000", start_time=time(9), start_date=date(1951, 6, 1))
    wanted = Span(start=NOW, end=NOW + LONGEST_HORIZON)
    first = page_of([counted], wanted, size=200)
    assert len(first.targets) == 53
    assert lines_run(lambda: page_of([counted], wanted, size=200)) < _A_PAGE


@pytest.mark.parametrize("name", [name for name, asked in NASTY.items() if asked.terms.rrule])
def test_checking_that_a_nasty_rule_occurs_expands_at_most_five_years(name: str) -> None:
    asked = recurrence(NASTY[name].terms)
    assert lines_run(lambda: occurs(asked)) < 100_000


def test_an_endless_rule_is_expanded_only_as_far_as_shown() -> None:
    endless = NASTY["every minute"]
    wanted = Span(start=NOW, end=NOW + LONGEST_HORIZON)

    def page(size: int) -> int:
        return lines_run(lambda: page_of([endless], wanted, size=size))

    assert page(200) - page(1) < 200 * 60


def test_a_target_names_its_rule() -> None:
    asked = rule(weekly_slots=(slot(1, 9),), version=7)
    (target,) = targets(asked, start=NOW, end=NOW + timedelta(days=7))
    assert isinstance(target, RuleTarget)
    assert target.rule is asked
