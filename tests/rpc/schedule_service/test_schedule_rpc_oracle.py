"""Schedule's answers, compared with walks over the minutes of UTC that share no code with it: zones, dates around clock
changes, slots and windows at random."""

from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeAlias

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from postflow.schedule.v1.account_schedule_pb2 import AccountSchedule, LocalTime, SendWindow, SlotTime, WeeklySlot
from postflow.schedule.v1.schedule_service_pb2 import (
    CheckSendWindowRequest,
    FindSlotTimesRequest,
    PutAccountScheduleRequest,
)
from testkit.zones.wall_clock import DAY, WEEK, Shown, WallClock, clock, instant_of, moments, weekly_times

Stub: TypeAlias = "Any"

Window: TypeAlias = tuple[frozenset[int], int, int]
"""Days (0 is Sunday), first minute of the day, minute of the day at which it ends."""

ENOUGH = 16 * DAY
"""A window that opens once a week opens within this time, even if its day is skipped once."""

minutes_of_day = st.sampled_from([0, 1, 30, 59, 60, 90, 120, 150, 180, 540, 1080, 1380, 1410, 1439])
minutes_of_week = st.builds(lambda day, minute: day * DAY + minute, st.integers(0, 6), minutes_of_day)
windows = st.builds(
    lambda days, ends: (days, *sorted(ends)),
    st.frozensets(st.integers(0, 6), min_size=1),
    st.lists(minutes_of_day | st.just(DAY), min_size=2, max_size=2, unique=True),
)
some = settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])


def shows(window: Window | None, wall: int) -> bool:
    if window is None:
        return True
    days, start, end = window
    return (wall // DAY + 4) % 7 in days and start <= wall % DAY < end


def day_of_week(day: int) -> Any:
    return day or 7


def clock_time(minute: int) -> LocalTime:
    return LocalTime(hour=minute // 60, minute=minute % 60)


def window_message(window: Window) -> SendWindow:
    days, start, end = window
    return SendWindow(
        days_of_week=map(day_of_week, days),
        start=clock_time(start) if start else None,
        end=clock_time(end) if end < DAY else None,
    )


def slot_message(minute: int) -> WeeklySlot:
    day, at = divmod(minute, DAY)
    return WeeklySlot(day_of_week=day_of_week(day), hour=at // 60, minute=at % 60)


def wall_text(wall: int) -> tuple[str, str]:
    day, at = divmod(wall, DAY)
    return (date(1970, 1, 1) + timedelta(days=day)).isoformat(), f"{at // 60:02}:{at % 60:02}"


def slot_time(shown: Shown, window: Window | None) -> SlotTime:
    local_date, local_time = wall_text(shown.wall)
    return SlotTime(
        time=instant_of(shown.minute),
        local_date=local_date,
        local_time=local_time,
        utc_offset_seconds=(shown.wall - shown.minute) * 60,
        shifted=shown.wall != shown.nominal,
        outside_send_window=not shows(window, shown.wall),
        nominal_local_time="T".join(wall_text(shown.nominal)),
    )


def next_change(window: Window | None, zone: WallClock, minute: int) -> datetime | None:
    """Returns when the window opens or closes next; None: it never closes."""
    now = shows(window, zone.wall(minute))
    changed = (later for later in range(minute, minute + ENOUGH) if shows(window, zone.wall(later)) != now)
    found = next(changed, None)
    return None if found is None else instant_of(found)


async def put(stub: Stub, zone: str, slots: frozenset[int], window: Window | None) -> None:
    schedule = AccountSchedule(
        social_account_id="page",
        time_zone=zone,
        weekly_slots=map(slot_message, slots),
        send_window=window_message(window) if window else None,
    )
    await stub.PutAccountSchedule(PutAccountScheduleRequest(organization_id="acme", account_schedule=schedule))


async def check_times(stub: Stub, request: FindSlotTimesRequest, expected: list[SlotTime]) -> None:
    """Checks the answer, and the one to a question for half of the times."""
    found = await stub.FindSlotTimes(request)
    assert list(found.slot_times) == expected
    assert found.searched_until == request.before
    if expected:
        request.count = (len(expected) + 1) // 2
        half = await stub.FindSlotTimes(request)
        assert list(half.slot_times) == expected[: request.count]
        assert half.searched_until == half.slot_times[-1].time


@some
@given(
    moments(), st.frozensets(minutes_of_week, max_size=40), st.none() | windows, st.integers(1, 8 * DAY), st.booleans()
)
async def test_the_times_of_any_schedule(
    stub: Stub, moment: tuple[str, int], slots: frozenset[int], window: Window | None, length: int, inside_only: bool
) -> None:
    zone, after = moment
    every = [slot_time(shown, window) for shown in weekly_times(slots, clock(zone), after - 1, after + length - 1)]
    expected = [time for time in every if not (inside_only and time.outside_send_window)]
    await put(stub, zone, slots, window)
    request = FindSlotTimesRequest(
        organization_id="acme",
        social_account_id="page",
        after=instant_of(after),
        before=instant_of(after + length),
        count=1000,
        inside_send_window_only=inside_only,
    )
    await check_times(stub, request, expected)


@some
@given(moments(), st.none() | windows, st.integers(0, 59_999_999))
async def test_the_window_of_any_schedule(
    stub: Stub, moment: tuple[str, int], window: Window | None, microseconds: int
) -> None:
    """Checks any second: windows begin and end with a minute."""
    zone, minute = moment
    is_open, change = shows(window, clock(zone).wall(minute)), next_change(window, clock(zone), minute)
    await put(stub, zone, frozenset(), window)
    instant = instant_of(minute) + timedelta(microseconds=microseconds)
    answer = await stub.CheckSendWindow(
        CheckSendWindowRequest(organization_id="acme", social_account_id="page", time=instant)
    )
    assert answer.open is is_open
    assert answer.time.ToDatetime(UTC) == instant
    shown = answer.close_time if is_open else answer.open_time
    assert (answer.HasField("close_time"), answer.HasField("open_time")) == (
        is_open and change is not None,
        not is_open,
    )
    assert change is None or shown.ToDatetime(UTC) == change


def test_the_days_of_the_walk_are_those_of_the_calendar() -> None:
    assert (clock("UTC").wall(0) // DAY + 4) % 7 == datetime(1970, 1, 1, tzinfo=UTC).isoweekday() % 7
    assert slot_message(WEEK - 1) == WeeklySlot(day_of_week=day_of_week(6), hour=23, minute=59)
