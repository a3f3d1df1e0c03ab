"""Putting account schedules: what is stored, announced, refused and remembered."""

import asyncio
from dataclasses import replace
from datetime import time, timedelta
from typing import TYPE_CHECKING

import pytest
from google.protobuf.duration_pb2 import Duration
from sqlalchemy import text

from civil.windows import SendWindow
from civil.zones import find_zone, tzdata_version, zone_data
from postflow.schedule.v1.account_schedule_pb2 import LocalTime
from servicekit.faults import Conflict, InvalidField

if TYPE_CHECKING:
    from tests.usecase.schedule_service.calendars.conftest import Schedules


async def test_a_new_schedule_is_stored_and_announced_in_full(schedules: "Schedules") -> None:
    schedule = await schedules.put()
    assert schedule.version == 1
    assert schedule.create_time == schedule.update_time
    assert (schedule.name, schedule.time_zone, schedule.max_posts_per_day) == ("Default queue", "America/New_York", 2)
    assert [(slot.day_of_week, slot.hour, slot.minute) for slot in schedule.weekly_slots] == [
        (7, 0, 0),
        (1, 9, 0),
        (6, 23, 59),
    ]
    assert list(schedule.send_window.days_of_week) == [7, 1, 6]
    assert schedule.send_window.start == LocalTime(hour=8, minute=30)
    assert not schedule.send_window.HasField("end")
    assert schedule.min_spacing == Duration(seconds=360)
    assert schedule.tzdata_version == tzdata_version()
    assert schedules.announced.schedules == [schedule]
    assert schedules.announced.subjects == ["events.schedule.account_schedule"]
    assert await schedules.get() == schedule


async def test_a_replacement_keeps_the_create_time_and_gets_a_new_version(schedules: "Schedules") -> None:
    first = await schedules.put()
    second = await schedules.put(replace(schedules.timetable, enabled=False))
    assert second.version == 2
    assert not second.enabled
    assert second.create_time == first.create_time
    assert second.update_time.ToNanoseconds() > first.update_time.ToNanoseconds()
    assert schedules.announced.schedules == [first, second]
    assert await schedules.get() == second


@pytest.mark.parametrize("end", [time(8, 31), time(23, 59), None])
async def test_a_window_is_stored_to_the_minute(schedules: "Schedules", end: time | None) -> None:
    window = SendWindow(days=frozenset({0, 3}), start=time(8, 30), end=end)
    put = await schedules.put(replace(schedules.timetable, send_window=window))
    assert (await schedules.get()).send_window == put.send_window
    assert put.send_window.end == (LocalTime(hour=end.hour, minute=end.minute) if end else LocalTime())
    assert put.send_window.HasField("end") == (end is not None)


async def test_a_window_and_a_spacing_can_be_removed(schedules: "Schedules") -> None:
    await schedules.put()
    await schedules.put(replace(schedules.timetable, send_window=None, min_spacing=timedelta()))
    bare = await schedules.get()
    assert (bare.HasField("send_window"), bare.HasField("min_spacing")) == (False, False)


async def test_categories_are_announced_and_need_their_weekly_slots(schedules: "Schedules") -> None:
    sunday, _, saturday = schedules.timetable.weekly_slots
    kept = replace(schedules.timetable, categories={sunday: "news", saturday: "sport"})
    await schedules.put(kept)
    [announced] = schedules.announced.schedules
    assert [slot.category_id for slot in announced.weekly_slots] == ["news", "", "sport"]
    # The release before knows no categories.
    async with schedules.database.statement() as connection:
        await connection.execute(text("update account_schedule set weekly_slots = weekly_slots[2:3]"))
    assert [slot.category_id for slot in (await schedules.get()).weekly_slots] == ["", "sport"]
    await schedules.put()
    assert not any(slot.category_id for slot in (await schedules.get()).weekly_slots)


async def test_the_same_schedule_is_neither_changed_nor_announced_again(schedules: "Schedules") -> None:
    first = await schedules.put()
    assert await schedules.put() == first
    assert await schedules.put(etag=first.etag) == first
    assert schedules.announced.schedules == [first]


async def test_a_stale_etag_is_refused(schedules: "Schedules") -> None:
    other = replace(schedules.timetable, enabled=False)
    first = await schedules.put()
    second = await schedules.put(other, etag=first.etag)
    with pytest.raises(Conflict) as refusal:
        await schedules.put(etag=first.etag)
    assert refusal.value.reason == "ETAG_MISMATCH"
    assert await schedules.get() == second
    assert len(schedules.announced.events) == 2


async def test_an_etag_without_a_schedule_is_refused(schedules: "Schedules") -> None:
    with pytest.raises(Conflict):
        await schedules.put(etag="0123456789abcdef")
    assert (await schedules.put()).version == 1
    assert len(schedules.announced.events) == 1


async def test_the_zone_of_a_schedule_is_recorded(schedules: "Schedules") -> None:
    await schedules.put()
    await schedules.put(replace(schedules.timetable, zone=find_zone("Europe/Berlin")))
    async with schedules.database.read() as connection:
        rows = await connection.execute(text("select tzdata_version, time_zone, data from zone_data order by 2"))
        assert [tuple(row) for row in rows] == [
            (tzdata_version(), name, zone_data(name)) for name in ("America/New_York", "Europe/Berlin")
        ]


async def test_a_repeated_put_gets_the_first_answer(schedules: "Schedules") -> None:
    other = replace(schedules.timetable, enabled=False)
    first = await schedules.put(request_id="r1", digest=b"one")
    await schedules.put(other)
    assert await schedules.put(request_id="r1", digest=b"one") == first
    assert len(schedules.announced.events) == 2
    assert (await schedules.put(other)).version == 2


async def test_a_request_id_is_valid_for_one_request_only(schedules: "Schedules") -> None:
    await schedules.put(request_id="r1", digest=b"one")
    with pytest.raises(InvalidField) as refusal:
        await schedules.put(request_id="r1", digest=b"another")
    assert refusal.value.reason == "REQUEST_ID_REUSED"


async def test_a_refusal_is_not_remembered(schedules: "Schedules") -> None:
    with pytest.raises(Conflict):
        await schedules.put(etag="0123456789abcdef", request_id="r1")
    assert (await schedules.put(request_id="r1")).version == 1


async def test_concurrent_puts_are_serialized(schedules: "Schedules") -> None:
    names = [f"queue {number}" for number in range(8)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(schedules.put(replace(schedules.timetable, name=name))) for name in names]
    announced = schedules.announced.schedules
    assert sorted(task.result().version for task in tasks) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert sorted(schedule.version for schedule in announced) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert await schedules.get() == max(announced, key=lambda schedule: schedule.version)
