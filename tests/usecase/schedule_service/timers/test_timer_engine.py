"""Two engines and concurrent calls on the same timers: each occurrence fires once and none is lost."""

import asyncio
import logging
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from postflow.schedule.v1.timer_pb2 import TIMER_STATE_FINISHED, TIMER_STATE_PAUSED
from schedule_service.domain.timers.timer import MisfirePolicy
from schedule_service.engine.timer_engine import TimerEngine
from servicekit.faults import Refused
from servicekit.pg.clock import DatabaseClock
from testkit.eventually import eventually

if TYPE_CHECKING:
    from tests.usecase.schedule_service.timers.conftest import Timers


TIMERS = [f"t{number}" for number in range(12)]
SECOND = timedelta(seconds=1)
SECONDS = 3


async def test_each_occurrence_fires_once_despite_interference(live_timers: "Timers") -> None:
    timers, chance = live_timers, random.Random(4)
    end = await now(timers) + SECONDS * SECOND
    first: dict[str, datetime] = {}
    for timer_id in TIMERS:
        made = await timers.create(
            timer_id,
            cron="@every 1s",
            repeat_until=end,
            misfire_policy=MisfirePolicy.FIRE_ALL,
            catch_up_interval=timedelta(0),
        )
        first[timer_id] = made.next_fire_time.ToDatetime(UTC)
    stop = asyncio.Event()
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        for _ in range(2):
            engine = TimerEngine(timers.jobs(), poll=SECOND / 20, batch=5, lock=10 * SECOND)
            group.create_task(engine.run(stop))
        manual = 0
        while await now(timers) < end:
            manual += await interfere(timers, chance)
        for timer_id in TIMERS:
            await eventually(lambda: has_finished(timers, timer_id), within=20)  # noqa: B023 - awaited here
        stop.set()
    fired: dict[str, list[str]] = defaultdict(list)
    for event in timers.fired.events:
        if not event.manual:
            fired[event.timer_id].append(event.occurrence_key)
    for timer_id in TIMERS:
        count = (end - first[timer_id]) // SECOND + 1
        due = [first[timer_id] + number * SECOND for number in range(count)]
        assert fired[timer_id] == [f"{each.replace(tzinfo=None).isoformat()}Z" for each in due]
    assert len([event for event in timers.fired.events if event.manual]) == manual
    assert sum([(await timers.get(timer_id)).fire_count for timer_id in TIMERS]) == len(timers.fired.events)


async def test_log_lines_about_a_timer_name_it(live_timers: "Timers", caplog: pytest.LogCaptureFixture) -> None:
    long_ago = datetime(2020, 1, 1, tzinfo=UTC)
    await live_timers.create("late", fire_time=long_ago, misfire_policy=MisfirePolicy.SKIP)
    engine, stop = TimerEngine(live_timers.jobs(), poll=SECOND / 20, batch=5, lock=10 * SECOND), asyncio.Event()
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        with caplog.at_level(logging.INFO, logger="schedule_service"):
            group.create_task(engine.run(stop))
            await eventually(lambda: has_finished(live_timers, "late"), within=20)
        stop.set()
    [line] = [vars(record) for record in caplog.records if "2020-01-01" in record.getMessage()]
    assert (line["organization_id"], line["timer_id"]) == ("acme", "late")


async def interfere(timers: "Timers", chance: random.Random) -> int:
    """Makes a random call, often while the timer is locked; returns the number of manual firings."""
    timer_id = chance.choice(TIMERS)
    calls: list[Callable[[str], Awaitable[object]]] = [timers.pause, timers.resume, timers.resume, timers.fire]
    call = chance.choice(calls)
    try:
        await call(timer_id)
    except Refused:  # it has finished
        return 0
    return 1 if call == timers.fire else 0


async def has_finished(timers: "Timers", timer_id: str) -> bool:
    state = (await timers.get(timer_id)).state
    if state == TIMER_STATE_PAUSED:
        await timers.resume(timer_id)
    return state == TIMER_STATE_FINISHED


async def now(timers: "Timers") -> datetime:
    async with timers.database.read() as connection:
        return await DatabaseClock().now(connection)
