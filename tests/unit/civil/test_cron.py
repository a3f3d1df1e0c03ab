"""Cron expressions: what is read, what is refused, and when they fire."""

import json
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from civil.cron import Cron, Dst, Firing, InvalidCron, firings, parse_cron
from civil.cron_text import LONGEST, _Field, _parse_field, _parse_range
from civil.zones import _changes, find_zone, zone_data, zone_from_data

FACTS: dict[str, list[Any]] = json.loads(Path(__file__).with_name("robfig_cron.json").read_text())


def utc(text: str) -> datetime:
    """A naive time is one of UTC."""
    at = datetime.fromisoformat(text)
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)


def following(
    text: str, after: str, zone: str = "UTC", count: int = 1, *, dst: Dst = Dst.CRON, seconds: bool = False
) -> list[Firing]:
    cron = parse_cron(text, seconds=seconds)
    return list(islice(firings(cron, find_zone(zone), after=utc(after), dst=dst), count))


def instants(found: list[Firing]) -> list[str]:
    return [firing.instant.strftime("%Y-%m-%dT%H:%M:%S").removesuffix(":00") for firing in found]


def keys(found: list[Firing]) -> list[str]:
    return [firing.key for firing in found]


@pytest.mark.parametrize("case", FACTS["next"], ids=lambda case: f"{case['spec']} after {case['from']}")
def test_the_next_firing_is_that_of_robfig(case: dict[str, Any]) -> None:
    cron = parse_cron(case["spec"], seconds=True)
    if "TZ=" in case["spec"]:
        assert cron.zone_name == case["zone"]
    found = next(firings(cron, find_zone(case["zone"] or "UTC"), after=utc(case["from"])), None)
    assert (found and found.instant) == (case["expected"] and utc(case["expected"]))


@pytest.mark.parametrize("case", FACTS["activation"], ids=lambda case: f"{case['expr']} at {case['at']}")
def test_it_fires_at_an_instant_when_robfig_does(case: dict[str, Any]) -> None:
    just_before = utc(case["at"]) - timedelta(seconds=1)
    found = next(firings(parse_cron(case["expr"]), find_zone("UTC"), after=just_before))
    assert (found.instant == utc(case["at"])) is case["active"]


@pytest.mark.parametrize("case", FACTS["next_in_fixed_offset"], ids=lambda case: f"{case['expr']} after {case['from']}")
def test_fields_are_read_in_the_zone(case: dict[str, Any]) -> None:
    (found,) = following(case["expr"], case["from"], "Asia/Kolkata")
    assert found.instant == utc(case["expected"])


@pytest.mark.parametrize("text", FACTS["invalid"])
def test_what_robfig_refuses_is_refused(text: str) -> None:
    with pytest.raises(InvalidCron):
        parse_cron(text)


@pytest.mark.parametrize("text", FACTS["invalid_with_seconds"])
def test_what_robfig_refuses_with_seconds_is_refused(text: str) -> None:
    with pytest.raises(InvalidCron):
        parse_cron(text, seconds=True)


@pytest.mark.parametrize("case", FACTS["range"], ids=lambda case: f"{case['expr']} of {case['min']}-{case['max']}")
def test_ranges_are_those_of_robfig(case: dict[str, Any]) -> None:
    field = _Field("number", case["min"], case["max"])
    if case["values"] is None:
        with pytest.raises(InvalidCron):
            _parse_range(case["expr"], field)
    else:
        values, star = _parse_range(case["expr"], field)
        assert (list(values), star) == (case["values"], case["star"])


@pytest.mark.parametrize("case", FACTS["field"], ids=lambda case: case["expr"])
def test_lists_are_those_of_robfig(case: dict[str, Any]) -> None:
    values, star = _parse_field(case["expr"], _Field("number", case["min"], case["max"]))
    assert (list(values), star) == (case["values"], False)


def fields(cron: Cron) -> tuple[object, ...]:
    return cron.seconds, cron.minutes, cron.hours, cron.days, cron.months, cron.weekdays, cron.either_day


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
        ("0 0 * jan,FEB,Dec MON-fri", "0 0 * 1,2,12 1-5"),
        ("0 0 * jan-mar/2 sun", "0 0 * 1,3 0"),
        ("0 0 ? * ?", "0 0 * * *"),
        ("5/20 */6 1 1 ?", "5,25,45 0,6,12,18 1 1 *"),
        ("1,,2, 0 1 1 *", "1,2 0 1 1 *"),
        ("007 +3 1 1 *", "7 3 1 1 *"),
        ("\t0  0\n1 1 * ", "0 0 1 1 *"),
        ("CRON_TZ=Asia/Tokyo   @daily ", "0 0 * * *"),
        ("3-3,1-2 0 1 1 *", "1-3 0 1 1 *"),
        ("0/99 0 1 1 *", "0 0 1 1 *"),
        ("0 0 1/1 * 1", "0 0 1-31 * 1"),
    ],
)
def test_two_ways_to_write_the_same(text: str, same: str) -> None:
    assert fields(parse_cron(text)) == fields(parse_cron(same))


def test_descriptors_are_the_same_with_seconds() -> None:
    assert parse_cron("@daily", seconds=True) == parse_cron("@daily")


def test_the_text_is_kept_as_it_was_written() -> None:
    assert parse_cron("CRON_TZ=Asia/Tokyo  0 9 * * MON").text == "CRON_TZ=Asia/Tokyo  0 9 * * MON"


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        ("0 0 13 * fri", "1 8 13 15 22 29"),  # May 2026 begins on a Friday
        ("0 0 13 * *", "13"),
        ("0 0 * * fri", "1 8 15 22 29"),
        ("0 0 ? * fri", "1 8 15 22 29"),
        ("0 0 */1 * fri", "1 8 15 22 29"),  # a step of 1 leaves the star
        ("0 0 */10 * fri", "1 8 11 15 21 22 29 31"),  # any other takes it away
        ("0 0 13,* * fri", "1 8 15 22 29"),  # one star in a list is enough
        ("0 0 1-31 * fri", " ".join(map(str, range(1, 32)))),  # as many days, but no star
        ("0 0 8 * */7", "3 8 10 17 24 31"),
    ],
)
def test_a_date_matches_both_day_fields_if_one_is_a_star_and_else_either(text: str, dates: str) -> None:
    found = firings(parse_cron(text), find_zone("UTC"), after=utc("2026-04-30T12:00"))
    in_may = [firing.nominal.day for firing in islice(found, 40) if firing.nominal < datetime(2026, 6, 1)]
    assert in_may == list(map(int, dates.split()))


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("90s", 90),
        ("90m", 5400),
        (".5h", 1800),
        ("2.h", 7200),
        ("1h1m1s", 3661),
        ("1s1h", 3601),
        ("+10s", 10),
        ("1500ms", 1),
        ("2999999us", 2),
        ("2999999\u00b5s1us", 3),
        ("2999999\u03bcs", 2),
        ("999ms", 1),
        ("1ns", 1),
        ("0", 1),
        ("-0s", 1),
        ("0.2500000000000h", 900),
        ("100000h", 360_000_000),
    ],
)
def test_an_interval_is_a_duration_of_go_cut_to_seconds(duration: str, seconds: int) -> None:
    assert parse_cron(f"@every {duration}").every == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "duration",
    ["", " 1h", "1h ", "1", "h", ".h", "1h30", "1 h", "1d", "1H", "1e3s", "1_0s", "--1s", "1h-1m", "1h,1m", "\u0661s"],
)
def test_other_durations_are_refused(duration: str) -> None:
    with pytest.raises(InvalidCron, match=r"^@every: .* is not a duration such as 1h30m$"):
        parse_cron(f"@every {duration}")


def test_an_interval_counts_from_the_second_of_the_question() -> None:
    found = following("@every 1h30m", "2026-01-01T10:00:00.750", count=3)
    assert instants(found) == ["2026-01-01T11:30", "2026-01-01T13:00", "2026-01-01T14:30"]


def test_an_interval_takes_no_notice_of_the_clocks() -> None:
    found = following("@every 30m", "2026-10-25T00:00", "Europe/Berlin", 4)
    assert instants(found) == ["2026-10-25T00:30", "2026-10-25T01:00", "2026-10-25T01:30", "2026-10-25T02:00"]
    assert [firing.nominal.hour for firing in found] == [2, 2, 2, 3]
    assert keys(found)[:2] == ["2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z"]


def test_an_interval_may_be_longer_than_the_horizon_of_a_search() -> None:
    assert instants(following("@every 100000h", "2026-01-01T00:00")) == ["2037-05-29T16:00"]


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        ("TZ=America/New_York 0 9 * * *", "America/New_York"),
        ("CRON_TZ=Etc/GMT+5 @daily", "Etc/GMT+5"),
        ("CRON_TZ=Asia/Tokyo @every 1h", "Asia/Tokyo"),
        ("0 9 * * *", None),
    ],
)
def test_a_prefix_names_the_zone(text: str, zone: str | None) -> None:
    assert parse_cron(text).zone_name == zone


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("60 * * * *", "minute: 60 is above 59"),
        ("* 24 * * *", "hour: 24 is above 23"),
        ("* * 0 * *", "day of month: 0 is below 1"),
        ("* * 32 * *", "day of month: 32 is above 31"),
        ("* * * 13 *", "month: 13 is above 12"),
        ("* * * * 7", "day of week: 7 is above 6"),
        ("* * * * 1-7", "day of week: 7 is above 6"),
        ("* * 5-3 * *", "day of month: '5-3' ends before it begins"),
        ("* * * * sat-mon", "day of week: 'sat-mon' ends before it begins"),
        ("*/0 * * * *", "minute: the step is 0"),
        ("*/-5 * * * *", "minute: '-5' in '*/-5' is negative"),
        ("-5 * * * *", "minute: '' in '-5' is not a number"),
        ("1-2-3 * * * *", "minute: '1-2-3' has more than one hyphen"),
        ("1/2/3 * * * *", "minute: '1/2/3' has more than one slash"),
        ("*-5 * * * *", "minute: '*' in '*-5' is not a number"),
        ("?-5 * * * *", "minute: '?' in '?-5' is not a number"),
        (", * * * *", "minute: ',' names no value"),
        ("1,a * * * *", "minute: 'a' is not a number"),
        ("* * * monday *", "month: 'monday' is not a number"),
        ("* * * * monday", "day of week: 'monday' is not a number"),
        ("mon * * * *", "minute: 'mon' is not a number"),
        ("* * * */jan *", "month: 'jan' in '*/jan' is not a number"),
        ("1.5 * * * *", "minute: '1.5' is not a number"),
        ("\u0661 * * * *", "minute: '\u0661' is not a number"),
        ("1_0 * * * *", "minute: '1_0' is not a number"),
        ("9223372036854775808 * * * *", "minute: '9223372036854775808' is too large"),
        ("* * * *", "expected 5 fields (minute, hour, day of month, month, day of week), found 4"),
        ("* * * * * *", "expected 5 fields (minute, hour, day of month, month, day of week), found 6"),
        ("", "expected 5 fields (minute, hour, day of month, month, day of week), found 0"),
        ("@Daily", "'@Daily' is none of @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly, @every ..."),
        ("@every", "'@every' is none of @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly, @every ..."),
        ("@boot", "'@boot' is none of @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly, @every ..."),
        ("@every -1h", "@every: '-1h' is negative"),
        ("@every 2562048h", "@every: '2562048h' is too long"),
        ("TZ=Mars/Olympus 0 0 * * *", "time zone: 'Mars/Olympus' is not an IANA time zone"),
        ("TZ=europe/berlin @daily", "time zone: 'europe/berlin' is not an IANA time zone; did you mean Europe/Berlin?"),
        ("TZ=localtime 0 0 * * *", "time zone: 'localtime' is not an IANA time zone"),
        ("TZ= 0 0 * * *", "time zone: '' is not an IANA time zone"),
        ("TZ=Europe/Berlin", "expected 5 fields (minute, hour, day of month, month, day of week), found 0"),
        (" TZ=Europe/Berlin * * * *", "minute: 'TZ=Europe' in 'TZ=Europe/Berlin' is not a number"),
        ("tz=Europe/Berlin * * * *", "minute: 'tz=Europe' in 'tz=Europe/Berlin' is not a number"),
    ],
)
def test_a_refusal_names_the_field_and_says_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(InvalidCron) as refusal:
        parse_cron(text)
    assert str(refusal.value) == message


def test_with_seconds_there_are_six_fields() -> None:
    with pytest.raises(InvalidCron, match=r"^second: 60 is above 59$"):
        parse_cron("60 * * * * *", seconds=True)
    with pytest.raises(InvalidCron, match=r"^expected 6 fields \(second, minute, .*\), found 5$"):
        parse_cron("* * * * *", seconds=True)


@pytest.mark.parametrize(
    "text",
    [
        "q" * LONGEST,
        "q" * 240 + " * * * *",
        "1" * 240 + " * * * *",
        "-" * 240 + " * * * *",
        "/" * 240 + " * * * *",
        "," * 240 + " * * * *",
        "*/" + "9" * 240 + " * * * *",
        "@" + "q" * 240,
        "@every " + "q" * 240,
        "@every " + "1" * 240,
        "@every " + "1h" * 100 + "9" * 40 + "h",
        "@every -" + "1h" * 100,
        "TZ=" + "q" * 240 + " * * * * *",
        "q" * 1_000_000,
        "q" * 100 + "-" + "q" * 100 + " * * * *",
        "1/" + "q" * 200 + " * * * *",
    ],
)
def test_a_refusal_does_not_repeat_a_long_text(text: str) -> None:
    with pytest.raises(InvalidCron) as refusal:
        parse_cron(text)
    assert max(str(refusal.value).count(letter) for letter in "q1-/,9") <= 64
    assert len(str(refusal.value)) <= 160


def test_control_characters_are_not_repeated_as_they_are() -> None:
    with pytest.raises(InvalidCron) as refusal:
        parse_cron("\x1b[31m\0 * * * *")
    assert str(refusal.value).isprintable()


@settings(max_examples=500)
@given(st.text(max_size=300) | st.text("0123456789*/,-?@.+ TZ=every1hmsjanSUN\t", max_size=300), st.booleans())
def test_whatever_is_written_is_read_or_refused_in_a_short_sentence(text: str, seconds: bool) -> None:
    for written in (text, f"@every {text}", f"TZ={text}", f"{text} * * * *", f"* * * * * {text}"):
        assert len(refusal_of(written, seconds=seconds) or "") <= 800  # what cannot be shown takes ten characters each


def refusal_of(text: str, *, seconds: bool) -> str | None:
    try:
        parse_cron(text, seconds=seconds)
    except InvalidCron as refusal:
        return str(refusal)
    return None


def test_the_longest_text_is_read() -> None:
    text = ",".join(["0"] * 124) + " * * * *"
    assert len(text) == 255
    assert parse_cron(text).minutes == (0,)
    with pytest.raises(InvalidCron, match="the expression has 257 characters; at most 256 are allowed"):
        parse_cron(text + "  ")


def test_after_is_excluded_to_the_second_and_to_the_microsecond() -> None:
    assert instants(following("0 9 * * *", "2026-01-05T09:00")) == ["2026-01-06T09:00"]
    assert instants(following("0 9 * * *", "2026-01-05T09:00:00.000001")) == ["2026-01-06T09:00"]
    assert instants(following("0 9 * * *", "2026-01-05T08:59:59.999999")) == ["2026-01-05T09:00"]


def test_seconds_of_a_minute() -> None:
    found = following("*/20 59 23 31 12 *", "2026-12-31T23:59:10", count=3, seconds=True)
    assert instants(found) == ["2026-12-31T23:59:20", "2026-12-31T23:59:40", "2027-12-31T23:59"]
    assert keys(found) == ["2026-12-31T23:59:20", "2026-12-31T23:59:40", "2027-12-31T23:59"]


def test_an_offset_may_have_seconds() -> None:
    (found,) = following("0 9 * * *", "1970-01-01T00:00", "Africa/Monrovia")
    assert (instants([found]), found.key) == (["1970-01-01T09:44:30"], "1970-01-01T09:00")


def test_under_cron_a_time_that_the_clocks_jump_over_does_not_fire() -> None:
    found = following("30 2 * * *", "2024-03-09T00:00", "America/New_York", 3)
    assert keys(found) == ["2024-03-09T02:30", "2024-03-11T02:30", "2024-03-12T02:30"]


def test_under_cron_a_time_that_is_shown_twice_fires_twice() -> None:
    found = following("30 1 * * *", "2024-11-02T12:00", "America/New_York", 3)
    assert instants(found) == ["2024-11-03T05:30", "2024-11-03T06:30", "2024-11-04T06:30"]
    assert [firing.second_pass for firing in found] == [False, True, False]
    assert keys(found) == ["2024-11-03T01:30", "2024-11-03T01:30/2", "2024-11-04T01:30"]


def test_the_second_pass_is_known_even_if_the_question_is_asked_within_it() -> None:
    assert keys(following("*/15 1 * * *", "2024-11-03T06:20", "America/New_York")) == ["2024-11-03T01:30/2"]


def test_under_cron_a_date_that_is_shown_twice_fires_twice() -> None:
    found = following("30 12 * * *", "1969-09-30T01:00", "Pacific/Kwajalein", 3)
    assert keys(found) == ["1969-09-30T12:30", "1969-09-30T12:30/2", "1969-10-01T12:30"]
    assert following("30 12 * * *", "1969-09-30T23:00", "Pacific/Kwajalein", 1) == found[1:2]


def test_under_once_a_time_that_the_clocks_jump_over_is_shifted() -> None:
    (found,) = following("30 2 * * *", "2024-03-10T00:00", "America/New_York", dst=Dst.ONCE)
    assert instants([found]) == ["2024-03-10T07:30"]
    assert found.nominal == datetime(2024, 3, 10, 2, 30)
    assert found.key == "2024-03-10T02:30"


def test_under_once_the_shifted_stand_in_time_order_among_the_others() -> None:
    found = following("5,35 2 * * *", "2024-10-05T12:00", "Australia/Lord_Howe", 2, dst=Dst.ONCE)
    assert keys(found) == ["2024-10-06T02:35", "2024-10-07T02:05"]
    found = following("10,35 2 * * *", "2024-10-05T12:00", "Australia/Lord_Howe", 2, dst=Dst.ONCE)
    assert keys(found) == ["2024-10-06T02:35", "2024-10-06T02:10"]
    assert instants(found) == ["2024-10-05T15:35", "2024-10-05T15:40"]


def test_under_once_two_firings_at_one_instant_are_one_and_the_unshifted_is_reported() -> None:
    found = following("30 2,3 * * *", "2024-03-10T00:00", "America/New_York", 2, dst=Dst.ONCE)
    assert keys(found) == ["2024-03-10T03:30", "2024-03-11T02:30"]


def test_under_once_a_time_that_is_shown_twice_fires_at_the_first() -> None:
    found = following("30 1 * * *", "2024-11-02T12:00", "America/New_York", 2, dst=Dst.ONCE)
    assert instants(found) == ["2024-11-03T05:30", "2024-11-04T06:30"]
    assert following("30 1 * * *", "2024-11-03T05:45", "America/New_York", dst=Dst.ONCE) == found[1:]


def test_under_once_every_hour_means_every_hour_that_the_wall_shows_once() -> None:
    autumn = following("0 * * * *", "2024-11-03T04:30", "America/New_York", 3, dst=Dst.ONCE)
    assert instants(autumn) == ["2024-11-03T05:00", "2024-11-03T07:00", "2024-11-03T08:00"]
    spring = following("0 * * * *", "2024-03-10T05:30", "America/New_York", 3, dst=Dst.ONCE)
    assert instants(spring) == ["2024-03-10T06:00", "2024-03-10T07:00", "2024-03-10T08:00"]
    assert keys(spring) == ["2024-03-10T01:00", "2024-03-10T03:00", "2024-03-10T04:00"]


@pytest.mark.parametrize("dst", Dst)
def test_a_date_that_does_not_exist_does_not_fire(dst: Dst) -> None:
    found = following("0 10 * * *", "2011-12-29T12:00", "Pacific/Apia", 2, dst=dst)
    assert keys(found) == ["2011-12-29T10:00", "2011-12-31T10:00"]
    assert keys(following("0 10 30 12 *", "2011-12-29T12:00", "Pacific/Apia", dst=dst)) == ["2012-12-30T10:00"]


def test_a_gap_that_crosses_the_date() -> None:
    assert keys(following("30 23 30 3 *", "2024-03-30T00:00", "America/Nuuk")) == ["2025-03-30T23:30"]
    (found,) = following("30 23 30 3 *", "2024-03-30T00:00", "America/Nuuk", dst=Dst.ONCE)
    assert (instants([found]), found.key) == (["2024-03-31T01:30"], "2024-03-30T23:30")


def test_a_day_without_midnight() -> None:
    assert keys(following("0 0 * * *", "2024-04-25T12:00", "Africa/Cairo")) == ["2024-04-27T00:00"]
    assert instants(following("0 0 * * *", "2024-04-25T12:00", "Africa/Cairo", dst=Dst.ONCE)) == ["2024-04-25T22:00"]


def test_a_leap_day_fires_every_four_years() -> None:
    found = following("0 0 29 2 *", "2026-01-01T00:00", count=3)
    assert keys(found) == ["2028-02-29T00:00", "2032-02-29T00:00", "2036-02-29T00:00"]


@pytest.mark.parametrize("text", ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 31 feb ?"])
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Africa/Casablanca"])
@pytest.mark.parametrize("dst", Dst)
def test_dates_that_no_calendar_has_never_fire(text: str, zone: str, dst: Dst) -> None:
    assert following(text, "2026-01-01T00:00", zone, dst=dst) == []


def test_firings_end_when_none_follows_within_five_years() -> None:
    assert keys(following("0 0 29 2 *", "2095-06-01T00:00", count=9)) == ["2096-02-29T00:00"]
    assert following("0 0 29 2 *", "2098-12-31T23:59:58") == []
    assert keys(following("0 0 29 2 *", "2098-12-31T23:59:59")) == ["2104-02-29T00:00"]


def test_a_search_that_finds_nothing_reads_no_further_than_the_horizon() -> None:
    new_zone = zone_from_data("Somewhere/New", zone_data("Europe/Berlin"))
    before = _changes.cache_info().misses
    assert list(firings(parse_cron("0 0 30 2 *"), new_zone, after=utc("2026-01-01T00:00"))) == []
    assert 6 <= _changes.cache_info().misses - before <= 8  # years: that of the question, five more, one on either side


def test_the_five_years_are_local_years() -> None:
    question = "2098-12-31T20:00"
    assert following("0 0 29 2 *", question, "America/New_York") == []
    assert keys(following("0 0 29 2 *", question, "Asia/Tokyo")) == ["2104-02-29T00:00"]


@pytest.mark.parametrize("dst", Dst)
def test_they_are_found_one_by_one_without_end(dst: Dst) -> None:
    found = following("*/10 * * * *", "2026-01-01T00:00", "Asia/Tokyo", 5_000, dst=dst)
    assert {later.instant - earlier.instant for earlier, later in pairwise(found)} == {timedelta(minutes=10)}


def test_they_end_with_the_calendar() -> None:
    assert len(following("0 12 * * *", "9997-12-01T00:00", "Europe/Berlin", 99)) == 31
    assert following("0 12 * * *", "9999-12-31T23:59:59") == []
    assert len(following("@every 24h", "9997-12-01T12:00", count=99)) == 30
    assert following("@every 2562047h", "9900-01-01T00:00") == []


def test_the_beginning_of_the_calendar_is_no_obstacle() -> None:
    assert following("0 12 * * *", "0001-01-01T00:00", "America/New_York")[0].nominal.hour == 12
    assert keys(following("@every 1h", "0001-01-01T00:00")) == ["0003-01-01T01:00:00Z"]


def test_instants_are_in_utc_whatever_zone_the_question_is_in() -> None:
    after = datetime(2026, 1, 5, 9, tzinfo=timezone(timedelta(hours=9)))
    for text in ("0 9 * * *", "@every 1h"):
        found = next(firings(parse_cron(text), find_zone("Europe/Berlin"), after=after))
        assert found.instant.tzinfo is UTC
        assert found.nominal.tzinfo is None


def test_a_naive_question_is_a_programming_error() -> None:
    with pytest.raises(AssertionError):
        next(firings(parse_cron("@daily"), find_zone("UTC"), after=datetime(2026, 1, 1)))
