"""Zones of other releases, built from their stored data."""

import struct
from datetime import UTC, date, datetime, timedelta
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from civil.days import day_bounds
from civil.wall_clock import resolve
from civil.weekly import WeeklySlot, occurrences
from civil.zones import UnknownZone, find_zone, zone_data, zone_from_data, zone_names

MIDSUMMER = datetime(2026, 6, 21, tzinfo=UTC)


def with_rule(name: str, rule: str) -> bytes:
    """Returns the zone with another rule for the years that it does not list."""
    data = zone_data(name)
    return data[: data.rindex(b"\n", 0, -1) + 1] + rule.encode() + b"\n"


def test_stored_data_answers_as_its_release_did() -> None:
    """Uses Vancouver before British Columbia abolished DST: the rules of Los Angeles under its name."""
    now = find_zone("America/Vancouver")
    then = zone_from_data("America/Vancouver", zone_data("America/Los_Angeles"))
    monday_nine = [WeeklySlot(day=1, hour=9, minute=0)]
    after = datetime(2026, 11, 1, 18, tzinfo=UTC)
    assert next(occurrences(monday_nine, now, after=after)).instant == datetime(2026, 11, 2, 16, tzinfo=UTC)
    assert next(occurrences(monday_nine, then, after=after)).instant == datetime(2026, 11, 2, 17, tzinfo=UTC)
    assert then.name == "America/Vancouver"


def test_two_releases_of_a_zone_do_not_mix_their_answers() -> None:
    sundays = [WeeklySlot(day=0, hour=12, minute=0)]
    paris = find_zone("Europe/Paris")
    others = [zone_from_data("Europe/Paris", zone_data(name)) for name in ("Asia/Tokyo", "America/Lima", "UTC")]
    expected = [[12 - hours] * 5 for hours in (2, 9, -5, 0)]
    for _ in range(2):
        found = [
            [one.instant.hour for one in islice(occurrences(sundays, zone, after=MIDSUMMER), 5)]
            for zone in (paris, *others)
        ]
        assert found == expected
        noon = datetime(2026, 6, 21, 12)
        assert [resolve(noon, zone).instant.hour for zone in (paris, *others)] == [10, 3, 17, 12]  # type: ignore[union-attr]
        days = [day_bounds(date(2026, 6, 21), zone) for zone in (paris, *others)]
        assert len(set(days)) == 4


def test_zones_are_equal_when_name_and_data_are() -> None:
    berlin = find_zone("Europe/Berlin")
    data = bytes(bytearray(zone_data("Europe/Berlin")))
    assert zone_from_data("Europe/Berlin", data) is berlin
    renamed, other = zone_from_data("Europe/Bonn", data), zone_from_data("Europe/Berlin", zone_data("Europe/Paris"))
    assert len({berlin, renamed, other}) == 3
    assert renamed == zone_from_data("Europe/Bonn", data)
    assert berlin not in {renamed, other}


def test_stored_data_of_a_dropped_name_can_be_read() -> None:
    dropped = zone_from_data("Mars/Olympus", zone_data("Asia/Kathmandu"))
    assert dropped.name == "Mars/Olympus"
    assert dropped.offset_at(MIDSUMMER) == timedelta(hours=5, minutes=45)


def test_every_zone_can_be_built_from_its_data() -> None:
    for name in zone_names():
        copy = zone_from_data(f"{name} as recorded", zone_data(name))
        assert list(copy.stretches(MIDSUMMER, MIDSUMMER.replace(year=2029))) == list(
            find_zone(name).stretches(MIDSUMMER, MIDSUMMER.replace(year=2029))
        )


def test_a_name_is_shown_without_its_data() -> None:
    assert repr(find_zone("Europe/Berlin")) == "Zone(name='Europe/Berlin')"


@pytest.mark.parametrize("name", ["localtime", "Factory", "europe/berlin", "x" * 300])
def test_an_unknown_name_has_no_data(name: str) -> None:
    with pytest.raises(UnknownZone):
        zone_data(name)


@pytest.mark.parametrize("name", ["Europe/Berlin", "UTC", "Africa/Casablanca"])
def test_truncated_data_is_refused(name: str) -> None:
    data = zone_data(name)
    for length in range(len(data)):
        with pytest.raises(ValueError, match="not a compiled time zone"):
            zone_from_data(name, data[:length])


@pytest.mark.parametrize("rest", [b"\0", b"\n", b"x\n", zone_data("UTC")])
def test_data_with_a_tail_is_refused(rest: bytes) -> None:
    with pytest.raises(ValueError, match="not a compiled time zone"):
        zone_from_data("Europe/Berlin", zone_data("Europe/Berlin") + rest)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"Europe/Berlin",
        b"TZif",
        b"TZif2" + b"\0" * 39,
        b"TZif2" + b"\xff" * 39,
        zone_data("UTC").replace(b"TZif2", b"TZif\0"),
        with_rule("Europe/Berlin", "CET-24"),
        with_rule("Europe/Berlin", "CET-1CEST"),
        with_rule("Europe/Berlin", "CET-1CEST,M13.5.0,M10.5.0/3"),
        with_rule("Europe/Berlin", "CET-1CEST,M3.5.0/200,M10.5.0/3"),
        with_rule("Europe/Berlin", "CET-1CÉST,M3.5.0,M10.5.0/3"),
    ],
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - some of the texts are zoneinfo's
        zone_from_data("Europe/Berlin", data)


def second_header(data: bytes) -> int:
    return data.index(b"TZif", 4)


def with_bytes(place: int, value: bytes) -> bytes:
    """Returns Berlin's data with these bytes at an offset after the second header or, if negative, before the end."""
    whole = zone_data("Europe/Berlin")
    data = bytearray(whole)
    place += second_header(whole) if place >= 0 else len(whole)
    data[place : place + len(value)] = value
    return bytes(data)


def places() -> dict[str, int]:
    """Returns the offsets of Berlin's changes, kinds of time, abbreviations and rule, and the number of kinds."""
    data = zone_data("Europe/Berlin")
    changes, kinds, letters = struct.unpack_from(">3L", data, second_header(data) + 32)
    numbers = 44 + changes * 8
    names = numbers + changes + kinds * 6
    return {"numbers": numbers, "kinds": numbers + changes, "letters": names, "rule": names + letters, "count": kinds}


BERLIN = places()


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (with_bytes(4, b"1"), "beginning"),
        (with_bytes(20, b"\0\0\0\1"), "rule for later|lengths|indicators"),
        (with_bytes(24, b"\0\0\0\1"), "rule for later|lengths|indicators"),
        (with_bytes(28, b"\0\0\0\1"), "lengths"),
        (with_bytes(36, b"\0\0\0\0"), "lengths"),
        (with_bytes(44, b"\x7f"), "order of changes"),
        (with_bytes(BERLIN["numbers"], bytes([BERLIN["count"]])), "kinds of changes"),
        (with_bytes(BERLIN["kinds"], struct.pack(">l", 86_400)), "kinds of time"),
        (with_bytes(BERLIN["kinds"], struct.pack(">l", -86_400)), "kinds of time"),
        (with_bytes(BERLIN["kinds"] + 4, b"\2"), "kinds of time"),
        (with_bytes(BERLIN["kinds"] + 5, bytes([BERLIN["rule"] - BERLIN["letters"]])), "kinds of time"),
        (with_bytes(BERLIN["letters"], b"\xff"), "abbreviations"),
        (with_bytes(BERLIN["rule"] - 1, b"T"), "abbreviations"),
        (with_bytes(BERLIN["rule"], b"x"), "rule for later"),
        (with_bytes(-1, b"x"), "rule for later"),
        (with_bytes(-4, b"\n"), "rule for later"),
        (with_bytes(-4, b"\0"), "rule for later"),
        (with_bytes(-4, b"\xff"), "rule for later"),
    ],
)
def test_damage_is_reported_by_its_place(data: bytes, what: str) -> None:
    with pytest.raises(ValueError, match=f"^not a compiled time zone: wrong ({what})$"):
        zone_from_data("Europe/Berlin", data)


def test_leap_seconds_are_refused() -> None:
    """Uses data that is valid apart from leap seconds, which the product's clocks do not have."""
    header = struct.Struct(">4sc15x6L")
    kind, letters, leap = struct.pack(">lBB", 0, 0, 0), b"UTC\0", struct.pack(">ql", 78_796_800, 1)
    data = header.pack(b"TZif", b"2", 0, 0, 0, 0, 1, 4) + kind + letters
    with_leap = data + header.pack(b"TZif", b"2", 0, 0, 1, 0, 1, 4) + kind + letters + leap + b"\nUTC0\n"
    without = data + header.pack(b"TZif", b"2", 0, 0, 0, 0, 1, 4) + kind + letters + b"\nUTC0\n"
    assert zone_from_data("Right", without).offset_at(MIDSUMMER) == timedelta()
    with pytest.raises(ValueError, match="wrong lengths"):
        zone_from_data("Right", with_leap)


def test_indicators_must_cover_all_kinds_or_none() -> None:
    header = struct.Struct(">4sc15x6L")
    kinds, letters = struct.pack(">lBB", 0, 0, 0) * 2, b"UTC\0"
    data = header.pack(b"TZif", b"2", 0, 0, 0, 0, 2, 4) + kinds + letters
    for standard, right in [(0, True), (1, False), (2, True)]:
        rest = kinds + letters + b"\0" * standard + b"\nUTC0\n"
        whole = data + header.pack(b"TZif", b"2", 0, standard, 0, 0, 2, 4) + rest
        if right:
            assert zone_from_data("Indicated", whole).offset_at(MIDSUMMER) == timedelta()
            continue
        with pytest.raises(ValueError, match="wrong indicators"):
            zone_from_data("Indicated", whole)


@settings(deadline=None, max_examples=500)
@given(
    st.sampled_from(["Europe/Berlin", "America/Nuuk", "Pacific/Apia"]),
    st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_damaged_data_is_refused_or_answers(name: str, damage: list[tuple[int, int]]) -> None:
    """Includes data on which zoneinfo itself hangs or crashes."""
    data = bytearray(zone_data(name))
    for place, value in damage:
        data[place % len(data)] = value
    try:
        zone = zone_from_data(name, bytes(data))
    except ValueError:
        return
    assert list(zone.stretches(MIDSUMMER, MIDSUMMER.replace(year=2060)))
