"""The instants of single local times, case by case."""

from datetime import UTC, datetime, timedelta

import pytest

from civil.wall_clock import Resolved, instants_showing, resolve
from civil.zones import find_zone


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def local(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("zone", "nominal", "instant", "shown"),
    [
        ("America/New_York", "2024-03-10T02:30", "2024-03-10T07:30", "2024-03-10T03:30"),
        ("America/New_York", "2024-11-03T01:30", "2024-11-03T05:30", "2024-11-03T01:30"),
        ("Australia/Lord_Howe", "2024-10-06T02:15", "2024-10-05T15:45", "2024-10-06T02:45"),
        ("Africa/Casablanca", "2024-04-14T02:30", "2024-04-14T02:30", "2024-04-14T03:30"),
        ("Pacific/Apia", "2011-12-29T10:00", "2011-12-29T20:00", "2011-12-29T10:00"),
        ("Pacific/Apia", "2011-12-31T10:00", "2011-12-30T20:00", "2011-12-31T10:00"),
        ("Africa/Cairo", "2024-04-26T00:00", "2024-04-25T22:00", "2024-04-26T01:00"),
        ("America/Nuuk", "2024-03-30T23:30", "2024-03-31T01:30", "2024-03-31T00:30"),
        ("Antarctica/Troll", "2024-03-31T01:30", "2024-03-31T01:30", "2024-03-31T03:30"),
        ("America/Vancouver", "2026-11-02T09:00", "2026-11-02T16:00", "2026-11-02T09:00"),
        ("Asia/Kathmandu", "2026-06-01T12:00:01.5", "2026-06-01T06:15:01.5", "2026-06-01T12:00:01.5"),
    ],
)
def test_known_answers(zone: str, nominal: str, instant: str, shown: str) -> None:
    found = resolve(local(nominal), find_zone(zone))
    assert found is not None
    assert found.instant == utc(instant)
    assert found.instant.tzinfo is UTC
    assert found.instant + found.offset == utc(shown)
    assert found.shift == local(shown) - local(nominal)


@pytest.mark.parametrize("nominal", ["2011-12-30T00:00", "2011-12-30T10:00", "2011-12-30T23:59:59.999999"])
def test_a_skipped_date_has_no_instant(nominal: str) -> None:
    assert resolve(local(nominal), find_zone("Pacific/Apia")) is None
    assert instants_showing(local(nominal), find_zone("Pacific/Apia")) == ()


@pytest.mark.parametrize(
    ("zone", "nominal", "instants"),
    [
        ("Europe/Berlin", "2026-10-25T01:59:59", ["2026-10-24T23:59:59"]),
        ("Europe/Berlin", "2026-10-25T02:00", ["2026-10-25T00:00", "2026-10-25T01:00"]),
        ("Europe/Berlin", "2026-10-25T02:59:59", ["2026-10-25T00:59:59", "2026-10-25T01:59:59"]),
        ("Europe/Berlin", "2026-10-25T03:00", ["2026-10-25T02:00"]),
        ("Europe/Berlin", "2026-03-29T01:59:59", ["2026-03-29T00:59:59"]),
        ("Europe/Berlin", "2026-03-29T02:00", []),
        ("Europe/Berlin", "2026-03-29T02:59:59", []),
        ("Europe/Berlin", "2026-03-29T03:00", ["2026-03-29T01:00"]),
        ("America/Goose_Bay", "2010-11-07T00:00", ["2010-11-07T03:00", "2010-11-07T04:00"]),
        ("America/Goose_Bay", "2010-11-06T23:01", ["2010-11-07T02:01", "2010-11-07T03:01"]),
        ("America/Goose_Bay", "2010-11-07T00:01", ["2010-11-07T04:01"]),
        ("Pacific/Kwajalein", "1969-09-30T12:00", ["1969-09-30T01:00", "1969-10-01T00:00"]),
    ],
)
def test_every_instant_at_which_the_clocks_show_a_time(zone: str, nominal: str, instants: list[str]) -> None:
    assert instants_showing(local(nominal), find_zone(zone)) == tuple(map(utc, instants))


def test_the_fold_of_a_nominal_time_is_ignored() -> None:
    second = local("2026-10-25T02:30").replace(fold=1)
    found = resolve(second, find_zone("Europe/Berlin"))
    assert found == Resolved(utc("2026-10-25T00:30"), timedelta(hours=2), timedelta())
    assert found.instant.fold == 0


@pytest.mark.parametrize("edge", ["0001-01-01", "0002-12-31T23:59", "9998-01-01", "9999-12-31T23:59:59"])
def test_a_time_outside_the_calendar_has_no_instant(edge: str) -> None:
    assert resolve(local(edge), find_zone("Pacific/Kiritimati")) is None
    assert instants_showing(local(edge), find_zone("America/New_York")) == ()


@pytest.mark.parametrize("edge", ["0003-01-01", "9997-12-31T23:59"])
def test_the_edges_of_the_calendar_are_accepted(edge: str) -> None:
    for name in ("Pacific/Kiritimati", "America/New_York", "Etc/GMT+12"):
        assert resolve(local(edge), find_zone(name)) is not None


def test_an_aware_time_is_refused_by_an_assertion() -> None:
    with pytest.raises(AssertionError):
        resolve(utc("2026-06-01T00:00"), find_zone("UTC"))
    with pytest.raises(AssertionError):
        instants_showing(utc("2026-06-01T00:00"), find_zone("UTC"))
