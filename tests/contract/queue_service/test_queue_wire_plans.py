"""Plans on the wire, and the slot times of a planned schedule: those that Schedule would answer with."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from civil.weekly import WeeklySlot
from civil.windows import SendWindow
from civil.zones import find_zone, zone_names
from postflow.queue.v1.queue_service_pb2 import PlannedMove as PlannedMoveMessage
from postflow.queue.v1.queue_service_pb2 import PlanQueueRequest
from postflow.schedule.v1.schedule_service_pb2 import FindSlotTimesRequest
from queue_service.domain.moving import ToTop
from queue_service.domain.planned_change import (
    PlannedAdditions,
    PlannedChange,
    PlannedClearing,
    PlannedInFront,
    PlannedMove,
    PlannedPause,
    PlannedRemoval,
    PlannedResumption,
    PlannedSchedule,
    PlannedShuffle,
)
from queue_service.domain.planning import Plan, PlannedSlot
from queue_service.domain.reordering import Order
from queue_service.domain.rescheduling import first_times
from queue_service.domain.resuming import OverduePolicy
from queue_service.domain.seat import seat_at
from queue_service.domain.slot import SlotOrigin
from queue_service.wire.plans import plan_queue_response, planned_change
from queue_service.wire.schedules import slot_times, timetable
from schedule_service.domain.calendars import slot_times as schedules_times
from schedule_service.domain.calendars.account_schedule import Timetable, created
from schedule_service.wire import account_schedules
from servicekit.timestamps import timestamp

NOW = datetime(2026, 3, 2, 9, 0, 0, 123456, tzinfo=UTC)
HORIZON = timedelta(days=730)
MONDAY = {"day_of_week": "DAY_OF_WEEK_MONDAY", "hour": 9, "category_id": "news"}
SUNDAY = {"day_of_week": "DAY_OF_WEEK_SUNDAY", "minute": 30}

slots = st.builds(WeeklySlot, day=st.integers(0, 6), hour=st.integers(0, 23), minute=st.integers(0, 59))
starts = st.datetimes(datetime(2026, 1, 1), datetime(2028, 1, 1)).map(lambda time: time.replace(tzinfo=UTC))

windows = st.builds(
    lambda days, start, hours: SendWindow(
        days=days, start=time(start), end=time(start + hours) if start + hours < 24 else None
    ),
    st.frozensets(st.integers(0, 6), min_size=1),
    st.integers(0, 23),
    st.integers(1, 24),
)


@st.composite
def timetables(draw: st.DrawFn) -> Timetable:
    weekly = draw(st.lists(slots, unique=True, max_size=20).map(sorted).map(tuple))
    return Timetable(
        name="",
        zone=find_zone(draw(st.sampled_from(sorted(zone_names())))),
        weekly_slots=weekly,
        categories={slot: "news" for slot in weekly if draw(st.booleans())},
        max_posts_per_day=3,
        enabled=True,
        send_window=draw(st.none() | windows),
    )


@given(timetables(), starts, st.sampled_from(["", "news"]), st.integers(1, 200))
def test_planned_times_are_those_of_schedule(saved: Timetable, start: datetime, category: str, count: int) -> None:
    schedule = created("acme", "page", saved, now=start)
    asked = FindSlotTimesRequest(
        after=timestamp(start),
        before=timestamp(start + HORIZON),
        count=count,
        of_category_only=True,
        category_id=category,
        inside_send_window_only=True,
    )
    search = schedules_times.search(
        after=start, before=start + HORIZON, count=count, category_id=category, inside_window_only=True, now=start
    )
    found = schedules_times.slot_times(saved, search)
    answer = slot_times(asked, asyncio.run(account_schedules.find_slot_times_response(schedule, found)))
    read = timetable(account_schedules.shown(schedule))
    planned = first_times(read, category, 1, start=start, end=start + HORIZON, count=count)
    assert planned == replace(answer, schedule=None)
    assert (read.time_zone, read.max_posts_per_day, read.enabled) == (saved.zone.name, 3, True)


@pytest.mark.parametrize(
    ("request_", "change"),
    [
        ({"add": {"count": 2, "category_id": "news"}}, PlannedAdditions(count=2, category="news")),
        ({"add": {"count": 2, "place": "QUEUE_PLACE_FRONT"}}, PlannedInFront(count=2)),
        ({"schedule": {}}, PlannedSchedule()),
        (
            {"schedule": {"weekly_slots": [MONDAY, SUNDAY], "time_zone": "UTC", "max_posts_per_day": 0}},
            PlannedSchedule(
                weekly_slots={WeeklySlot(day=1, hour=9, minute=0): "news", WeeklySlot(day=0, hour=0, minute=30): ""},
                time_zone="UTC",
                max_posts_per_day=0,
            ),
        ),
        ({"reorder": {"slot_ids": ["a", "b"]}}, Order(slot_ids=("a", "b"))),
        ({"clear": True}, PlannedClearing()),
        ({"shuffle": {"seed": 7}}, PlannedShuffle(seed=7)),
        ({"pause": {"until": timestamp(NOW)}}, PlannedPause(until=NOW, overdue=OverduePolicy.RESCHEDULE)),
        ({"resume": "OVERDUE_POLICY_CANCEL"}, PlannedResumption(overdue=OverduePolicy.CANCEL)),
        ({"remove": {"slot_id": "a", "close_gap": True}}, PlannedRemoval(slot_id="a", close_gap=True)),
        (
            {"move": PlannedMoveMessage(slot_id="a", to_top=True)},
            PlannedMove(slot_id="a", destination=ToTop()),
        ),
    ],
)
def test_a_change_is_read(request_: dict[str, object], change: PlannedChange) -> None:
    assert planned_change(PlanQueueRequest(**request_)) == change  # type: ignore[arg-type]


def test_a_plan_is_written_with_all_its_slots() -> None:
    seat = seat_at(NOW, SlotOrigin.EXACT, "Asia/Tokyo", tzdata_version="")
    unknown = seat_at(NOW, SlotOrigin.EXACT, "Mars/Olympus", tzdata_version="")
    touched = [
        PlannedSlot("a", "d1", NOW - HORIZON, seat),
        PlannedSlot("", "", None, unknown),
        PlannedSlot("b", "d2", NOW, None),
    ]
    plan = Plan(slots=tuple(touched * 400), unchanged=4, etag="7", time=NOW)
    written = asyncio.run(plan_queue_response(plan))
    assert (written.unchanged_slots, written.etag, written.plan_time) == (4, "7", timestamp(NOW))
    assert len(written.slots) == 1200
    shown = [(each.slot_id, each.draft_id, each.local_time) for each in written.slots[:3]]
    assert shown == [("a", "d1", "2026-03-02T18:00"), ("", "", ""), ("b", "d2", "")]
    assert [each.HasField("previous_time") for each in written.slots[:3]] == [True, False, True]
    assert [each.HasField("schedule_time") for each in written.slots[:3]] == [True, True, False]
