"""Replacing a schedule, and what a schedule may hold."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from civil.weekly import WeeklySlot
from civil.zones import find_zone
from schedule_service.domain.account_schedule import (
    Timetable,
    created,
    found,
    in_order_of_week,
    replaced,
    require_etag,
)
from servicekit.faults import Conflict, InvalidField, NotFound

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
TIMETABLE = Timetable(
    name="Default queue",
    zone=find_zone("America/New_York"),
    weekly_slots=(WeeklySlot(day=1, hour=9, minute=0), WeeklySlot(day=3, hour=12, minute=0)),
    max_posts_per_day=2,
    enabled=True,
)
SCHEDULE = created("acme", "page", TIMETABLE, now=NOW)


def test_a_change_makes_a_new_version_with_another_etag() -> None:
    changed = replaced(SCHEDULE, replace(TIMETABLE, enabled=False), now=LATER)
    assert (changed.version, changed.create_time, changed.update_time) == (2, NOW, LATER)
    assert changed.etag != SCHEDULE.etag


@pytest.mark.parametrize(
    "other",
    [
        replace(TIMETABLE, name="Other"),
        replace(TIMETABLE, zone=find_zone("US/Eastern")),
        replace(TIMETABLE, weekly_slots=TIMETABLE.weekly_slots[:1]),
        replace(TIMETABLE, max_posts_per_day=0),
        replace(TIMETABLE, enabled=False),
    ],
)
def test_every_part_of_a_timetable_counts_as_a_change(other: Timetable) -> None:
    assert replaced(SCHEDULE, other, now=LATER).timetable == other


def test_the_same_timetable_changes_nothing() -> None:
    assert replaced(SCHEDULE, replace(TIMETABLE), now=LATER) is SCHEDULE


def test_a_schedule_made_anew_has_another_etag_than_the_one_before() -> None:
    assert created("acme", "page", TIMETABLE, now=LATER).etag != SCHEDULE.etag


def test_an_empty_etag_is_no_precondition() -> None:
    require_etag(None, "")
    require_etag(SCHEDULE, "")
    require_etag(SCHEDULE, SCHEDULE.etag)


def test_another_etag_is_a_conflict_and_so_is_one_of_nothing() -> None:
    for schedule in (SCHEDULE, None):
        with pytest.raises(Conflict) as refusal:
            require_etag(schedule, "0123456789abcdef")
        assert refusal.value.reason == "ETAG_MISMATCH"


def test_no_schedule_is_not_found() -> None:
    assert found(SCHEDULE, "page") is SCHEDULE
    with pytest.raises(NotFound) as refusal:
        found(None, "page")
    assert (refusal.value.reason, refusal.value.metadata) == ("SCHEDULE_NOT_FOUND", {"social_account_id": "page"})


def test_slots_are_put_in_the_order_of_the_week_from_sunday() -> None:
    saturday, monday, sunday = (WeeklySlot(day=day, hour=9, minute=0) for day in (6, 1, 0))
    early = WeeklySlot(day=1, hour=8, minute=59)
    assert in_order_of_week([saturday, monday, sunday, early], "slots") == (sunday, early, monday, saturday)


def test_of_two_equal_slots_the_second_is_at_fault() -> None:
    monday = WeeklySlot(day=1, hour=9, minute=0)
    with pytest.raises(InvalidField) as refusal:
        in_order_of_week([monday, WeeklySlot(day=2, hour=9, minute=0), monday], "slots")
    (violation,) = refusal.value.violations
    assert (violation.field, violation.description) == ("slots[2]", "is the same as slots[0]")
