"""Schedule is killed, frozen, or runs twice: each occurrence of a timer is announced, and stored once."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import asyncpg
import pytest

from devstack.errors import StackError
from devstack.http_call import http_call
from devstack.stack import Stack
from postflow.bus.v1 import bus_pb2
from postflow.schedule.v1.schedule_events_pb2 import TimerFired
from postflow.schedule.v1.timer_pb2 import MISFIRE_POLICY_FIRE_ALL, Timer
from postflow.schedule.v1.timer_service_pb2 import CreateTimerRequest
from postflow.schedule.v1.timer_service_pb2_grpc import TimerServiceStub
from servicekit.clock import SystemClock
from servicekit.rpc import open_channel
from testkit.announced import announced
from testkit.eventually import eventually

SCHEDULE = "schedule"
# Timers locked by a dead process are fired two seconds later by another one.
QUICK = {"POSTFLOW_SCHEDULE_TIMER_LOCK": "2", "POSTFLOW_SCHEDULE_TIMER_BATCH": "10"}
SINGLE = 150
RECURRING = 30
SECONDS = 6

Occurrences = set[tuple[str, str]]
"""Timer and key."""


@pytest.fixture
async def stack(tmp_path: Path) -> AsyncIterator[Stack]:
    async with Stack(tmp_path / "state", environment=QUICK, services=(SCHEDULE,), respawn=False) as running:
        yield running


@pytest.fixture
async def replica(stack: Stack, tmp_path: Path) -> AsyncIterator[Stack]:
    """A second schedule process, on the same database and stream."""
    environment = QUICK | {
        "POSTFLOW_SCHEDULE_DATABASE_URL": stack.database_urls[SCHEDULE],
        "POSTFLOW_NATS_URL": stack.nats_url,
    }
    async with Stack(tmp_path / "replica", environment=environment, services=(SCHEDULE,), respawn=False) as running:
        yield running


async def create(stack: Stack, start: datetime) -> Occurrences:
    """Creates timers due at `start` and timers due each second from then on; returns their expected occurrences."""
    end = start + timedelta(seconds=SECONDS)
    made: dict[str, Timer] = {f"single-{n}": Timer(topic="test", fire_time=start) for n in range(SINGLE)}
    for number in range(RECURRING):
        made[f"recurring-{number}"] = Timer(
            topic="test",
            payload=str(number).encode(),
            cron="@every 1s",
            repeat_until=end,
            misfire_policy=MISFIRE_POLICY_FIRE_ALL,
            catch_up_interval=timedelta(0),
            auto_remove=number % 2 == 0,
        )
    expected: Occurrences = set()
    async with open_channel(stack.targets[SCHEDULE]) as channel:
        stub = TimerServiceStub(channel)
        for timer_id, timer in made.items():
            request = CreateTimerRequest(organization_id="acme", timer_id=timer_id, timer=timer)
            stored = (await stub.CreateTimer(request)).timer
            first = stored.next_fire_time.ToDatetime(UTC)
            count = 1 if not timer.cron else (end - first) // timedelta(seconds=1) + 1
            expected |= {(timer_id, key(first + timedelta(seconds=n))) for n in range(count)}
    return expected


def key(instant: datetime) -> str:
    return f"{instant.replace(tzinfo=None).isoformat()}Z"


def soon() -> datetime:
    return SystemClock().now().replace(microsecond=0) + timedelta(seconds=4)


async def check(stack: Stack, expected: Occurrences) -> None:
    """Checks that each occurrence is announced under its key, and that a duplicate is the same event."""

    async def all_there() -> list[tuple[bus_pb2.Event, TimerFired]]:
        events = await announced(stack.nats_url)
        found = [(event, TimerFired.FromString(event.payload)) for event in events]
        missing = expected - {(fired.timer_id, fired.occurrence_key) for _, fired in found}
        assert not missing, f"{len(missing)} of {len(expected)} are missing: {sorted(missing)[:5]}"
        return found

    found = await eventually(all_there, within=40)
    ids = {event.id: (fired.timer_id, fired.occurrence_key) for event, fired in found}
    assert Counter(ids.values()) == Counter(dict.fromkeys(expected, 1))
    for _, fired in found:
        name, _, number = fired.timer_id.partition("-")
        assert fired.payload == (number.encode() if name == "recurring" else b"")
        assert fired.occurrence_key == key(fired.due_time.ToDatetime(UTC))
        assert fired.fire_time.ToNanoseconds() >= fired.due_time.ToNanoseconds()
    await check_rows(stack, expected)


async def check_rows(stack: Stack, expected: Occurrences) -> None:
    """Checks that every timer has counted each of its occurrences once and has finished."""
    counts = Counter(timer_id for timer_id, _ in expected)
    connection = await asyncpg.connect(stack.database_urls[SCHEDULE])
    rows = await connection.fetch("select id, fire_count, finish_time from timer")
    await connection.close()
    assert all(row["finish_time"] for row in rows)
    kept = {timer_id: count for timer_id, count in counts.items() if not removes_itself(timer_id)}
    assert {row["id"]: row["fire_count"] for row in rows} == kept


def removes_itself(timer_id: str) -> bool:
    name, _, number = timer_id.partition("-")
    return name == "recurring" and int(number) % 2 == 0


async def until(moment: datetime) -> None:
    await asyncio.sleep(max((moment - SystemClock().now()).total_seconds(), 0))


async def test_a_process_killed_while_timers_fire_loses_no_occurrence(stack: Stack) -> None:
    start = soon()
    expected = await create(stack, start)
    for delay in (0.03, 1.5, 3.2, 4.6):
        await until(start + timedelta(seconds=delay))
        await stack.kill(SCHEDULE)
        await stack.start(SCHEDULE)
    await check(stack, expected)


@pytest.mark.parametrize("place", ["schedule.timers.locked", "schedule.timers.fired"])
async def test_a_process_killed_at_its_worst_moment_loses_no_occurrence(stack: Stack, place: str) -> None:
    start = soon()
    expected = await create(stack, start)
    # Dies at random, also within a batch.
    deadly = {"POSTFLOW_SCHEDULE_FAILPOINTS": f"{place}=kill:0.3"}
    await stack.stop(SCHEDULE)
    async with asyncio.timeout(60):
        while stack.starts(SCHEDULE) < 7 and not await have_finished(stack):
            if not stack.running(SCHEDULE):
                # It may die again before it is serving.
                with suppress(StackError):
                    await stack.start(SCHEDULE, deadly)
    assert stack.starts(SCHEDULE) > 3
    await stack.kill(SCHEDULE)
    await stack.start(SCHEDULE, {"POSTFLOW_SCHEDULE_FAILPOINTS": ""})
    await check(stack, expected)


async def have_finished(stack: Stack) -> bool:
    connection = await asyncpg.connect(stack.database_urls[SCHEDULE])
    waiting: int = await connection.fetchval("select count(*) from timer where finish_time is null")
    await connection.close()
    return waiting == 0


async def are_locked(stack: Stack) -> bool:
    connection = await asyncpg.connect(stack.database_urls[SCHEDULE])
    locked: int = await connection.fetchval("select count(*) from timer where attempts > 0 and sleep_until > due_time")
    await connection.close()
    return locked > 0


async def test_a_database_crash_while_timers_fire_loses_and_repeats_none(stack: Stack) -> None:
    assert stack.postgres is not None
    start = soon()
    expected = await create(stack, start)
    await until(start + timedelta(seconds=0.05))
    await stack.postgres.kill()
    await stack.postgres.start()
    await check(stack, expected)


async def test_two_replicas_share_the_timers_and_fire_each_once(stack: Stack, replica: Stack) -> None:
    expected = await create(stack, soon())
    await check(stack, expected)

    async def all_counted() -> list[int]:
        # The metric grows just after the commit.
        shares = [await counted(each) for each in (stack, replica)]
        assert sum(shares) == len(expected)
        return shares

    assert all(await eventually(all_counted))


async def counted(stack: Stack) -> int:
    """Returns the process's own count of fired timers."""
    url = f"http://{stack.metrics[SCHEDULE]}/metrics"
    lines = (await http_call("GET", url)).text.splitlines()
    return sum(int(float(line.split()[-1])) for line in lines if line.startswith("postflow_timer_fired_total{"))


async def test_a_replica_takes_over_from_one_that_is_killed(stack: Stack, replica: Stack) -> None:
    start = soon()
    expected = await create(stack, start)
    await until(start + timedelta(seconds=0.05))
    await stack.kill(SCHEDULE)
    await check(stack, expected)


async def test_a_process_frozen_with_locked_timers_fires_none_of_them_again(stack: Stack, replica: Stack) -> None:
    # The first process stalls with each batch that it locks, and is then frozen for longer than its locks last. The
    # other one is frozen until the first has a batch: otherwise it might take all timers.
    await stack.restart(SCHEDULE, {"POSTFLOW_SCHEDULE_FAILPOINTS": "schedule.timers.locked=sleep:1"})
    expected = await create(replica, soon())
    frozen, other = stack.pid(SCHEDULE), replica.pid(SCHEDULE)
    os.kill(other, signal.SIGSTOP)
    try:
        await eventually(lambda: are_locked(stack))
        os.kill(frozen, signal.SIGSTOP)
    finally:
        os.kill(other, signal.SIGCONT)
    try:
        await until(SystemClock().now() + timedelta(seconds=4))
    finally:
        os.kill(frozen, signal.SIGCONT)
    await check(stack, expected)
    await eventually(lambda: [line for line in stack.output(SCHEDULE) if "the lock with fence" in line])
