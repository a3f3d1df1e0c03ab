"""Measures timers and slot times of a Schedule process: rate, lateness, cost."""

import asyncio
import random
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

import asyncpg
import nats
from grpc_health.v1 import health_pb2, health_pb2_grpc

from benchmarks import floor
from benchmarks.floor import Floor
from benchmarks.result import Result, percentile
from benchmarks.usage import cpu_seconds
from civil.zones import tzdata_version
from devstack.stack import Stack
from postflow.bus.v1 import bus_pb2
from postflow.schedule.v1 import account_schedule_pb2, schedule_service_pb2
from postflow.schedule.v1.schedule_events_pb2 import TimerFired
from postflow.schedule.v1.schedule_service_pb2_grpc import ScheduleServiceStub
from schedule_service.adapters.postgres.due_timers import timer_jobs
from servicekit.clock import SystemClock
from servicekit.pg import migrations
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.rpc import open_channel
from topology import EVENTS

T = TypeVar("T")

_MIGRATIONS = "schedule_service.adapters.postgres.migrations"
_LIMIT = 120.0
_FUTURE = 1_000_000
_ORGANIZATIONS = 20
_COLUMNS = """
    organization_id id topic payload fire_time cron time_zone dst_policy misfire_policy catch_up_interval skip_after
    auto_remove paused due_time sleep_until fence attempts fire_count last_occurrence_key tzdata_version traceparent
    version create_time update_time
"""
_clock = SystemClock()


async def measure(*, at_once: int, per_second: int, seconds: int) -> list[Result]:
    with tempfile.TemporaryDirectory(prefix="postflow-bench-") as folder:
        environment = {"POSTFLOW_LOG_LEVEL": "WARNING"}
        services = ("schedule",)
        async with Stack(Path(folder), durable=True, environment=environment, services=services) as stack:
            assert stack.postgres is not None
            bare = floor.middle(await floor.rounds(stack.postgres, 50_000))
            return [
                *await _burst(stack, at_once, bare),
                *await _lateness(stack, per_second, seconds),
                *await _slot_times(stack, 500),
                *await _due_fetch(stack),
            ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fired:
    timer_id: str
    due: datetime
    fired: datetime
    published: datetime
    """By the clock of the stream server."""


async def _burst(stack: Stack, count: int, bare: Floor) -> list[Result]:
    """Measures timers that are all due at one instant, until the last of their events is in the stream."""
    due = _clock.now() + timedelta(seconds=3 + count / 20_000)
    await _store(stack.database_urls["schedule"], [(f"burst-{n}", due) for n in range(count)])
    assert _clock.now() < due, "the timers were stored too slowly to be in time"
    before = _cpu(stack)
    fired = await _published(stack, "burst-", count)
    used = (_cpu(stack) - before) / count * 1e6
    elapsed = (max(one.published for one in fired) - due).total_seconds()
    what = f"{count:,} timers due at once"
    return [
        Result(name=f"{what}: all on the stream after", value=elapsed, unit="s"),
        Result(name=what, value=count / elapsed, unit="timers/s", baseline=bare.per_second, note="bare SQL"),
        Result(
            name="CPU per timer, schedule + PostgreSQL + NATS",
            value=used,
            unit="us",
            baseline=bare.cpu,
            note="bare SQL",
        ),
    ]


async def _lateness(stack: Stack, per_second: int, seconds: int) -> list[Result]:
    """Measures timers at a steady rate, each at a random time within its share."""
    count = per_second * seconds
    start = _clock.now() + timedelta(seconds=3)
    spread = random.Random(count)
    dues = [start + timedelta(seconds=(n + spread.random()) / per_second) for n in range(count)]
    await _store(stack.database_urls["schedule"], [(f"steady-{n}", due) for n, due in enumerate(dues)])
    assert _clock.now() < start, "the timers were stored too slowly to be in time"
    before = _cpu(stack)
    fired = await _published(stack, "steady-", count)
    used = (_cpu(stack) - before) / count * 1e6
    late = [(one.published - one.due).total_seconds() * 1000 for one in fired]
    decided = [(one.fired - one.due).total_seconds() * 1000 for one in fired]
    at = f"at {per_second}/s"
    return [
        Result(name=f"timer on the stream, late p50 {at}", value=percentile(late, 0.5), unit="ms"),
        Result(
            name=f"timer on the stream, late p99 {at}",
            value=percentile(late, 0.99),
            unit="ms",
            baseline=50,
            note="target, at most",
        ),
        Result(name=f"timer on the stream, late max {at}", value=max(late), unit="ms"),
        Result(name=f"timer fired, late p50 {at}", value=percentile(decided, 0.5), unit="ms"),
        Result(name=f"timer fired, late p99 {at}", value=percentile(decided, 0.99), unit="ms"),
        Result(name=f"timer fired, earliest {at}", value=min(decided), unit="ms", note="must not be under 0"),
        Result(name=f"CPU per timer {at}", value=used, unit="us"),
    ]


async def _slot_times(stack: Stack, calls: int) -> list[Result]:
    days = account_schedule_pb2.DayOfWeek.keys()[1:]
    slots = [
        account_schedule_pb2.WeeklySlot(day_of_week=day, hour=hour, minute=30) for day in days for hour in (9, 13, 18)
    ]
    schedule = account_schedule_pb2.AccountSchedule(
        social_account_id="page", time_zone="America/New_York", weekly_slots=slots
    )
    async with open_channel(stack.targets["schedule"]) as channel:
        stub, health = ScheduleServiceStub(channel), health_pb2_grpc.HealthStub(channel)
        await stub.PutAccountSchedule(
            schedule_service_pb2.PutAccountScheduleRequest(organization_id="org-0", account_schedule=schedule)
        )
        request = schedule_service_pb2.FindSlotTimesRequest(
            organization_id="org-0", social_account_id="page", count=100
        )
        assert len((await stub.FindSlotTimes(request)).slot_times) == 100
        took = [await _timed(lambda: stub.FindSlotTimes(request)) for _ in range(calls)]
        bare = [await _timed(lambda: health.Check(health_pb2.HealthCheckRequest())) for _ in range(calls)]
    return [
        Result(
            name="FindSlotTimes(100) p50",
            value=percentile(took, 0.5),
            unit="ms",
            baseline=percentile(bare, 0.5),
            note="a call that does nothing",
        ),
        Result(name="FindSlotTimes(100) p99", value=percentile(took, 0.99), unit="ms"),
    ]


async def _due_fetch(stack: Stack) -> list[Result]:
    """Measures the look for due timers, in an empty table and in one full of future timers, in turns."""
    assert stack.postgres is not None
    databases: list[Database] = []
    for name in ("empty", "loaded"):
        url = await stack.postgres.create_database(f"benchmark_{name}")
        await migrations.upgrade(url, _MIGRATIONS)
        databases.append(Database(url, application="benchmark", pool_size=1))
        if name == "loaded":
            await _store_future(url)
    results: list[Result] = []
    past = _clock.now() - timedelta(hours=2)
    for due, what in ((0, "nothing is due"), (100, "100 are due")):
        for database in databases:
            await _add_due(database, due, past)
        empty, loaded = await _fetches(databases, due, past, 1500)
        results.append(
            Result(
                name=f"due fetch beside {_FUTURE:,} future timers, {what}",
                value=percentile(loaded, 0.5),
                unit="ms",
                baseline=percentile(empty, 0.5),
                note="the same without them; target at most 1.10",
            )
        )
    for database in databases:
        await database.dispose()
    for name in ("empty", "loaded"):
        await stack.postgres.drop_database(f"benchmark_{name}")
    return results


async def _fetches(databases: Sequence[Database], due: int, past: datetime, rounds: int) -> list[list[float]]:
    """Returns how long each look took. Locks end in the past, at one instant, so that the same timers are due again."""
    stores = [timer_jobs(database, DatabaseClock()) for database in databases]
    took: list[list[float]] = [[] for _ in stores]
    for number in range(rounds + 50):
        for store, times in zip(stores, took, strict=True):
            now = await store.now()
            began = time.perf_counter()
            jobs = await store.lock_next(now, past, 200)
            if not jobs:
                await store.next_due()
            if number >= 50:
                times.append((time.perf_counter() - began) * 1000)
            assert len(jobs) == due
    return took


async def _store_future(url: str) -> None:
    first = _clock.now() + timedelta(days=30)
    for start in range(0, _FUTURE, 50_000):
        rows = [(f"future-{n}", first + timedelta(seconds=n)) for n in range(start, start + 50_000)]
        await _store(url, rows)


async def _add_due(database: Database, count: int, past: datetime) -> None:
    url = database.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    await _store(url, [(f"due-{n}", past) for n in range(count)])
    connection = await asyncpg.connect(url)
    await connection.execute("vacuum analyze timer")
    await connection.close()


async def _store(url: str, timers: Sequence[tuple[str, datetime]]) -> None:
    """Stores timers as CreateTimer does."""
    now, second, minute = _clock.now(), timedelta(seconds=1), timedelta(minutes=1)
    connection = await asyncpg.connect(url)
    await connection.copy_records_to_table(
        "timer",
        columns=_COLUMNS.split(),
        records=[
            (
                *(f"org-{number % _ORGANIZATIONS}", timer_id, "benchmark", b"payload", due),
                *("", "UTC", "CRON", "FIRE_ONCE", second, minute, False, False, due, due),
                *(0, 0, 0, "", tzdata_version(), "", 1, now, now),
            )
            for number, (timer_id, due) in enumerate(timers)
        ],
    )
    await connection.close()


async def _published(stack: Stack, prefix: str, count: int) -> list[_Fired]:
    """Waits until all timers have fired, then reads their events: reading earlier would disturb the measure."""
    client = await nats.connect(stack.nats_url)
    stream = client.jetstream()
    await _until_finished(stack, prefix, count)
    fired: dict[str, _Fired] = {}
    deadline = time.monotonic() + _LIMIT
    while len(fired) < count:
        assert time.monotonic() < deadline, f"{count - len(fired)} timers are not on the stream"
        subscription = await stream.subscribe("events.schedule.>", stream=EVENTS.name, ordered_consumer=True)
        last = (await stream.stream_info(EVENTS.name)).state.last_seq
        while True:
            message = await subscription.next_msg(timeout=10)
            metadata = message.metadata
            for one in _firings(message.data, metadata.timestamp):
                if one.timer_id.startswith(prefix):
                    fired.setdefault(one.timer_id, one)
            if metadata.sequence.stream >= last:
                break
        await subscription.unsubscribe()
    await client.close()
    return list(fired.values())


def _firings(payload: bytes, published: datetime) -> list[_Fired]:
    envelope = bus_pb2.Envelope.FromString(payload)
    events = [TimerFired.FromString(event.payload) for event in envelope.events]
    return [
        _Fired(
            timer_id=event.timer_id,
            due=event.due_time.ToDatetime(UTC),
            fired=event.fire_time.ToDatetime(UTC),
            published=published,
        )
        for event in events
        if event.timer_id
    ]


async def _until_finished(stack: Stack, prefix: str, count: int) -> None:
    connection = await asyncpg.connect(stack.database_urls["schedule"])
    finished = "select count(*) from timer where finish_time is not null and id like $1 || '%'"
    deadline = time.monotonic() + _LIMIT
    while await connection.fetchval(finished, prefix) < count:
        assert time.monotonic() < deadline, "not every timer has fired"
        await asyncio.sleep(0.5)
    await connection.close()


async def _timed(call: Callable[[], Awaitable[T]]) -> float:
    began = time.perf_counter()
    await call()
    return (time.perf_counter() - began) * 1000


def _cpu(stack: Stack) -> float:
    assert stack.postgres is not None
    assert stack.nats is not None
    return sum(cpu_seconds(pid) for pid in (stack.pid("schedule"), stack.postgres.pid, stack.nats.pid))
