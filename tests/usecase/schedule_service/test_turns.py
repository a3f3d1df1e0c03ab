"""Work that takes long gives others their turn: who waits for the event loop gets it between two pieces."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import pairwise

import pytest
from sqlalchemy import text

from civil.weekly import WeeklySlot
from civil.zones import find_zone, zone_data, zone_from_data, zone_names
from schedule_service.adapters.postgres.zone_data import recorded_zones
from schedule_service.application.zone_changes.compared_releases import current_zones
from schedule_service.domain.calendars.account_schedule import Timetable, created
from schedule_service.domain.calendars.slot_times import search, slot_times
from schedule_service.domain.zone_release import ZoneRelease
from schedule_service.wire.account_schedules import find_slot_times_response
from servicekit.pg.database import Database
from testkit.clocks import START

ZONES = sorted(zone_names())[:60]


@asynccontextmanager
async def bystander(progress: Callable[[], int]) -> AsyncIterator[list[int]]:
    """What it sees of the progress, which is counted, at each of its turns."""
    seen: list[int] = [progress()]

    async def look() -> None:
        while True:
            seen.append(progress())
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        looking = group.create_task(look())
        yield seen
        seen.append(progress())
        looking.cancel()


def longest_stretch(seen: list[int]) -> int:
    return max(after - before for before, after in pairwise(seen))


async def test_zones_are_read_one_at_a_time() -> None:
    async with bystander(lambda: sum(find_zone.cache_info()[:2])) as seen:
        found = await current_zones(ZoneRelease("2024a", name) for name in ZONES)
    assert [zone.name for zone in found] == ZONES
    assert longest_stretch(seen) == 1


async def test_recorded_zones_are_read_one_at_a_time(schedule_database: Database) -> None:
    laws = [ZoneRelease("2024a", name) for name in ZONES]
    statement = text("insert into zone_data values ('2024a', :zone, :law)")
    async with schedule_database.transaction() as tx:
        for name in ZONES:
            law = zone_data(name).replace(b"LMT", b"XYZ")
            await tx.connection.execute(statement, {"zone": name, "law": law})
    async with schedule_database.read() as connection, bystander(lambda: sum(zone_from_data.cache_info()[:2])) as seen:
        found = await recorded_zones(connection, laws)
    assert found.keys() == set(laws)
    assert longest_stretch(seen) == 1


@pytest.mark.parametrize(("count", "turns"), [(64, 0), (100, 0), (101, 1), (1000, 9)])
async def test_a_long_answer_is_written_in_pieces(count: int, turns: int) -> None:
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


def test_a_process_lets_its_event_loop_go_before_a_computing_thread() -> None:
    program = "import sys; from schedule_service.main import main; main(); print(sys.getswitchinterval())"
    unset = {name: value for name, value in os.environ.items() if not name.startswith("POSTFLOW_")}
    done = subprocess.run([sys.executable, "-c", program], env=unset, check=True, capture_output=True, text=True)
    assert float(done.stdout) < 0.001
