"""The names that are zones, and the data that they read."""

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path

import pytest

from civil.days import local_day
from civil.wall_clock import resolve
from civil.zones import UnknownZone, Zone, find_zone, stored_zone, tzdata_version, zone_names


def test_every_name_of_the_database_is_found() -> None:
    assert len(zone_names()) > 500
    for name in zone_names():
        assert find_zone(name).name == name


def test_a_zone_is_built_once() -> None:
    assert find_zone("Europe/Berlin") is find_zone("Europe/Berlin")


@pytest.mark.parametrize("name", ["UTC", "Etc/GMT+5", "America/Argentina/Buenos_Aires", "US/Eastern"])
def test_links_and_fixed_offsets_are_zones(name: str) -> None:
    assert find_zone(name).name == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "localtime",
        "posixrules",
        "Factory",
        "right/UTC",
        "posix/UTC",
        "America/new_york",
        "EUROPE/BERLIN",
        "europe/berlin",
        "Europe/Berlin ",
        "Europe/Berlin\n",
        "Europe/Berlin\0",
        "Europe",
        "Europe/",
        "/Europe/Berlin",
        "./Europe/Berlin",
        "Europe/../Europe/Berlin",
        "../zones",
        "/etc/localtime",
        "tzdata.zi",
        "zone.tab",
        "__init__.py",
        "CEST",
        "UTC+2",
        "GMT+2",
        "EST5EDT,M3.2.0,M11.1.0",
        "Europe/Berlín",
        "x" * 300,
    ],
)
def test_any_other_name_is_refused(name: str) -> None:
    with pytest.raises(UnknownZone):
        find_zone(name)


@pytest.mark.parametrize(
    ("name", "suggestions"),
    [
        ("europe/berlin", ("Europe/Berlin",)),
        ("New York", ("America/New_York",)),
        ("America/NewYork", ("America/New_York",)),
        ("port au prince", ("America/Port-au-Prince",)),
        ("etc/gmt-5", ("Etc/GMT-5",)),
        ("Mars/Olympus", ()),
        ("", ()),
    ],
)
def test_a_near_miss_suggests_what_was_probably_meant(name: str, suggestions: tuple[str, ...]) -> None:
    with pytest.raises(UnknownZone) as refusal:
        find_zone(name)
    assert refusal.value.name == name
    assert refusal.value.suggestions == suggestions
    assert all(suggestion in str(refusal.value) for suggestion in suggestions)


def test_a_refusal_does_not_repeat_a_long_name() -> None:
    with pytest.raises(UnknownZone) as refusal:
        find_zone("x" * 300)
    assert len(str(refusal.value)) < 120


def test_the_version_is_that_of_the_data() -> None:
    first_line = resources.files("tzdata").joinpath("zoneinfo", "tzdata.zi").read_text().splitlines()[0]
    assert first_line == f"# version {tzdata_version()}"


def test_an_instant_may_be_given_in_any_zone() -> None:
    berlin = find_zone("Europe/Berlin")
    just_before = datetime(2026, 3, 29, 0, 59, 59, tzinfo=UTC)
    assert berlin.offset_at(just_before) == timedelta(hours=1)
    assert berlin.offset_at(just_before + timedelta(seconds=1)) == timedelta(hours=2)


def test_the_data_of_the_operating_system_is_never_read(tmp_path: Path) -> None:
    impostor = tmp_path / "America" / "Vancouver"
    impostor.parent.mkdir()
    impostor.write_bytes(resources.files("tzdata").joinpath("zoneinfo", "Asia", "Tokyo").read_bytes())
    program = (
        "from datetime import UTC, datetime\n"
        "from zoneinfo import ZoneInfo\n"
        "from civil.zones import find_zone\n"
        "name, instant = 'America/Vancouver', datetime(2026, 11, 2, 17, tzinfo=UTC)\n"
        "print(instant.astimezone(ZoneInfo(name)).utcoffset(), find_zone(name).offset_at(instant), sep=' / ')"
    )
    environment = os.environ | {"PYTHONTZPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "9:00:00 / -1 day, 17:00:00"


def test_a_stored_name_is_the_zone_of_that_name() -> None:
    assert stored_zone("Europe/Berlin") is find_zone("Europe/Berlin")
    assert stored_zone("Europe/Berlin").is_known


def test_a_stored_name_that_was_dropped_has_no_data() -> None:
    zone = stored_zone("Europe/Atlantis")
    assert (zone.name, zone.data, zone.is_known) == ("Europe/Atlantis", b"", False)
    assert zone == stored_zone("Europe/Atlantis")
    assert zone != stored_zone("Europe/Lyonesse")


@pytest.mark.parametrize(
    "question",
    [
        lambda zone: zone.offset_at(datetime(2026, 3, 2, tzinfo=UTC)),
        lambda zone: list(zone.stretches(datetime(2026, 3, 2, tzinfo=UTC), datetime(2026, 4, 2, tzinfo=UTC))),
        lambda zone: resolve(datetime(2026, 3, 2, 9), zone),
        lambda zone: local_day(datetime(2026, 3, 2, tzinfo=UTC), zone),
    ],
)
def test_a_zone_without_data_answers_no_question(question: Callable[[Zone], object]) -> None:
    with pytest.raises(UnknownZone, match="Europe/Atlantis"):
        question(stored_zone("Europe/Atlantis"))
