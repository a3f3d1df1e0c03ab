"""Replacing and deleting a schedule, and what a schedule may hold."""

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

import pytest

from civil.weekly import WeeklySlot
from civil.windows import SendWindow
from civil.zones import find_zone, tzdata_version
from schedule_service.domain.calendars.account_schedule import (
    Timetable,
    created,
    deleted,
    found,
    in_order_of_week,
    live,
    replaced,
    require_etag,
)
from servicekit.faults import Conflict, InvalidField, NotFound

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
OFFICE_HOURS = SendWindow(days=frozenset({1, 2, 3, 4, 5}), start=time(9), end=time(18))
TIMETABLE = Timetable(
    name="Default queue",
    zone=find_zone("America/New_York"),
    weekly_slots=(WeeklySlot(day=1, hour=9, minute=0), WeeklySlot(day=3, hour=12, minute=0)),
    max_posts_per_day=2,
    enabled=True,
    send_window=OFFICE_HOURS,
    min_spacing=timedelta(minutes=6),
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
        replace(TIMETABLE, send_window=None),
        replace(TIMETABLE, send_window=replace(OFFICE_HOURS, end=None)),
        replace(TIMETABLE, min_spacing=timedelta()),
    ],
)
def test_every_part_of_a_timetable_counts_as_a_change(other: Timetable) -> None:
    assert replaced(SCHEDULE, other, now=LATER).timetable == other


def test_the_same_timetable_changes_nothing() -> None:
    assert replaced(SCHEDULE, replace(TIMETABLE), now=LATER) is SCHEDULE


def test_a_change_is_stamped_with_the_current_tzdata_release() -> None:
    old = replace(SCHEDULE, tzdata_version="2010a")
    assert replaced(old, replace(TIMETABLE, name="Other"), now=LATER).tzdata_version == tzdata_version()
    assert replaced(old, TIMETABLE, now=LATER).tzdata_version == "2010a"
    assert SCHEDULE.tzdata_version == tzdata_version()


def test_deleting_a_schedule_only_changes_its_version() -> None:
    gone = deleted(SCHEDULE, now=LATER)
    assert (gone.timetable, gone.version, gone.create_time) == (TIMETABLE, 2, NOW)
    assert gone.update_time == gone.delete_time == LATER
    assert gone.etag != SCHEDULE.etag


def test_a_deleted_schedule_is_not_live() -> None:
    assert live(SCHEDULE) is SCHEDULE
    assert live(deleted(SCHEDULE, now=LATER)) is None
    assert live(None) is None


def test_a_schedule_after_a_deletion_starts_over_but_keeps_counting() -> None:
    gone = deleted(SCHEDULE, now=LATER)
    again = created("acme", "page", TIMETABLE, now=LATER, last=gone)
    assert (again.version, again.create_time, again.delete_time) == (3, LATER, None)
    assert created("acme", "page", TIMETABLE, now=NOW).version == 1
    assert len({SCHEDULE.etag, gone.etag, again.etag}) == 3


def test_a_recreated_schedule_has_another_etag() -> None:
    assert created("acme", "page", TIMETABLE, now=LATER).etag != SCHEDULE.etag


def test_an_empty_etag_is_no_precondition() -> None:
    require_etag(None, "", "page")
    require_etag(SCHEDULE, "", "page")
    require_etag(SCHEDULE, SCHEDULE.etag, "page")


def test_an_etag_without_its_schedule_is_a_conflict() -> None:
    for schedule in (SCHEDULE, None):
        with pytest.raises(Conflict) as refusal:
            require_etag(schedule, "0123456789abcdef", "page")
        assert (refusal.value.reason, refusal.value.metadata) == ("ETAG_MISMATCH", {"social_account_id": "page"})


def test_a_missing_schedule_is_not_found() -> None:
    assert found(SCHEDULE, "page") is SCHEDULE
    with pytest.raises(NotFound) as refusal:
        found(None, "page")
    assert (refusal.value.reason, refusal.value.metadata) == ("SCHEDULE_NOT_FOUND", {"social_account_id": "page"})


def test_slots_are_sorted_by_the_week_from_sunday() -> None:
    saturday, monday, sunday = (WeeklySlot(day=day, hour=9, minute=0) for day in (6, 1, 0))
    early = WeeklySlot(day=1, hour=8, minute=59)
    assert in_order_of_week([saturday, monday, sunday, early], "slots") == (sunday, early, monday, saturday)


def test_the_second_of_two_equal_slots_is_refused() -> None:
    monday = WeeklySlot(day=1, hour=9, minute=0)
    with pytest.raises(InvalidField) as refusal:
        in_order_of_week([monday, WeeklySlot(day=2, hour=9, minute=0), monday], "slots")
    (violation,) = refusal.value.violations
    assert (violation.field, violation.description) == ("slots[2]", "is the same as slots[0]")
