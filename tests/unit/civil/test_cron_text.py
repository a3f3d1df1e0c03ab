"""Cron expressions: what is accepted, and what is refused."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from civil.cron import Cron, InvalidCron, parse_cron
from civil.cron_text import LONGEST, _Field, _parse_field, _parse_range

FACTS: dict[str, list[Any]] = json.loads(Path(__file__).with_name("robfig_cron.json").read_text())


def fields(cron: Cron) -> tuple[object, ...]:
    return cron.seconds, cron.minutes, cron.hours, cron.days, cron.months, cron.weekdays, cron.either_day


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
def test_equivalent_texts_have_the_same_fields(text: str, same: str) -> None:
    assert fields(parse_cron(text)) == fields(parse_cron(same))


def test_descriptors_are_the_same_with_seconds() -> None:
    assert parse_cron("@daily", seconds=True) == parse_cron("@daily")


def test_the_text_is_kept_unchanged() -> None:
    assert parse_cron("CRON_TZ=Asia/Tokyo  0 9 * * MON").text == "CRON_TZ=Asia/Tokyo  0 9 * * MON"


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
def test_an_interval_is_a_go_duration_truncated_to_seconds(duration: str, seconds: int) -> None:
    assert parse_cron(f"@every {duration}").every == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "duration",
    ["", " 1h", "1h ", "1", "h", ".h", "1h30", "1 h", "1d", "1H", "1e3s", "1_0s", "--1s", "1h-1m", "1h,1m", "\u0661s"],
)
def test_other_durations_are_refused(duration: str) -> None:
    with pytest.raises(InvalidCron, match=r"^@every: .* is not a duration such as 1h30m$"):
        parse_cron(f"@every {duration}")


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


def test_control_characters_are_escaped_in_a_refusal() -> None:
    with pytest.raises(InvalidCron) as refusal:
        parse_cron("\x1b[31m\0 * * * *")
    assert str(refusal.value).isprintable()


@settings(max_examples=500)
@given(st.text(max_size=300) | st.text("0123456789*/,-?@.+ TZ=every1hmsjanSUN\t", max_size=300), st.booleans())
def test_any_text_is_parsed_or_refused_in_a_short_sentence(text: str, seconds: bool) -> None:
    for written in (text, f"@every {text}", f"TZ={text}", f"{text} * * * *", f"* * * * * {text}"):
        assert len(refusal_of(written, seconds=seconds) or "") <= 800  # an unprintable character takes ten


def refusal_of(text: str, *, seconds: bool) -> str | None:
    try:
        parse_cron(text, seconds=seconds)
    except InvalidCron as refusal:
        return str(refusal)
    return None


def test_the_longest_text_is_accepted() -> None:
    text = ",".join(["0"] * 124) + " * * * *"
    assert len(text) == 255
    assert parse_cron(text).minutes == (0,)
    with pytest.raises(InvalidCron, match="the expression has 257 characters; at most 256 are allowed"):
        parse_cron(text + "  ")
