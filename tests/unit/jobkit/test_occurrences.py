"""The first occurrence of a job, and the keys of all."""

from datetime import UTC, datetime, timedelta

import pytest

from civil.zones import UnknownZone
from jobkit.job import Job
from jobkit.occurrences import first_due, occurrence_key

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("due", "interval", "key"),
    [
        (START, "", "2026-03-02T09:00:00Z"),
        (START + timedelta(microseconds=5), "", "2026-03-02T09:00:00.000005Z"),
        (START, "@every 1h", "2026-03-02T09:00:00Z"),
        (START, "0 9 * * *", "2026-03-02T09:00"),
        # Inserted for "now", when the expression does not fire.
        (START + SECOND, "0 9 * * *", "2026-03-02T09:00:01Z"),
    ],
)
def test_the_key_of_a_time_that_is_no_firing_is_the_instant(due: datetime, interval: str, key: str) -> None:
    assert occurrence_key(Job(id=1, due_time=due, sleep_until=due, interval=interval)) == key
    assert occurrence_key(Job(id=1, due_time=None, sleep_until=due, interval=interval)) == key


def test_the_zone_of_the_expression_overrides_the_jobs() -> None:
    found = first_due("CRON_TZ=Asia/Tokyo 0 9 * * *", "Europe/Berlin", after=START)
    assert found == datetime(2026, 3, 3, 0, 0, tzinfo=UTC)


def test_first_due_is_none_without_an_occurrence() -> None:
    assert first_due("0 0 30 2 *", after=START) is None
    assert first_due("@daily", after=START, repeat_until=START + HOUR) is None
    assert first_due("@daily", after=START) == START + 15 * HOUR
    with pytest.raises(UnknownZone):
        first_due("@daily", "Berlin", after=START)
