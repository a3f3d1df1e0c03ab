"""Firings of cron expressions, case by case."""

import json
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest

from civil.cron import Dst, Firing, firings, parse_cron
from civil.zones import _changes, find_zone, zone_data, zone_from_data

FACTS: dict[str, list[Any]] = json.loads(Path(__file__).with_name("robfig_cron.json").read_text())


def utc(text: str) -> datetime:
    """Parses a time; a naive one is in UTC."""
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
def test_it_fires_at_the_instants_at_which_robfig_fires(case: dict[str, Any]) -> None:
    just_before = utc(case["at"]) - timedelta(seconds=1)
    found = next(firings(parse_cron(case["expr"]), find_zone("UTC"), after=just_before))
    assert (found.instant == utc(case["at"])) is case["active"]


@pytest.mark.parametrize("case", FACTS["next_in_fixed_offset"], ids=lambda case: f"{case['expr']} after {case['from']}")
def test_fields_are_read_in_the_zone(case: dict[str, Any]) -> None:
    (found,) = following(case["expr"], case["from"], "Asia/Kolkata")
    assert found.instant == utc(case["expected"])


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        ("0 0 13 * fri", "1 8 13 15 22 29"),  # May 2026 begins on a Friday
        ("0 0 13 * *", "13"),
        ("0 0 * * fri", "1 8 15 22 29"),
        ("0 0 ? * fri", "1 8 15 22 29"),
        ("0 0 */1 * fri", "1 8 15 22 29"),  # a step of 1 leaves the star
        ("0 0 */10 * fri", "1 8 11 15 21 22 29 31"),  # any other step removes it
        ("0 0 13,* * fri", "1 8 15 22 29"),  # one star in a list is enough
        ("0 0 1-31 * fri", " ".join(map(str, range(1, 32)))),  # as many days, but no star
        ("0 0 8 * */7", "3 8 10 17 24 31"),
    ],
)
def test_a_date_matches_either_day_field_unless_one_is_a_star(text: str, dates: str) -> None:
    found = firings(parse_cron(text), find_zone("UTC"), after=utc("2026-04-30T12:00"))
    in_may = [firing.nominal.day for firing in islice(found, 40) if firing.nominal < datetime(2026, 6, 1)]
    assert in_may == list(map(int, dates.split()))


def test_an_interval_counts_from_the_second_of_the_question() -> None:
    found = following("@every 1h30m", "2026-01-01T10:00:00.750", count=3)
    assert instants(found) == ["2026-01-01T11:30", "2026-01-01T13:00", "2026-01-01T14:30"]


def test_an_interval_ignores_jumps_of_the_clocks() -> None:
    found = following("@every 30m", "2026-10-25T00:00", "Europe/Berlin", 4)
    assert instants(found) == ["2026-10-25T00:30", "2026-10-25T01:00", "2026-10-25T01:30", "2026-10-25T02:00"]
    assert [firing.nominal.hour for firing in found] == [2, 2, 2, 3]
    assert keys(found)[:2] == ["2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z"]


def test_an_interval_may_be_longer_than_the_horizon_of_a_search() -> None:
    assert instants(following("@every 100000h", "2026-01-01T00:00")) == ["2037-05-29T16:00"]


def test_after_is_excluded_to_the_second_and_to_the_microsecond() -> None:
    assert instants(following("0 9 * * *", "2026-01-05T09:00")) == ["2026-01-06T09:00"]
    assert instants(following("0 9 * * *", "2026-01-05T09:00:00.000001")) == ["2026-01-06T09:00"]
    assert instants(following("0 9 * * *", "2026-01-05T08:59:59.999999")) == ["2026-01-05T09:00"]


def test_a_field_of_seconds_fires_within_a_minute() -> None:
    found = following("*/20 59 23 31 12 *", "2026-12-31T23:59:10", count=3, seconds=True)
    assert instants(found) == ["2026-12-31T23:59:20", "2026-12-31T23:59:40", "2027-12-31T23:59"]
    assert keys(found) == ["2026-12-31T23:59:20", "2026-12-31T23:59:40", "2027-12-31T23:59"]


def test_an_offset_may_have_seconds() -> None:
    (found,) = following("0 9 * * *", "1970-01-01T00:00", "Africa/Monrovia")
    assert (instants([found]), found.key) == (["1970-01-01T09:44:30"], "1970-01-01T09:00")


def test_under_cron_a_time_in_a_gap_does_not_fire() -> None:
    found = following("30 2 * * *", "2024-03-09T00:00", "America/New_York", 3)
    assert keys(found) == ["2024-03-09T02:30", "2024-03-11T02:30", "2024-03-12T02:30"]


def test_under_cron_a_time_that_is_shown_twice_fires_twice() -> None:
    found = following("30 1 * * *", "2024-11-02T12:00", "America/New_York", 3)
    assert instants(found) == ["2024-11-03T05:30", "2024-11-03T06:30", "2024-11-04T06:30"]
    assert [firing.second_pass for firing in found] == [False, True, False]
    assert keys(found) == ["2024-11-03T01:30", "2024-11-03T01:30/2", "2024-11-04T01:30"]


def test_the_second_pass_is_recognised_from_within_it() -> None:
    assert keys(following("*/15 1 * * *", "2024-11-03T06:20", "America/New_York")) == ["2024-11-03T01:30/2"]


def test_under_cron_a_date_that_is_shown_twice_fires_twice() -> None:
    found = following("30 12 * * *", "1969-09-30T01:00", "Pacific/Kwajalein", 3)
    assert keys(found) == ["1969-09-30T12:30", "1969-09-30T12:30/2", "1969-10-01T12:30"]
    assert following("30 12 * * *", "1969-09-30T23:00", "Pacific/Kwajalein", 1) == found[1:2]


def test_under_once_a_time_in_a_gap_is_shifted() -> None:
    (found,) = following("30 2 * * *", "2024-03-10T00:00", "America/New_York", dst=Dst.ONCE)
    assert instants([found]) == ["2024-03-10T07:30"]
    assert found.nominal == datetime(2024, 3, 10, 2, 30)
    assert found.key == "2024-03-10T02:30"


def test_under_once_shifted_firings_come_in_time_order() -> None:
    found = following("5,35 2 * * *", "2024-10-05T12:00", "Australia/Lord_Howe", 2, dst=Dst.ONCE)
    assert keys(found) == ["2024-10-06T02:35", "2024-10-07T02:05"]
    found = following("10,35 2 * * *", "2024-10-05T12:00", "Australia/Lord_Howe", 2, dst=Dst.ONCE)
    assert keys(found) == ["2024-10-06T02:35", "2024-10-06T02:10"]
    assert instants(found) == ["2024-10-05T15:35", "2024-10-05T15:40"]


def test_under_once_the_unshifted_of_two_firings_at_one_instant_wins() -> None:
    found = following("30 2,3 * * *", "2024-03-10T00:00", "America/New_York", 2, dst=Dst.ONCE)
    assert keys(found) == ["2024-03-10T03:30", "2024-03-11T02:30"]


def test_under_once_a_time_that_is_shown_twice_fires_at_the_first() -> None:
    found = following("30 1 * * *", "2024-11-02T12:00", "America/New_York", 2, dst=Dst.ONCE)
    assert instants(found) == ["2024-11-03T05:30", "2024-11-04T06:30"]
    assert following("30 1 * * *", "2024-11-03T05:45", "America/New_York", dst=Dst.ONCE) == found[1:]


def test_under_once_every_hour_fires_once_in_a_repeated_hour() -> None:
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


def test_a_gap_across_midnight() -> None:
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
def test_impossible_dates_never_fire(text: str, zone: str, dst: Dst) -> None:
    assert following(text, "2026-01-01T00:00", zone, dst=dst) == []


def test_firings_end_when_none_follows_within_five_years() -> None:
    assert keys(following("0 0 29 2 *", "2095-06-01T00:00", count=9)) == ["2096-02-29T00:00"]
    assert following("0 0 29 2 *", "2098-12-31T23:59:58") == []
    assert keys(following("0 0 29 2 *", "2098-12-31T23:59:59")) == ["2104-02-29T00:00"]


def test_a_vain_search_reads_no_further_than_the_horizon() -> None:
    new_zone = zone_from_data("Somewhere/New", zone_data("Europe/Berlin"))
    before = _changes.cache_info().misses
    assert list(firings(parse_cron("0 0 30 2 *"), new_zone, after=utc("2026-01-01T00:00"))) == []
    assert 6 <= _changes.cache_info().misses - before <= 8  # years: the first, five more, one on either side


def test_the_five_years_are_local_years() -> None:
    question = "2098-12-31T20:00"
    assert following("0 0 29 2 *", question, "America/New_York") == []
    assert keys(following("0 0 29 2 *", question, "Asia/Tokyo")) == ["2104-02-29T00:00"]


@pytest.mark.parametrize("dst", Dst)
def test_firings_are_found_lazily_and_without_end(dst: Dst) -> None:
    found = following("*/10 * * * *", "2026-01-01T00:00", "Asia/Tokyo", 5_000, dst=dst)
    assert {later.instant - earlier.instant for earlier, later in pairwise(found)} == {timedelta(minutes=10)}


def test_the_answers_end_with_the_calendar() -> None:
    assert len(following("0 12 * * *", "9997-12-01T00:00", "Europe/Berlin", 99)) == 31
    assert following("0 12 * * *", "9999-12-31T23:59:59") == []
    assert len(following("@every 24h", "9997-12-01T12:00", count=99)) == 30
    assert following("@every 2562047h", "9900-01-01T00:00") == []


def test_the_beginning_of_the_calendar_is_accepted() -> None:
    assert following("0 12 * * *", "0001-01-01T00:00", "America/New_York")[0].nominal.hour == 12
    assert keys(following("@every 1h", "0001-01-01T00:00")) == ["0003-01-01T01:00:00Z"]


def test_instants_are_in_utc_for_a_question_in_any_zone() -> None:
    after = datetime(2026, 1, 5, 9, tzinfo=timezone(timedelta(hours=9)))
    for text in ("0 9 * * *", "@every 1h"):
        found = next(firings(parse_cron(text), find_zone("Europe/Berlin"), after=after))
        assert found.instant.tzinfo is UTC
        assert found.nominal.tzinfo is None


def test_a_naive_instant_is_refused_by_an_assertion() -> None:
    with pytest.raises(AssertionError):
        next(firings(parse_cron("@daily"), find_zone("UTC"), after=datetime(2026, 1, 1)))
