"""Queue's questions to Schedule: for the times of one category, and for a whole schedule."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from typing import Any, NoReturn

import pytest

from civil import weekly, windows
from civil.zones import tzdata_version
from postflow.schedule.v1.account_schedule_pb2 import AccountSchedule, LocalTime, SendWindow, SlotTime, WeeklySlot
from postflow.schedule.v1.schedule_service_pb2 import (
    FindSlotTimesRequest,
    FindSlotTimesResponse,
    GetAccountScheduleRequest,
    GetAccountScheduleResponse,
)
from postflow.schedule.v1.schedule_service_pb2_grpc import (
    ScheduleServiceServicer,
    add_ScheduleServiceServicer_to_server,
)
from queue_service.adapters.schedule_client import ScheduleClient
from queue_service.domain.account import AccountQueue
from queue_service.domain.rescheduling import Timetable
from servicekit.faults import NotFound
from servicekit.ids import Uuid7Source
from servicekit.rpc import RpcServer, open_channel
from servicekit.timestamps import timestamp

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
QUEUE = AccountQueue(social_account_id="page", schedule_version=1, tzdata_version=tzdata_version())
# Of no category, for news, for sport.
HOURS = {"": 1, "news": 2, "sport": 3}


@dataclass
class Schedule(ScheduleServiceServicer):
    """Knows one time of each category on each day."""

    asked: list[FindSlotTimesRequest] = field(default_factory=list)

    async def FindSlotTimes(self, request: FindSlotTimesRequest, context: Any) -> FindSlotTimesResponse:
        self.asked.append(request)
        if request.known_schedule_version:
            return FindSlotTimesResponse(schedule_version=1, tzdata_version=tzdata_version(), unchanged=True)
        times = [
            SlotTime(time=timestamp(NOW + timedelta(days=day, hours=hours)), category_id=category)
            for day in range(request.count)
            for category, hours in HOURS.items()
            if not request.of_category_only or request.category_id == category
        ]
        return FindSlotTimesResponse(
            slot_times=times[: request.count],
            time_zone="UTC",
            schedule_version=1,
            enabled=True,
            tzdata_version=tzdata_version(),
        )

    async def GetAccountSchedule(self, request: GetAccountScheduleRequest, context: Any) -> GetAccountScheduleResponse:
        if request.social_account_id != "page":
            raise NotFound("SCHEDULE_NOT_FOUND", "no schedule")
        return GetAccountScheduleResponse(
            account_schedule=AccountSchedule(
                social_account_id="page",
                weekly_slots=[
                    WeeklySlot(day_of_week="DAY_OF_WEEK_SUNDAY", hour=9, minute=30, category_id="news"),
                    WeeklySlot(day_of_week="DAY_OF_WEEK_SATURDAY", hour=10),
                ],
                time_zone="Asia/Tokyo",
                max_posts_per_day=3,
                enabled=True,
                send_window=SendWindow(
                    days_of_week=["DAY_OF_WEEK_SUNDAY", "DAY_OF_WEEK_MONDAY"], start=LocalTime(hour=8, minute=30)
                ),
            )
        )

    async def PutAccountSchedule(self, request: object, context: Any) -> NoReturn:
        raise AssertionError("Queue changes no schedule")

    ListAccountSchedules = DeleteAccountSchedule = CheckSendWindow = PutAccountSchedule
    CreateScheduleRule = GetScheduleRule = UpdateScheduleRule = DeleteScheduleRule = PutAccountSchedule
    ListScheduleRules = ListRuleTargets = PutAccountSchedule


@dataclass
class Rig:
    schedule: Schedule
    client: ScheduleClient

    async def hours(self, category_id: str | None) -> list[int]:
        found = await self.client.slot_times(
            "acme", QUEUE, start=NOW, horizon=NOW + timedelta(days=9), count=3, category_id=category_id
        )
        return [time.hour - NOW.hour for time in found.times]


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    schedule = Schedule()
    async with AsyncExitStack() as stack:
        servicers = [(add_ScheduleServiceServicer_to_server, schedule)]
        server = RpcServer(listen="127.0.0.1:0", servicers=servicers, ids=Uuid7Source())
        await server.start()
        await server.set_serving(serving=True)
        stack.push_async_callback(server.stop, 0.0)
        channel = await stack.enter_async_context(open_channel(f"127.0.0.1:{server.port}"))
        yield Rig(schedule, ScheduleClient(channel, cached_times=100))


async def test_times_are_asked_for_by_category(rig: Rig) -> None:
    assert await rig.hours(None) == [1, 2, 3]
    assert await rig.hours("news") == [2, 2, 2]
    assert await rig.hours("") == [1, 1, 1]
    assert [(each.of_category_only, each.category_id) for each in rig.schedule.asked] == [
        (False, ""),
        (True, "news"),
        (True, ""),
    ]
    assert all(each.inside_send_window_only for each in rig.schedule.asked)


async def test_times_are_cached_by_category(rig: Rig) -> None:
    for category in (None, "news", "", None, "news", "", "sport"):
        await rig.hours(category)
    assert [each.known_schedule_version for each in rig.schedule.asked] == [0, 0, 0, 1, 1, 1, 0]
    assert (await rig.hours("news"), await rig.hours(None)) == ([2, 2, 2], [1, 2, 3])


async def test_a_schedule_is_read_with_the_categories_of_its_weekly_slots(rig: Rig) -> None:
    assert await rig.client.timetable("acme", "page") == Timetable(
        weekly_slots={
            weekly.WeeklySlot(day=0, hour=9, minute=30): "news",
            weekly.WeeklySlot(day=6, hour=10, minute=0): "",
        },
        time_zone="Asia/Tokyo",
        max_posts_per_day=3,
        enabled=True,
        send_window=windows.SendWindow(days=frozenset({0, 1}), start=time(8, 30), end=None),
    )
    with pytest.raises(NotFound):
        await rig.client.timetable("acme", "other")


async def test_offered_times_are_those_of_all_categories(rig: Rig) -> None:
    end = NOW + timedelta(days=3)
    found = await rig.client.offered_times(("acme", "page"), NOW, end)
    assert [(each.time.hour - NOW.hour, each.category_id) for each in found[:3]] == [(1, ""), (2, "news"), (3, "sport")]
    [asked] = rig.schedule.asked
    assert (asked.after, asked.before, asked.of_category_only) == (timestamp(NOW), timestamp(end), False)
    assert (asked.known_schedule_version, asked.inside_send_window_only) == (0, False)
