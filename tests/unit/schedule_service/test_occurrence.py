"""The names of occurrences."""

from datetime import UTC, datetime

import pytest

from civil.cron import Dst
from civil.zones import Zone, find_zone
from schedule_service.domain.timers.occurrence import Occurrence, manual_key, occurrence_key

UTC_ZONE = find_zone("UTC")
NEW_YORK = find_zone("America/New_York")
BERLIN = find_zone("Europe/Berlin")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("cron", "zone", "due", "key"),
    [
        ("", UTC_ZONE, "2026-03-02T09:00:00.250000", "2026-03-02T09:00:00.250000Z"),
        ("", UTC_ZONE, "2026-03-02T09:00:00", "2026-03-02T09:00:00Z"),
        ("30 2 * * *", NEW_YORK, "2026-03-03T07:30", "2026-03-03T02:30"),
        ("30 1 * * *", NEW_YORK, "2026-11-01T05:30", "2026-11-01T01:30"),
        ("30 1 * * *", NEW_YORK, "2026-11-01T06:30", "2026-11-01T01:30/2"),
        ("@every 90s", BERLIN, "2026-03-02T09:01:30", "2026-03-02T09:01:30Z"),
        # Not an instant of the expression: the data of its zone changed, and the old data was not recorded.
        ("30 2 * * *", NEW_YORK, "2026-03-03T06:30", "2026-03-03T06:30:00Z"),
    ],
)
def test_an_occurrence_is_named_by_its_nominal_local_time(cron: str, zone: Zone, due: str, key: str) -> None:
    assert occurrence_key(cron, zone, Dst.CRON, at(due)) == key


@pytest.mark.parametrize(
    ("not_after", "too_late"), [(None, False), ("2026-03-02T08:59", True), ("2026-03-02T09:00", False)]
)
def test_an_occurrence_is_too_late_after_its_last_instant(not_after: str | None, too_late: bool) -> None:
    now = at("2026-03-02T09:00")
    occurrence = Occurrence(due_time=now, key="k", not_after=at(not_after) if not_after else None, traceparent="")
    assert occurrence.is_too_late(now) is too_late


def test_the_key_of_a_manual_firing_is_that_of_its_request() -> None:
    assert manual_key("r1") == "manual/r1"
