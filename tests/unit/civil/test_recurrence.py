"""Recurrence rules, case by case: the times that they mean, and the texts that are refused."""

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest

from civil.recurrence import InvalidRecurrence, nominal_times, occurs, parse_recurrence

START = datetime(2026, 1, 1, 9)  # a Thursday


def local(text: str) -> datetime:
    return datetime.fromisoformat(text)


def times(text: str, count: int = 5, start: datetime = START) -> list[str]:
    found = nominal_times(parse_recurrence(text, start=start), first=start, until=start + timedelta(days=36525))
    return [f"{one:%Y-%m-%d %H:%M}" for one in islice(found, count)]


def test_the_start_supplies_the_time_of_day() -> None:
    assert times("FREQ=DAILY", 2) == ["2026-01-01 09:00", "2026-01-02 09:00"]
    assert times("FREQ=DAILY;BYHOUR=18", 2) == ["2026-01-01 18:00", "2026-01-02 18:00"]
    assert times("FREQ=DAILY;BYMINUTE=30", 1) == ["2026-01-01 09:30"]
    assert times("FREQ=DAILY;BYHOUR=8,18;BYMINUTE=0,30", 4) == [
        "2026-01-01 18:00",
        "2026-01-01 18:30",
        "2026-01-02 08:00",
        "2026-01-02 08:30",
    ]


def test_the_start_supplies_the_day() -> None:
    assert times("FREQ=YEARLY", 2) == ["2026-01-01 09:00", "2027-01-01 09:00"]
    assert times("FREQ=YEARLY;BYMONTH=6", 2) == ["2026-06-01 09:00", "2027-06-01 09:00"]
    assert times("FREQ=YEARLY;BYMONTHDAY=15", 2) == ["2026-01-15 09:00", "2026-02-15 09:00"]
    assert times("FREQ=MONTHLY", 2) == ["2026-01-01 09:00", "2026-02-01 09:00"]
    assert times("FREQ=WEEKLY", 2) == ["2026-01-01 09:00", "2026-01-08 09:00"]
    assert times("FREQ=YEARLY;BYWEEKNO=20", 2) == ["2026-05-14 09:00", "2027-05-20 09:00"]


def test_a_day_that_a_month_does_not_have_is_left_out() -> None:
    assert times("FREQ=MONTHLY", 3, START.replace(day=31)) == [
        "2026-01-31 09:00",
        "2026-03-31 09:00",
        "2026-05-31 09:00",
    ]
    assert times("FREQ=YEARLY", 3, local("2096-02-29T09:00")) == [
        "2096-02-29 09:00",
        "2104-02-29 09:00",
        "2108-02-29 09:00",
    ]


@pytest.mark.parametrize(
    ("rule", "days"),
    [
        ("FREQ=MONTHLY;BYDAY=-1FR", ["2026-01-30", "2026-02-27", "2026-03-27"]),
        ("FREQ=MONTHLY;BYDAY=MO,-1FR", ["2026-01-05", "2026-01-12", "2026-01-19", "2026-01-26", "2026-01-30"]),
        ("FREQ=MONTHLY;BYDAY=5TH", ["2026-01-29", "2026-04-30", "2026-07-30"]),
        ("FREQ=MONTHLY;BYMONTHDAY=-1", ["2026-01-31", "2026-02-28", "2026-03-31"]),
        ("FREQ=MONTHLY;BYMONTHDAY=13;BYDAY=FR", ["2026-02-13", "2026-03-13", "2026-11-13"]),
        ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", ["2026-01-30", "2026-02-27", "2026-03-31"]),
        ("FREQ=YEARLY;BYDAY=20MO", ["2026-05-18", "2027-05-17", "2028-05-15"]),
        ("FREQ=YEARLY;BYMONTH=11;BYDAY=4TH", ["2026-11-26", "2027-11-25", "2028-11-23"]),
        ("FREQ=YEARLY;BYYEARDAY=1,100,-1", ["2026-01-01", "2026-04-10", "2026-12-31", "2027-01-01"]),
        ("FREQ=YEARLY;BYWEEKNO=1;BYDAY=MO", ["2027-01-04", "2028-01-03", "2029-01-01", "2029-12-31"]),
        ("FREQ=YEARLY;BYWEEKNO=53;BYDAY=MO", ["2026-12-28", "2032-12-27"]),
        ("FREQ=YEARLY;BYWEEKNO=-1;BYDAY=MO", ["2026-12-28", "2027-12-27", "2028-12-25"]),
        ("FREQ=YEARLY;INTERVAL=3", ["2026-01-01", "2029-01-01"]),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU", ["2026-01-04", "2026-01-13", "2026-01-18", "2026-01-27"]),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,SU;WKST=SU", ["2026-01-11", "2026-01-13", "2026-01-25", "2026-01-27"]),
        ("FREQ=WEEKLY;BYMONTH=2;BYDAY=MO", ["2026-02-02", "2026-02-09", "2026-02-16", "2026-02-23", "2027-02-01"]),
        ("FREQ=DAILY;INTERVAL=10;BYMONTH=1,3", ["2026-01-01", "2026-01-11", "2026-01-21", "2026-01-31", "2026-03-02"]),
        ("FREQ=DAILY;BYDAY=SA,SU", ["2026-01-03", "2026-01-04", "2026-01-10"]),
    ],
)
def test_days_of_a_rule(rule: str, days: list[str]) -> None:
    assert times(rule, len(days)) == [f"{day} 09:00" for day in days]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("FREQ=HOURLY;INTERVAL=7", ["01-01 09:00", "01-01 16:00", "01-01 23:00", "01-02 06:00"]),
        ("FREQ=HOURLY;INTERVAL=5;BYHOUR=9,10", ["01-01 09:00", "01-02 10:00", "01-06 09:00", "01-07 10:00"]),
        ("FREQ=HOURLY;BYDAY=SA;BYHOUR=10;BYMINUTE=15,45", ["01-03 10:15", "01-03 10:45", "01-10 10:15"]),
        ("FREQ=HOURLY;INTERVAL=100", ["01-01 09:00", "01-05 13:00", "01-09 17:00"]),
        ("FREQ=HOURLY;BYMINUTE=5,25,45;BYSETPOS=-1", ["01-01 09:45", "01-01 10:45"]),
        ("FREQ=DAILY;BYHOUR=6,12,18;BYSETPOS=2", ["01-01 12:00", "01-02 12:00"]),
        ("FREQ=WEEKLY;BYDAY=MO,FR;BYHOUR=8,20;BYSETPOS=1,-1", ["01-02 20:00", "01-05 08:00", "01-09 20:00"]),
    ],
)
def test_times_of_a_rule(rule: str, expected: list[str]) -> None:
    assert times(rule, len(expected)) == [f"2026-{one}" for one in expected]


def test_a_position_counts_from_the_beginning_of_the_first_period() -> None:
    """Monday is the first day of the week, although the rule starts on a Thursday."""
    assert times("FREQ=WEEKLY;BYDAY=MO,TH,FR;BYSETPOS=1", 2) == ["2026-01-05 09:00", "2026-01-12 09:00"]
    assert times("FREQ=MONTHLY;BYDAY=WE,TH;BYSETPOS=1", 2, START.replace(day=2)) == [
        "2026-02-04 09:00",
        "2026-03-04 09:00",
    ]


def test_until_is_included_and_a_date_lasts_to_its_end() -> None:
    assert times("FREQ=DAILY;UNTIL=20260103") == ["2026-01-01 09:00", "2026-01-02 09:00", "2026-01-03 09:00"]
    assert times("FREQ=DAILY;UNTIL=20260103T090000") == times("FREQ=DAILY;UNTIL=20260103")
    assert times("FREQ=DAILY;UNTIL=20260103T085959") == times("FREQ=DAILY;UNTIL=20260102")


def test_count_counts_from_the_start_of_the_rule() -> None:
    rule = parse_recurrence("FREQ=WEEKLY;BYDAY=MO,TH;COUNT=4", start=START)
    assert rule.last == local("2026-01-12T09:00")
    everything = list(nominal_times(rule, first=START, until=local("2036-01-01")))
    assert [one.day for one in everything] == [1, 5, 8, 12]
    assert list(nominal_times(rule, first=local("2026-01-06"), until=local("2036-01-01"))) == everything[2:]
    assert list(nominal_times(rule, first=local("2026-02-01"), until=local("2036-01-01"))) == []


def test_first_is_included_and_until_excluded() -> None:
    daily = parse_recurrence("FREQ=DAILY", start=START)
    found = list(nominal_times(daily, first=local("2026-03-01T09:00"), until=local("2026-03-03T09:00")))
    assert found == [local("2026-03-01T09:00"), local("2026-03-02T09:00")]
    assert list(nominal_times(daily, first=local("2026-03-01T09:00:00.000001"), until=local("2026-03-02T09:00"))) == []
    assert list(nominal_times(daily, first=local("2026-03-03"), until=local("2026-03-01"))) == []


def test_nothing_occurs_before_the_start() -> None:
    daily = parse_recurrence("FREQ=DAILY;BYHOUR=8,10", start=START)
    assert next(nominal_times(daily, first=local("0001-01-01"), until=local("2027-01-01"))) == local("2026-01-01T10:00")


@pytest.mark.parametrize("extra", ["", ";INTERVAL=7", ";BYMONTH=12", ";BYHOUR=9;BYSETPOS=-1"])
@pytest.mark.parametrize("frequency", ["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY"])
def test_the_ends_of_the_calendar_are_accepted(frequency: str, extra: str) -> None:
    text = f"FREQ={frequency}{extra}"
    old = parse_recurrence(f"{text};UNTIL=99991231", start=local("0001-01-01T09:00"))
    *_, last = nominal_times(old, first=local("9970-01-01"), until=local("9999-12-31T23:59:59"))
    assert 9970 < last.year < 9998
    late = parse_recurrence(text, start=local("9999-12-31T09:00"))
    assert not occurs(late)
    with pytest.raises(InvalidRecurrence):
        parse_recurrence(f"{text};COUNT=2", start=local("9999-12-31T09:00"))


def test_the_bounds_of_a_question_may_have_seconds() -> None:
    hourly = parse_recurrence("FREQ=HOURLY;INTERVAL=3", start=START)
    found = nominal_times(hourly, first=local("2026-05-05T05:05:05.5"), until=local("2026-05-06"))
    assert [one.hour for one in found] == [6, 9, 12, 15, 18, 21]


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=HOURLY;INTERVAL=2;BYHOUR=8",
        "FREQ=YEARLY;BYYEARDAY=-1;BYMONTH=6",
        "FREQ=YEARLY;BYDAY=MO;BYSETPOS=60",
        "FREQ=WEEKLY;BYDAY=MO,TU;BYSETPOS=3",
        "FREQ=DAILY;BYHOUR=8;BYSETPOS=2",
        "FREQ=YEARLY;INTERVAL=10;BYMONTHDAY=30;BYMONTH=2",
        "FREQ=DAILY;UNTIL=20251231",
        "FREQ=DAILY;UNTIL=20260101T085959",
    ],
)
def test_a_rule_that_never_occurs_is_recognised(rule: str) -> None:
    never = parse_recurrence(rule, start=START)
    assert not occurs(never)
    assert list(nominal_times(never, first=START, until=local("2030-01-01"))) == []


@pytest.mark.parametrize("rule", ["FREQ=DAILY", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", "FREQ=YEARLY;INTERVAL=10000"])
def test_a_rule_that_occurs_is_recognised(rule: str) -> None:
    assert occurs(parse_recurrence(rule, start=START))


def test_a_rule_counts_as_never_occurring_after_five_years() -> None:
    assert occurs(parse_recurrence("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", start=local("2024-03-01T09:00")))
    assert not occurs(parse_recurrence("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", start=local("2096-03-01T09:00")))


@pytest.mark.parametrize(
    ("written", "normalised"),
    [
        ("FREQ=DAILY", "FREQ=DAILY"),
        ("RRULE:FREQ=DAILY", "FREQ=DAILY"),
        ("  rrule:freq=daily;interval=1\n", "FREQ=DAILY"),
        ("INTERVAL=02;FREQ=WEEKLY;BYDAY=we,MO,mo;WKST=MO", "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE"),
        ("FREQ=WEEKLY;BYDAY=SU;WKST=SU", "FREQ=WEEKLY;BYDAY=SU;WKST=SU"),
        ("FREQ=MONTHLY;BYDAY=+1MO,-1FR,TU", "FREQ=MONTHLY;BYDAY=TU,-1FR,1MO"),
        ("FREQ=MONTHLY;BYMONTHDAY=+15,-1,01", "FREQ=MONTHLY;BYMONTHDAY=-1,1,15"),
        ("FREQ=DAILY;BYSECOND=0;BYHOUR=18,9;BYMINUTE=30,00", "FREQ=DAILY;BYHOUR=9,18;BYMINUTE=0,30"),
        ("FREQ=DAILY;COUNT=10", "FREQ=DAILY;COUNT=10"),
        ("FREQ=DAILY;UNTIL=20271231", "FREQ=DAILY;UNTIL=20271231"),
        ("UNTIL=20271231t090000;FREQ=DAILY", "FREQ=DAILY;UNTIL=20271231T090000"),
        (
            "BYSETPOS=1;BYYEARDAY=2;BYWEEKNO=3;BYMONTH=4;FREQ=YEARLY",
            "FREQ=YEARLY;BYMONTH=4;BYWEEKNO=3;BYYEARDAY=2;BYSETPOS=1",
        ),
    ],
)
def test_all_ways_to_write_a_rule_have_one_normalised_text(written: str, normalised: str) -> None:
    rule = parse_recurrence(written, start=START)
    assert rule.text == normalised
    assert parse_recurrence(rule.text, start=START) == rule
    assert hash(parse_recurrence(rule.text, start=START)) == hash(rule)
    assert parse_recurrence(rule.text, start=START + timedelta(days=1)) != rule


@pytest.mark.parametrize(
    ("text", "part", "why"),
    [
        ("", "", "must not be empty"),
        ("   ", "", "must not be empty"),
        ("FREQ=DAILY" + ";" * 500, "", "at most 500 characters, not 510"),
        ("every day", "EVERY DAY", "is not a supported part"),
        ("FREQ=DAILY;", "an empty part", "is not a supported part"),
        ("FREQ=DAILY;;COUNT=1", "an empty part", "is not a supported part"),
        ("FREQ=DAILY;BYEASTER=0", "BYEASTER", "is not a supported part"),
        ("FREQ=DAILY;X-NAME=1", "X-NAME", "is not a supported part"),
        ("FREQ=DAILY; COUNT=1", " COUNT", "is not a supported part"),
        ("RRULE:RRULE:FREQ=DAILY", "RRULE:FREQ", "is not a supported part"),
        ("DTSTART:20260101T090000\nRRULE:FREQ=DAILY", "DTSTART", "does not belong in a rule"),
        ("DTSTART;TZID=Europe/Berlin:20260101T090000", "DTSTART", "does not belong in a rule"),
        ("FREQ=DAILY;TZID=Europe/Berlin", "TZID", "does not belong in a rule"),
        ("RRULE:FREQ=DAILY\nEXDATE:20260101T090000", "EXDATE", "does not belong in a rule"),
        ("EXRULE:FREQ=DAILY", "EXRULE", "does not belong in a rule"),
        ("RDATE:20260101T090000", "RDATE", "does not belong in a rule"),
        ("FREQ=DAILY\nFREQ=WEEKLY", "", "one line of ASCII"),
        ("FREQ=DAILY\r\n COUNT=1", "", "one line of ASCII"),
        ("FREQ=DAILY\0", "", "one line of ASCII"),
        ("FREQ=DAILY;COUNT=٣", "", "one line of ASCII"),
        ("FREQ", "FREQ", "has no value"),
        ("FREQ=", "FREQ", "has no value"),
        ("COUNT=1", "FREQ", "is missing; it must be one of YEARLY, MONTHLY, WEEKLY, DAILY, HOURLY"),
        ("FREQ=FORTNIGHTLY", "FREQ", "must be one of YEARLY, MONTHLY, WEEKLY, DAILY, HOURLY, not FORTNIGHTLY"),
        ("FREQ=MINUTELY", "FREQ", "MINUTELY is too frequent"),
        ("FREQ=SECONDLY", "FREQ", "SECONDLY is too frequent"),
        ("FREQ=DAILY;FREQ=DAILY", "FREQ", "is given twice"),
        ("FREQ=DAILY;INTERVAL=0", "INTERVAL", "from 1 to 10000, not 0"),
        ("FREQ=DAILY;INTERVAL=-1", "INTERVAL", "from 1 to 10000, not -1"),
        ("FREQ=DAILY;INTERVAL=10001", "INTERVAL", "from 1 to 10000, not 10001"),
        ("FREQ=DAILY;INTERVAL=999999999999999999999", "INTERVAL", "from 1 to 10000"),
        ("FREQ=DAILY;INTERVAL=1.5", "INTERVAL", "not 1.5"),
        ("FREQ=DAILY;INTERVAL=1,2", "INTERVAL", "must be one number"),
        ("FREQ=DAILY;COUNT=0", "COUNT", "from 1 to 10000, not 0"),
        ("FREQ=DAILY;COUNT=10001", "COUNT", "from 1 to 10000, not 10001"),
        ("FREQ=DAILY;COUNT=5;UNTIL=20270101", "COUNT", "and UNTIL exclude each other"),
        ("FREQ=WEEKLY;COUNT=10000", "COUNT", "is not reached within a hundred years"),
        ("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30;COUNT=1", "COUNT", "is not reached within a hundred years"),
        ("FREQ=DAILY;UNTIL=20270101T090000Z", "UNTIL", "must be in local time"),
        ("FREQ=DAILY;UNTIL=20270101Z", "UNTIL", "must be in local time"),
        ("FREQ=DAILY;UNTIL=2027-01-01", "UNTIL", "must be a date such as 20271231"),
        ("FREQ=DAILY;UNTIL=20270229", "UNTIL", "must be a date such as 20271231"),
        ("FREQ=DAILY;UNTIL=00000101", "UNTIL", "must be a date such as 20271231"),
        ("FREQ=DAILY;UNTIL=20270101T240000", "UNTIL", "must be a date such as 20271231"),
        ("FREQ=DAILY;UNTIL=20270101T09", "UNTIL", "must be a date such as 20271231"),
        ("FREQ=DAILY;BYSECOND=30", "BYSECOND", "must be 0 or left out"),
        ("FREQ=DAILY;BYSECOND=0,30", "BYSECOND", "must be 0 or left out"),
        ("FREQ=DAILY;BYMINUTE=60", "BYMINUTE", "from 0 to 59, not 60"),
        ("FREQ=DAILY;BYHOUR=24", "BYHOUR", "from 0 to 23, not 24"),
        ("FREQ=DAILY;BYHOUR=9,", "BYHOUR", "from 0 to 23, not "),
        ("FREQ=DAILY;BYHOUR=nine", "BYHOUR", "from 0 to 23, not NINE"),
        ("FREQ=DAILY;BYMONTH=13", "BYMONTH", "from 1 to 12, not 13"),
        ("FREQ=DAILY;BYMONTH=-1", "BYMONTH", "from 1 to 12, not -1"),
        ("FREQ=MONTHLY;BYMONTHDAY=0", "BYMONTHDAY", "from 1 to 31 or from -31 to -1, not 0"),
        ("FREQ=MONTHLY;BYMONTHDAY=-32", "BYMONTHDAY", "from 1 to 31 or from -31 to -1, not -32"),
        ("FREQ=YEARLY;BYYEARDAY=367", "BYYEARDAY", "from 1 to 366"),
        ("FREQ=YEARLY;BYWEEKNO=54", "BYWEEKNO", "from 1 to 53"),
        ("FREQ=MONTHLY;BYDAY=MO;BYSETPOS=0", "BYSETPOS", "from 1 to 366"),
        ("FREQ=WEEKLY;BYDAY=MONDAY", "BYDAY", "not MONDAY"),
        ("FREQ=WEEKLY;BYDAY=MO,,TU", "BYDAY", "such as MO"),
        ("FREQ=MONTHLY;BYDAY=0MO", "BYDAY", "not 0MO"),
        ("FREQ=YEARLY;BYDAY=54MO", "BYDAY", "not 54MO"),
        ("FREQ=MONTHLY;BYDAY=6MO", "BYDAY", "more than five times"),
        ("FREQ=YEARLY;BYMONTH=3;BYDAY=-6MO", "BYDAY", "more than five times"),
        ("FREQ=WEEKLY;BYDAY=1MO", "BYDAY", "with FREQ=MONTHLY"),
        ("FREQ=DAILY;BYDAY=1MO", "BYDAY", "with FREQ=MONTHLY"),
        ("FREQ=YEARLY;BYWEEKNO=20;BYDAY=1MO", "BYDAY", "without BYWEEKNO"),
        ("FREQ=WEEKLY;WKST=1", "WKST", "must be one of MO, TU, WE, TH, FR, SA, SU, not 1"),
        ("FREQ=MONTHLY;BYWEEKNO=20", "BYWEEKNO", "goes with FREQ=YEARLY only"),
        ("FREQ=MONTHLY;BYYEARDAY=20", "BYYEARDAY", "does not go with FREQ=MONTHLY"),
        ("FREQ=DAILY;BYYEARDAY=20", "BYYEARDAY", "does not go with FREQ=DAILY"),
        ("FREQ=WEEKLY;BYMONTHDAY=20", "BYMONTHDAY", "does not go with FREQ=WEEKLY"),
        ("FREQ=DAILY;BYSETPOS=1", "BYSETPOS", "there are none"),
    ],
)
def test_an_unsupported_rule_is_refused_by_the_name_of_its_part(text: str, part: str, why: str) -> None:
    with pytest.raises(InvalidRecurrence) as refusal:
        parse_recurrence(text, start=START)
    assert refusal.value.part == part
    assert why in str(refusal.value)
    assert str(refusal.value).startswith(part)
    assert "\n" not in str(refusal.value)


def test_a_refusal_does_not_repeat_a_long_text() -> None:
    for text in ("A" * 500, "FREQ=" + "A" * 480, "FREQ=DAILY;BYHOUR=" + "9" * 480, "FREQ=DAILY;UNTIL=" + "1" * 480):
        with pytest.raises(InvalidRecurrence) as refusal:
            parse_recurrence(text, start=START)
        assert len(str(refusal.value)) < 200


@pytest.mark.parametrize("start", [START.replace(tzinfo=UTC), START.replace(second=1), START.replace(microsecond=1)])
def test_a_start_must_be_a_naive_time_on_the_minute(start: datetime) -> None:
    with pytest.raises(AssertionError):
        parse_recurrence("FREQ=DAILY", start=start)
