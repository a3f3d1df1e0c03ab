"""Measures an outbox after the loss of its stream: the time to publish all events again, and the delay of new ones.

One relay runs on durable servers of its own. The rows are a day's events; the stream that acknowledged them is gone.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import asyncpg
from google.protobuf.duration_pb2 import Duration
from nats.aio.client import Client
from nats.aio.msg import Msg

from benchmarks.result import Result, percentile
from devstack.servers.nats import EmbeddedNats
from devstack.servers.postgres import EmbeddedPostgres
from postflow.bus.v1 import bus_pb2
from servicekit.bus.connection import close, connect
from servicekit.bus.publisher import PipelinedPublisher
from servicekit.bus.stream_view import StreamView
from servicekit.ids import Uuid7Source
from servicekit.messaging.relay import Relay
from servicekit.pg import migrations
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.outbox import Announcement, Outbox
from topology import EVENTS

_MIGRATIONS = "queue_service.adapters.postgres.migrations"
_PAYLOAD = 250
_STEP = 200_000
_PERIOD = 0.1
_LIMIT = 7200.0

_FILL = """
    insert into outbox (event_id, subject, payload, create_time, stream_time, stream_sequence)
    select lpad(n::text, 12, '0'), 'events.queue.org' || n % 20 || '.slot',
        $1::bytea || convert_to(lpad(n::text, 12, '0'), 'UTF8') || $2::bytea,
        now() - interval '1 day' + n * (interval '23 hours' / $5), timestamptz '2020-01-01 00:00Z', n / 50 + 1
    from generate_series($3::bigint, $4::bigint) as n
"""


@dataclass(slots=True)
class _Site:
    database: Database
    connection: Client
    relay: Relay
    outbox: Outbox
    sent: dict[str, float] = field(default_factory=dict)
    took: list[float] = field(default_factory=list)
    """Seconds from the commit of a new event to its arrival at a subscriber."""


async def measure(count: int, rate: int) -> list[Result]:
    with tempfile.TemporaryDirectory(prefix="postflow-bench-") as folder:
        async with EmbeddedPostgres(Path(folder) / "postgres") as postgres, EmbeddedNats(Path(folder) / "nats") as nats:
            url = await postgres.create_database("queue")
            await migrations.upgrade(url, _MIGRATIONS)
            await _fill(url, count)
            async with _site(url, nats.url, rate) as site:
                return await _heal(site, count, rate)


async def _fill(url: str, count: int) -> None:
    """Returns envelopes of one event each that differ in its id alone."""
    event = bus_pb2.Event(id="?" * 12, organization_id="org", payload=b"x" * _PAYLOAD)
    before, after = bus_pb2.Envelope(events=[event]).SerializeToString().split(b"?" * 12)
    connection = await asyncpg.connect(url)
    try:
        for start in range(0, count, _STEP):
            await connection.execute(_FILL, before, after, start, min(start + _STEP, count) - 1, count, timeout=600)
        await connection.execute("vacuum analyze outbox", timeout=600)
    finally:
        await connection.close()


@asynccontextmanager
async def _site(url: str, nats_url: str, rate: int) -> AsyncIterator[_Site]:
    database, connection = Database(url, application="bench"), Client()
    await connect(connection, nats_url, name="bench")
    relay = Relay(
        database=database,
        clock=DatabaseClock(),
        publisher=PipelinedPublisher(connection),
        stream=StreamView(connection.jetstream(), EVENTS),
        connections=lambda: connection.stats["reconnects"],
        republish_rate=rate,
    )
    try:
        yield _Site(database, connection, relay, Outbox(Uuid7Source(), relay.offer))
    finally:
        await close(connection)
        await database.dispose()


async def _heal(site: _Site, count: int, rate: int) -> list[Result]:
    async def arrived(message: Msg) -> None:
        for event in bus_pb2.Envelope.FromString(message.data).events:
            site.took.append(time.monotonic() - site.sent.pop(event.aggregate_id))

    await site.connection.subscribe("events.queue.new.>", cb=arrived)
    stop = asyncio.Event()
    began = time.monotonic()
    async with asyncio.timeout(_LIMIT), asyncio.TaskGroup() as group:
        group.create_task(site.relay.run(stop))
        number = 0
        while not await _is_healed(site):
            for _ in range(10):
                await _announce(site, str(number))
                number += 1
                await asyncio.sleep(_PERIOD)
        elapsed = time.monotonic() - began
        stop.set()
    await _check(site, count, number)
    what = f"outbox: {count:,} lost events"
    return [
        Result(name=f"{what}: all published again after", value=elapsed, unit="s"),
        Result(name=what, value=count / elapsed, unit="events/s", baseline=rate, note="--republish-rate"),
        Result(name="outbox: new events meanwhile, p50", value=percentile(site.took, 0.5) * 1000, unit="ms"),
        Result(
            name="outbox: new events meanwhile, max",
            value=max(site.took) * 1000,
            unit="ms",
            baseline=1000,
            note="target, at most",
        ),
    ]


async def _announce(site: _Site, name: str) -> None:
    async with site.database.transaction() as tx:
        news = Announcement(
            subject="events.queue.new.slot", organization_id="new", aggregate_id=name, message=Duration(seconds=1)
        )
        await site.outbox.append(tx, [news], now=await DatabaseClock().now(tx.connection))
        site.sent[name] = time.monotonic()


async def _is_healed(site: _Site) -> bool:
    found = await _values(site, "select count(*), count(healed) from outbox_era")
    return found[0] > 1 and found[1] == 0


async def _check(site: _Site, lost: int, new: int) -> None:
    """Asserts that no event is missing: the figures would mean nothing."""
    current, total = await _values(
        site,
        """
        select count(*) filter (where era.kept is null), count(*)
        from outbox join outbox_era as era on era_time = stream_time
        """,
        timeout=timedelta(minutes=10),
    )
    assert current == total == lost + new, (current, total, lost, new)
    assert len(site.took) == new, (len(site.took), new)
    state = (await site.connection.jetstream().stream_info(EVENTS.name)).state
    assert state.messages >= (lost + new) / 50, state


async def _values(site: _Site, query: str, timeout: timedelta = timedelta(seconds=30)) -> list[int]:
    async with site.database.read() as connection:
        await connection.exec_driver_sql(f"set statement_timeout = {timeout // timedelta(milliseconds=1)}")
        return [int(value) for value in (await connection.exec_driver_sql(query)).one()]
