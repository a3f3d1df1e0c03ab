"""Putting schedules and finding their times, over the wire."""

from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from civil.zones import tzdata_version
from postflow.bus.v1.bus_pb2 import Event
from postflow.schedule.v1.account_schedule_pb2 import (
    DAY_OF_WEEK_FRIDAY,
    DAY_OF_WEEK_MONDAY,
    DAY_OF_WEEK_SUNDAY,
    DAY_OF_WEEK_UNSPECIFIED,
    AccountSchedule,
    LocalTime,
    SendWindow,
    WeeklySlot,
)
from postflow.schedule.v1.schedule_service_pb2 import (
    FindSlotTimesRequest,
    GetAccountScheduleRequest,
    PutAccountScheduleRequest,
)
from servicekit.faults import Conflict, InvalidRequest, NotFound
from testkit.refusals import fault_of

Stub: TypeAlias = "Any"

MONDAY = datetime(2026, 3, 2, 0, 0, tzinfo=UTC)
NINE = WeeklySlot(day_of_week=DAY_OF_WEEK_MONDAY, hour=9)
OFFICE_HOURS = SendWindow(
    days_of_week=[DAY_OF_WEEK_FRIDAY, DAY_OF_WEEK_MONDAY], start=LocalTime(hour=9), end=LocalTime(hour=18)
)


def put(request_id: str = "", **fields: Any) -> PutAccountScheduleRequest:
    given: dict[str, Any] = {"social_account_id": "page", "time_zone": "Europe/Berlin"} | fields
    return PutAccountScheduleRequest(
        organization_id="acme", account_schedule=AccountSchedule(**given), request_id=request_id
    )


def find(**fields: Any) -> FindSlotTimesRequest:
    given: dict[str, Any] = {"organization_id": "acme", "social_account_id": "page"} | fields
    return FindSlotTimesRequest(**given)


def window(*days: int, **ends: LocalTime) -> SendWindow:
    return SendWindow(days_of_week=days, **ends)  # type: ignore[arg-type]


async def test_slot_times_of_a_put_schedule_are_found(stub: Stub) -> None:
    sunday = WeeklySlot(day_of_week=DAY_OF_WEEK_SUNDAY, hour=23, minute=30)
    answer = await stub.PutAccountSchedule(put(weekly_slots=[NINE, sunday], max_posts_per_day=3))
    assert list(answer.account_schedule.weekly_slots) == [sunday, NINE]
    found = await stub.FindSlotTimes(find(after=MONDAY, count=2))
    assert [time.time.ToDatetime(UTC).isoformat() for time in found.slot_times] == [
        "2026-03-02T08:00:00+00:00",
        "2026-03-08T22:30:00+00:00",
    ]
    assert [(time.local_date, time.local_time) for time in found.slot_times] == [
        ("2026-03-02", "09:00"),
        ("2026-03-08", "23:30"),
    ]


async def test_a_schedule_is_enabled_by_default(stub: Stub) -> None:
    on = await stub.PutAccountSchedule(put(weekly_slots=[NINE]))
    assert on.account_schedule.enabled
    off = await stub.PutAccountSchedule(put(weekly_slots=[NINE], enabled=False))
    assert not off.account_schedule.enabled
    assert list((await stub.FindSlotTimes(find())).slot_times) == []


async def test_weekly_slots_are_kept_for_categories(stub: Stub) -> None:
    five = WeeklySlot(day_of_week=DAY_OF_WEEK_MONDAY, hour=17, category_id="news")
    stored = (await stub.PutAccountSchedule(put(weekly_slots=[five, NINE]))).account_schedule
    assert list(stored.weekly_slots) == [NINE, five]
    read = await stub.GetAccountSchedule(GetAccountScheduleRequest(organization_id="acme", social_account_id="page"))
    assert list(read.account_schedule.weekly_slots) == [NINE, five]
    found = {
        str(asked): [
            (time.local_time, time.category_id) for time in (await stub.FindSlotTimes(find(**asked))).slot_times
        ]
        for asked in (
            {"after": MONDAY, "count": 2},
            {"after": MONDAY, "count": 1, "of_category_only": True},
            {"after": MONDAY, "count": 2, "of_category_only": True, "category_id": "news"},
            {"after": MONDAY, "count": 2, "of_category_only": True, "category_id": "sport"},
        )
    }
    assert list(found.values()) == [
        [("09:00", ""), ("17:00", "news")],
        [("09:00", "")],
        [("17:00", "news")] * 2,
        [],
    ]
    nobodys = await stub.FindSlotTimes(find(after=MONDAY, of_category_only=True, category_id="sport"))
    assert nobodys.searched_until.ToDatetime(UTC) == MONDAY + timedelta(days=730)


async def test_a_change_of_category_is_a_change_of_the_schedule(stub: Stub) -> None:
    before = (await stub.PutAccountSchedule(put(weekly_slots=[NINE]))).account_schedule
    news = WeeklySlot(day_of_week=DAY_OF_WEEK_MONDAY, hour=9, category_id="news")
    after = (await stub.PutAccountSchedule(put(weekly_slots=[news]))).account_schedule
    again = (await stub.PutAccountSchedule(put(weekly_slots=[news]))).account_schedule
    assert (after.version, again.version) == (before.version + 1, before.version + 1)


async def test_ten_times_are_returned_by_default(stub: Stub) -> None:
    await stub.PutAccountSchedule(put(weekly_slots=[NINE]))
    assert len((await stub.FindSlotTimes(find())).slot_times) == 10
    assert len((await stub.FindSlotTimes(find(count=1))).slot_times) == 1


async def test_the_largest_schedule_and_the_longest_response_fit(stub: Stub) -> None:
    slots = [
        WeeklySlot(day_of_week=DAY_OF_WEEK_MONDAY, hour=hour, minute=minute)
        for hour in range(10)
        for minute in range(10, 60)
    ]
    await stub.PutAccountSchedule(put(weekly_slots=slots, name="x" * 200))
    assert len((await stub.FindSlotTimes(find(after=MONDAY, count=1000))).slot_times) == 1000


async def test_a_schedule_is_stored_with_its_window_and_spacing(stub: Stub) -> None:
    stored = (
        await stub.PutAccountSchedule(put(send_window=OFFICE_HOURS, min_spacing=Duration(seconds=86_400)))
    ).account_schedule
    assert stored.send_window == SendWindow(
        days_of_week=[DAY_OF_WEEK_MONDAY, DAY_OF_WEEK_FRIDAY], start=LocalTime(hour=9), end=LocalTime(hour=18)
    )
    assert stored.min_spacing == Duration(seconds=86_400)
    assert stored.tzdata_version == tzdata_version()


async def test_a_window_may_leave_out_its_ends_and_a_schedule_its_window(stub: Stub) -> None:
    mondays = SendWindow(days_of_week=[DAY_OF_WEEK_MONDAY])
    stored = (await stub.PutAccountSchedule(put(send_window=mondays))).account_schedule.send_window
    assert stored == SendWindow(days_of_week=[DAY_OF_WEEK_MONDAY], start=LocalTime())
    bare = (await stub.PutAccountSchedule(put(min_spacing=Duration()))).account_schedule
    assert (bare.HasField("send_window"), bare.HasField("min_spacing")) == (False, False)


async def test_times_outside_the_window_are_marked(stub: Stub) -> None:
    at = [WeeklySlot(day_of_week=DAY_OF_WEEK_MONDAY, hour=hour, minute=minute) for hour, minute in TIMES_OF_MONDAY]
    await stub.PutAccountSchedule(put(weekly_slots=at, send_window=OFFICE_HOURS, max_posts_per_day=7))
    found = await stub.FindSlotTimes(find(after=MONDAY, count=4))
    assert [time.outside_send_window for time in found.slot_times] == [True, False, False, True]
    assert (found.max_posts_per_day, found.enabled, found.tzdata_version) == (7, True, tzdata_version())


TIMES_OF_MONDAY = ((8, 59), (9, 0), (17, 59), (18, 0))


async def test_times_inside_the_window_can_be_asked_for_alone(stub: Stub) -> None:
    at = [WeeklySlot(day_of_week=DAY_OF_WEEK_MONDAY, hour=hour, minute=minute) for hour, minute in TIMES_OF_MONDAY]
    await stub.PutAccountSchedule(put(weekly_slots=at, send_window=OFFICE_HOURS))
    inside = find(after=MONDAY, count=3, inside_send_window_only=True)
    found = await stub.FindSlotTimes(inside)
    shown = [(time.local_date, time.local_time, time.outside_send_window) for time in found.slot_times]
    assert shown == [
        ("2026-03-02", "09:00", False),
        ("2026-03-02", "17:59", False),
        ("2026-03-09", "09:00", False),
    ]
    assert (found.searched_until, found.none_inside_send_window) == (found.slot_times[-1].time, False)
    await stub.PutAccountSchedule(put(weekly_slots=at, send_window=None))
    assert [time.local_time for time in (await stub.FindSlotTimes(inside)).slot_times] == ["08:59", "09:00", "17:59"]


async def test_a_window_without_weekly_slots_in_it_leaves_no_time(stub: Stub) -> None:
    at_noon = WeeklySlot(day_of_week=DAY_OF_WEEK_SUNDAY, hour=12)
    await stub.PutAccountSchedule(put(weekly_slots=[at_noon], send_window=OFFICE_HOURS))
    found = await stub.FindSlotTimes(find(after=MONDAY, inside_send_window_only=True))
    assert (list(found.slot_times), found.none_inside_send_window) == ([], True)
    assert found.searched_until.ToDatetime(UTC) == MONDAY + timedelta(days=730)
    await stub.PutAccountSchedule(put(send_window=OFFICE_HOURS))
    assert not (await stub.FindSlotTimes(find(after=MONDAY))).none_inside_send_window


async def test_without_a_window_no_time_lies_outside_it(stub: Stub) -> None:
    await stub.PutAccountSchedule(put(weekly_slots=[NINE]))
    assert not (await stub.FindSlotTimes(find(count=1))).slot_times[0].outside_send_window


async def test_a_shifted_time_shows_the_nominal_time(stub: Stub) -> None:
    late = WeeklySlot(day_of_week=DAY_OF_WEEK_SUNDAY, hour=2, minute=30)
    window = SendWindow(days_of_week=[DAY_OF_WEEK_SUNDAY], start=LocalTime(hour=2), end=LocalTime(hour=3))
    await stub.PutAccountSchedule(put(weekly_slots=[late], send_window=window))
    in_gap, later = (await stub.FindSlotTimes(find(after=datetime(2026, 3, 28, tzinfo=UTC), count=2))).slot_times
    assert in_gap.time.ToDatetime(UTC) == datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    assert (in_gap.local_date, in_gap.local_time, in_gap.nominal_local_time, in_gap.shifted) == (
        "2026-03-29",
        "03:30",
        "2026-03-29T02:30",
        True,
    )
    # The window is compared with the wall-clock time.
    assert in_gap.outside_send_window
    assert (later.nominal_local_time, later.shifted, later.outside_send_window) == ("2026-04-05T02:30", False, False)


async def test_a_disabled_schedule_is_shown_as_disabled(stub: Stub) -> None:
    await stub.PutAccountSchedule(put(weekly_slots=[NINE], enabled=False))
    found = await stub.FindSlotTimes(find(after=MONDAY))
    assert (list(found.slot_times), found.enabled, found.schedule_version) == ([], False, 1)
    assert found.searched_until.ToDatetime(UTC) == MONDAY + timedelta(days=730)


async def test_a_range_is_exact_to_the_nanosecond(stub: Stub) -> None:
    await stub.PutAccountSchedule(put(weekly_slots=[NINE]))
    nine = Timestamp(seconds=int(MONDAY.timestamp()) + 8 * 3600)
    just_after = Timestamp(seconds=nine.seconds, nanos=1)
    day_after = Timestamp(seconds=nine.seconds + 86_400)
    assert len((await stub.FindSlotTimes(find(after=nine, before=day_after))).slot_times) == 1
    assert len((await stub.FindSlotTimes(find(after=just_after, before=day_after))).slot_times) == 0
    assert len((await stub.FindSlotTimes(find(after=MONDAY, before=nine))).slot_times) == 0
    assert len((await stub.FindSlotTimes(find(after=MONDAY, before=just_after))).slot_times) == 1


@pytest.mark.parametrize("year", [3, 1900, 1999, 2037, 2500, 9995])
async def test_any_past_or_future_instant_can_be_searched(stub: Stub, year: int) -> None:
    await stub.PutAccountSchedule(put(weekly_slots=[NINE]))
    after = datetime(year, 1, 1, tzinfo=UTC)
    (time,) = (await stub.FindSlotTimes(find(after=after, count=1))).slot_times
    assert timedelta() <= time.time.ToDatetime(UTC) - after < timedelta(days=7)
    assert time.local_time == "09:00"


async def test_a_range_may_end_at_the_end_of_the_calendar(stub: Stub) -> None:
    await stub.PutAccountSchedule(put(weekly_slots=[NINE]))
    end_of_time = Timestamp(seconds=253_402_300_799, nanos=999_999_999)
    assert len((await stub.FindSlotTimes(find(before=end_of_time))).slot_times) == 10


async def test_a_repeated_put_gets_the_same_answer(stub: Stub) -> None:
    first = await stub.PutAccountSchedule(put("r1"))
    await stub.PutAccountSchedule(put("r2", name="other"))
    assert await stub.PutAccountSchedule(put("r1")) == first
    assert (await fault_of(stub.PutAccountSchedule(put("r1", name="third")))).reason == "REQUEST_ID_REUSED"


async def test_a_stale_etag_is_aborted_and_changes_nothing(stub: Stub, announced: list[Event]) -> None:
    first = (await stub.PutAccountSchedule(put())).account_schedule
    second = (await stub.PutAccountSchedule(put(name="other", etag=first.etag))).account_schedule
    fault = await fault_of(stub.PutAccountSchedule(put(name="third", etag=first.etag)))
    assert isinstance(fault, Conflict)
    assert fault.reason == "ETAG_MISMATCH"
    assert len(announced) == 2
    assert (await stub.PutAccountSchedule(put(name="other", etag=second.etag))).account_schedule == second


async def test_output_only_fields_are_ignored(stub: Stub) -> None:
    answer = await stub.PutAccountSchedule(put(version=41, create_time=MONDAY, update_time=MONDAY))
    assert answer.account_schedule.version == 1
    assert answer.account_schedule.create_time.ToDatetime(UTC) != MONDAY


async def test_an_account_without_a_schedule_is_not_found(stub: Stub) -> None:
    await stub.PutAccountSchedule(put())
    for request in (find(social_account_id="other"), find(organization_id="umbrella")):
        fault = await fault_of(stub.FindSlotTimes(request))
        assert isinstance(fault, NotFound)
        assert fault.reason == "SCHEDULE_NOT_FOUND"


@pytest.mark.parametrize("zone", ["Europe/berlin", "localtime", "right/UTC", "../Europe/Berlin", "Factory", "EST5EDT4"])
async def test_an_unknown_zone_is_named_with_its_field(stub: Stub, zone: str) -> None:
    fault = await fault_of(stub.PutAccountSchedule(put(time_zone=zone)))
    assert isinstance(fault, InvalidRequest)
    assert fault.reason == "UNKNOWN_TIME_ZONE"
    assert [violation.field for violation in fault.violations] == ["account_schedule.time_zone"]
    assert zone in fault.message


async def test_a_misspelt_zone_is_refused_with_the_right_spelling(stub: Stub) -> None:
    assert "Europe/Berlin" in (await fault_of(stub.PutAccountSchedule(put(time_zone="europe/berlin")))).message


@pytest.mark.parametrize(
    ("fields", "at_fault"),
    [
        ({"social_account_id": ""}, "account_schedule.social_account_id"),
        ({"social_account_id": "a/b"}, "account_schedule.social_account_id"),
        ({"time_zone": ""}, "account_schedule.time_zone"),
        ({"time_zone": "x" * 300}, "account_schedule.time_zone"),
        ({"name": "x" * 201}, "account_schedule.name"),
        ({"name": "a\0b"}, "account_schedule.name"),
        ({"max_posts_per_day": -1}, "account_schedule.max_posts_per_day"),
        ({"weekly_slots": [NINE, NINE]}, "account_schedule.weekly_slots[1]"),
        (
            {"weekly_slots": [NINE, WeeklySlot(day_of_week=DAY_OF_WEEK_MONDAY, hour=9, category_id="news")]},
            "account_schedule.weekly_slots[1]",
        ),
        (
            {"weekly_slots": [WeeklySlot(day_of_week=DAY_OF_WEEK_MONDAY, category_id="the news")]},
            "account_schedule.weekly_slots[0].category_id",
        ),
        ({"weekly_slots": [NINE] * 501}, "account_schedule.weekly_slots"),
        (
            {"weekly_slots": [WeeklySlot(day_of_week=DAY_OF_WEEK_UNSPECIFIED)]},
            "account_schedule.weekly_slots[0].day_of_week",
        ),
        (
            {"weekly_slots": [WeeklySlot(day_of_week=8)]},  # type: ignore[arg-type]
            "account_schedule.weekly_slots[0].day_of_week",
        ),
        (
            {"weekly_slots": [WeeklySlot(day_of_week=DAY_OF_WEEK_MONDAY, hour=24)]},
            "account_schedule.weekly_slots[0].hour",
        ),
        (
            {"weekly_slots": [WeeklySlot(day_of_week=DAY_OF_WEEK_MONDAY, minute=-1)]},
            "account_schedule.weekly_slots[0].minute",
        ),
        ({"send_window": SendWindow()}, "account_schedule.send_window.days_of_week"),
        (
            {"send_window": window(DAY_OF_WEEK_MONDAY, DAY_OF_WEEK_UNSPECIFIED)},
            "account_schedule.send_window.days_of_week[1]",
        ),
        ({"send_window": window(8)}, "account_schedule.send_window.days_of_week[0]"),
        (
            {"send_window": window(DAY_OF_WEEK_MONDAY, DAY_OF_WEEK_SUNDAY, DAY_OF_WEEK_MONDAY)},
            "account_schedule.send_window.days_of_week[2]",
        ),
        ({"send_window": window(*range(8))}, "account_schedule.send_window.days_of_week"),
        ({"send_window": window(1, start=LocalTime(hour=24))}, "account_schedule.send_window.start.hour"),
        ({"send_window": window(1, start=LocalTime(minute=60))}, "account_schedule.send_window.start.minute"),
        ({"send_window": window(1, end=LocalTime(hour=24))}, "account_schedule.send_window.end.hour"),
        ({"send_window": window(1, end=LocalTime(minute=-1))}, "account_schedule.send_window.end.minute"),
        ({"send_window": window(1, end=LocalTime())}, "account_schedule.send_window.end"),
        (
            {"send_window": window(1, start=LocalTime(hour=9), end=LocalTime(hour=9))},
            "account_schedule.send_window.end",
        ),
        (
            {"send_window": window(1, start=LocalTime(hour=9), end=LocalTime(hour=8, minute=59))},
            "account_schedule.send_window.end",
        ),
        ({"min_spacing": Duration(seconds=-1)}, "account_schedule.min_spacing"),
        ({"min_spacing": Duration(seconds=86_401)}, "account_schedule.min_spacing"),
        ({"min_spacing": Duration(nanos=500_000_000)}, "account_schedule.min_spacing"),
        ({"min_spacing": Duration(seconds=360, nanos=1)}, "account_schedule.min_spacing"),
        ({"min_spacing": Duration(seconds=1, nanos=-1)}, "account_schedule.min_spacing"),
        ({"max_posts_per_day": 10_001}, "account_schedule.max_posts_per_day"),
        ({"etag": "x" * 65}, "account_schedule.etag"),
    ],
)
async def test_a_bad_schedule_is_refused_by_field(
    stub: Stub, announced: list[Event], fields: dict[str, Any], at_fault: str
) -> None:
    fault = await fault_of(stub.PutAccountSchedule(put(**fields)))
    assert isinstance(fault, InvalidRequest)
    assert at_fault in [violation.field for violation in fault.violations]
    assert announced == []


@pytest.mark.parametrize(
    ("fields", "at_fault"),
    [
        ({"organization_id": ""}, "organization_id"),
        ({"social_account_id": ""}, "social_account_id"),
        ({"count": -1}, "count"),
        ({"count": 1001}, "count"),
        ({"after": MONDAY, "before": MONDAY}, "before"),
        ({"after": MONDAY, "before": MONDAY - timedelta(days=1)}, "before"),
        ({"before": MONDAY - timedelta(days=9000)}, "before"),
        ({"after": Timestamp(seconds=253_402_300_800)}, "after"),
        ({"before": Timestamp(nanos=-1)}, "before"),
        ({"category_id": "news"}, "category_id"),
        ({"of_category_only": True, "category_id": "the news"}, "category_id"),
        ({"after": datetime(1, 1, 1, tzinfo=UTC)}, "after"),
        ({"after": datetime(9999, 12, 31, tzinfo=UTC)}, "after"),
    ],
)
async def test_a_bad_search_is_refused_by_field(stub: Stub, fields: dict[str, Any], at_fault: str) -> None:
    await stub.PutAccountSchedule(put())
    fault = await fault_of(stub.FindSlotTimes(find(**fields)))
    assert isinstance(fault, InvalidRequest)
    assert [violation.field for violation in fault.violations] == [at_fault]


async def test_putting_without_a_schedule_is_refused(stub: Stub) -> None:
    fault = await fault_of(stub.PutAccountSchedule(PutAccountScheduleRequest(organization_id="acme")))
    assert isinstance(fault, InvalidRequest)
    assert [violation.field for violation in fault.violations] == ["account_schedule"]


async def test_a_request_over_the_limit_is_refused(stub: Stub) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await stub.PutAccountSchedule(put(name="x" * 300_000))
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
