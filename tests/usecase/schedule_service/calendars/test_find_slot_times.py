"""Slot times of stored schedules, as callers see them."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from civil.weekly import WeeklySlot
from civil.zones import find_zone, tzdata_version
from postflow.schedule.v1.schedule_service_pb2 import FindSlotTimesResponse
from schedule_service.adapters.postgres.account_schedules import save_schedule
from schedule_service.application.calendars.find_slot_times import FindSlotTimes
from schedule_service.domain.calendars.account_schedule import Edition, Timetable, created
from schedule_service.domain.calendars.slot_times import search, slot_times
from schedule_service.wire.account_schedules import find_slot_times_response
from servicekit.faults import NotFound
from servicekit.pg.database import Database
from testkit.clocks import START
from testkit.database_clocks import FrozenDatabaseClock

if TYPE_CHECKING:
    from tests.usecase.schedule_service.conftest import Bystander


Find: TypeAlias = Callable[..., Awaitable[FindSlotTimesResponse]]
NOW = datetime(2024, 3, 9, 12, 0, tzinfo=UTC)
"""The Saturday before clocks go forward in New York."""


@pytest.fixture
async def find(database: Database) -> Find:
    timetable = Timetable(
        name="",
        zone=find_zone("America/New_York"),
        weekly_slots=tuple(WeeklySlot(day=0, hour=hour, minute=30) for hour in (1, 2)),
        max_posts_per_day=0,
        enabled=True,
    )
    async with database.transaction() as tx:
        await save_schedule(tx.connection, created("acme", "page", timetable, now=NOW))
    find_slot_times = FindSlotTimes(database=database, clock=FrozenDatabaseClock(NOW))

    async def find(**arguments: Any) -> FindSlotTimesResponse:
        return await find_slot_times_response(*await find_slot_times(**arguments))

    return find


async def test_times_come_with_their_wall_clock_times(find: Find) -> None:
    answer = await find(organization_id="acme", social_account_id="page", after=None, before=None, count=2)
    before_gap, in_gap = answer.slot_times
    assert before_gap.time.ToDatetime(UTC) == datetime(2024, 3, 10, 6, 30, tzinfo=UTC)
    assert (before_gap.local_date, before_gap.local_time) == ("2024-03-10", "01:30")
    assert (before_gap.utc_offset_seconds, before_gap.shifted) == (-18000, False)
    assert in_gap.time.ToDatetime(UTC) == datetime(2024, 3, 10, 7, 30, tzinfo=UTC)
    assert (in_gap.local_date, in_gap.local_time) == ("2024-03-10", "03:30")
    assert (in_gap.utc_offset_seconds, in_gap.shifted) == (-14400, True)
    assert (answer.time_zone, answer.schedule_version) == ("America/New_York", 1)
    assert answer.searched_until == in_gap.time


async def test_an_empty_range_shows_how_far_it_was_searched(find: Find) -> None:
    before = NOW + timedelta(hours=3)
    answer = await find(organization_id="acme", social_account_id="page", after=NOW, before=before, count=10)
    assert not answer.slot_times
    assert answer.searched_until.ToDatetime(UTC) == before


async def test_a_caller_that_knows_the_current_edition_gets_no_times(find: Find) -> None:
    async def ask(version: int, release: str) -> FindSlotTimesResponse:
        known = Edition(version, release)
        return await find(
            organization_id="acme", social_account_id="page", after=None, before=None, count=2, known=known
        )

    all_times = await ask(0, "")
    assert (len(all_times.slot_times), all_times.unchanged) == (2, False)
    assert await ask(1, tzdata_version()) == FindSlotTimesResponse(
        schedule_version=1, tzdata_version=tzdata_version(), unchanged=True
    )
    for other in ((2, tzdata_version()), (0, tzdata_version()), (1, "2024a"), (1, "")):
        assert await ask(*other) == all_times


@pytest.mark.parametrize(("organization_id", "social_account_id"), [("acme", "other"), ("umbrella", "page")])
async def test_an_account_without_a_schedule_is_not_found(
    find: Find, organization_id: str, social_account_id: str
) -> None:
    with pytest.raises(NotFound) as refusal:
        await find(
            organization_id=organization_id, social_account_id=social_account_id, after=None, before=None, count=1
        )
    assert refusal.value.reason == "SCHEDULE_NOT_FOUND"


@pytest.mark.parametrize(("count", "turns"), [(64, 0), (100, 0), (101, 1), (1000, 9)])
async def test_a_long_response_is_encoded_in_pieces(bystander: "Bystander", count: int, turns: int) -> None:
    hourly = tuple(WeeklySlot(day=day, hour=hour, minute=0) for day in range(7) for hour in range(24))
    timetable = Timetable(
        name="", zone=find_zone("Europe/Berlin"), weekly_slots=hourly, max_posts_per_day=0, enabled=True
    )
    schedule = created("acme", "page", timetable, now=START)
    wanted = search(after=START, before=START + timedelta(days=100), count=count, now=START)
    async with bystander(lambda: 0) as seen:
        await asyncio.sleep(0)
        seen.clear()
        answer = await find_slot_times_response(schedule, slot_times(schedule.timetable, wanted))
        assert len(seen) == turns
    assert len(answer.slot_times) == count
