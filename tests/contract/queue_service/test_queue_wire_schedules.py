"""Slot times and schedules, as Schedule answers and announces them."""

from datetime import UTC, datetime, timedelta

from postflow.schedule.v1.account_schedule_pb2 import AccountSchedule, SlotTime
from postflow.schedule.v1.schedule_events_pb2 import AccountScheduleChanged
from postflow.schedule.v1.schedule_service_pb2 import FindSlotTimesRequest, FindSlotTimesResponse
from queue_service.domain.account import AnnouncedSchedule
from queue_service.wire.schedules import changed_schedule, offered_times, slot_times
from servicekit.timestamps import timestamp

NOW = datetime(2026, 3, 2, 9, 0, 0, 123456, tzinfo=UTC)
ASKED = FindSlotTimesRequest(
    organization_id="acme",
    social_account_id="page",
    after=timestamp(NOW),
    before=timestamp(NOW + timedelta(days=9)),
    count=2,
)

FOUND = FindSlotTimesResponse(
    slot_times=[
        SlotTime(
            time=timestamp(NOW + timedelta(days=day)),
            local_date=f"2026-03-{day + 2:02}",
            local_time="03:30",
            shifted=day == 1,
            nominal_local_time=f"2026-03-{day + 2:02}T02:30",
        )
        for day in range(3)
    ],
    time_zone="Europe/Berlin",
    schedule_version=7,
    max_posts_per_day=3,
    enabled=True,
    tzdata_version="2026b",
)


def test_slot_times_are_read_with_their_schedule() -> None:
    read = slot_times(ASKED, FOUND)
    assert read.times == tuple(NOW + timedelta(days=day) for day in range(3))
    assert read.nominals == tuple(datetime(2026, 3, day, 2, 30) for day in (2, 3, 4))
    assert (read.after, read.until, read.last) == (NOW, read.times[-1] + timedelta(microseconds=1), False)
    assert (read.schedule_version, read.tzdata_version) == (7, "2026b")
    assert read.schedule == AnnouncedSchedule(
        organization_id="acme",
        social_account_id="page",
        version=7,
        time_zone="Europe/Berlin",
        max_posts_per_day=3,
        enabled=True,
        tzdata_version="2026b",
    )


def test_slot_times_of_the_release_before_mean_their_local_time() -> None:
    older = FindSlotTimesResponse(schedule_version=7, time_zone="Europe/Berlin")
    for each in FOUND.slot_times:
        older.slot_times.add(
            time=each.time, local_date=each.local_date, local_time=each.local_time, shifted=each.shifted
        )
    older.slot_times.add(time=timestamp(NOW + timedelta(days=4)))
    read = slot_times(ASKED, older)
    assert read.nominals == (datetime(2026, 3, 2, 3, 30), None, datetime(2026, 3, 4, 3, 30), None)
    assert (read.schedule, read.tzdata_version) == (None, "")


def test_the_last_page_ends_at_the_horizon() -> None:
    read = slot_times(ASKED, FindSlotTimesResponse(slot_times=FOUND.slot_times[:1]))
    assert (read.until, read.last) == (NOW + timedelta(days=9), True)


def test_times_of_other_categories_are_dropped_but_end_the_page() -> None:
    """Covers the previous release, which answers with the times of all categories."""
    asked = FindSlotTimesRequest()
    asked.CopyFrom(ASKED)
    asked.of_category_only, asked.category_id, asked.count = True, "news", 3
    found = FindSlotTimesResponse()
    found.CopyFrom(FOUND)
    found.slot_times[0].category_id = found.slot_times[1].category_id = "news"
    read = slot_times(asked, found)
    assert (read.times, len(read.nominals)) == ((NOW, NOW + timedelta(days=1)), 2)
    assert (read.until, read.last) == (NOW + timedelta(days=2, microseconds=1), False)
    assert slot_times(asked, FOUND).times == ()
    asked.category_id = ""
    assert slot_times(asked, found).times == (NOW + timedelta(days=2),)
    asked.of_category_only = False
    assert len(slot_times(asked, found).times) == 3


def test_times_outside_the_window_are_dropped_but_end_the_page() -> None:
    """Covers the previous release, which answers with them."""
    asked = FindSlotTimesRequest()
    asked.CopyFrom(ASKED)
    asked.inside_send_window_only, asked.count = True, 3
    found = FindSlotTimesResponse()
    found.CopyFrom(FOUND)
    found.slot_times[1].outside_send_window = found.slot_times[2].outside_send_window = True
    read = slot_times(asked, found)
    assert (read.times, len(read.nominals)) == ((NOW,), 1)
    assert (read.until, read.last, read.all_outside) == (NOW + timedelta(days=2, microseconds=1), False, False)
    asked.inside_send_window_only = False
    assert len(slot_times(asked, found).times) == 3


def test_a_window_that_leaves_no_weekly_slot_is_read() -> None:
    none = FindSlotTimesResponse(schedule_version=7, none_inside_send_window=True)
    assert slot_times(ASKED, none).all_outside
    # A shifted time may lie inside.
    none.slot_times.append(FOUND.slot_times[0])
    assert not slot_times(ASKED, none).all_outside


def test_offered_times_say_whether_they_are_outside_the_window() -> None:
    found = FindSlotTimesResponse(slot_times=FOUND.slot_times[:2])
    found.slot_times[1].outside_send_window = True
    assert [each.is_outside_window for each in offered_times(found)] == [False, True]


def test_a_schedule_in_an_unknown_zone_waits_for_its_announcement() -> None:
    newer = FindSlotTimesResponse()
    newer.CopyFrom(FOUND)
    newer.time_zone = "Mars/Olympus"
    assert slot_times(ASKED, newer).schedule is None


def test_only_the_version_of_a_deleted_schedule_remains() -> None:
    schedule = AccountSchedule(
        social_account_id="page",
        time_zone="Mars/Olympus",
        max_posts_per_day=3,
        enabled=True,
        version=8,
        tzdata_version="2026b",
    )
    deleted = changed_schedule(AccountScheduleChanged(organization_id="acme", account_schedule=schedule, deleted=True))
    assert deleted == AnnouncedSchedule(
        organization_id="acme",
        social_account_id="page",
        version=8,
        time_zone="",
        max_posts_per_day=0,
        enabled=False,
        tzdata_version="2026b",
    )
