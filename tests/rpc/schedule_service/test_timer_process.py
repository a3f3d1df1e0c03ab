"""Timers of a whole process: due timers reach the stream soon, and the engine ends with the process."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from google.protobuf.duration_pb2 import Duration
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from sqlalchemy import text
from sqlalchemy.exc import ProgrammingError

from devstack.servers.nats import EmbeddedNats
from postflow.schedule.v1.schedule_events_pb2 import TimerFired
from postflow.schedule.v1.timer_pb2 import TIMER_STATE_FINISHED, Timer
from postflow.schedule.v1.timer_service_pb2 import (
    CreateTimerRequest,
    GetTimerRequest,
    PauseTimerRequest,
    ResumeTimerRequest,
)
from postflow.schedule.v1.timer_service_pb2_grpc import TimerServiceStub
from schedule_service.application.timers.create_timer import CreateTimer
from schedule_service.domain.timers.timer_request import TimerRequest
from schedule_service.main import compose
from schedule_service.settings import Settings
from servicekit.ids import Uuid7Source
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database
from servicekit.pg.ledger import RequestLedger
from servicekit.run import Secret
from testkit.announced import announced
from testkit.calls import call
from testkit.eventually import eventually
from testkit.processes import running
from testkit.spans import recorded_spans

NEVER = timedelta(hours=1)
"""A time between two polls that is so long that tests which rely on polls fail."""
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SAMPLED = f"00-{TRACE}-00f067aa0ba902b7-01"


@pytest.fixture
async def settings(database_url: str, fresh_nats: EmbeddedNats) -> Settings:
    return Settings(
        listen="127.0.0.1:0",
        database_url=Secret(database_url),
        nats_url=fresh_nats.url,
        timer_poll=NEVER,
    )


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    with recorded_spans() as exporter:
        yield exporter


def create(timer_id: str, ahead: timedelta = timedelta(0)) -> CreateTimerRequest:
    delay = Duration()
    delay.FromTimedelta(ahead)
    return CreateTimerRequest(organization_id="acme", timer_id=timer_id, timer=Timer(topic="test", delay=delay))


async def fired(settings: Settings, *timer_ids: str) -> list[TimerFired]:
    """Waits until these have fired."""

    async def all_there() -> list[TimerFired]:
        events = [TimerFired.FromString(event.payload) for event in await announced(settings.nats_url)]
        assert sorted(event.timer_id for event in events) == sorted(timer_ids)
        return events

    return await eventually(all_there)


async def test_creating_a_due_timer_wakes_the_engine(settings: Settings) -> None:
    async with running(await compose(settings)) as channel:
        made = (await TimerServiceStub(channel).CreateTimer(create("t"))).timer
        (event,) = await fired(settings, "t")
        assert event.due_time == made.fire_time
        after = (await TimerServiceStub(channel).GetTimer(GetTimerRequest(organization_id="acme", timer_id="t"))).timer
        assert (after.state, after.last_occurrence_key) == (TIMER_STATE_FINISHED, event.occurrence_key)


async def test_the_engine_waits_for_a_timer_that_is_due_soon(settings: Settings) -> None:
    async with running(await compose(settings)) as channel:
        await TimerServiceStub(channel).CreateTimer(create("t", timedelta(seconds=0.3)))
        (event,) = await fired(settings, "t")
        assert event.fire_time.ToNanoseconds() >= event.due_time.ToNanoseconds()


async def test_resuming_a_timer_wakes_the_engine(settings: Settings) -> None:
    async with running(await compose(settings)) as channel:
        stub = TimerServiceStub(channel)
        await stub.CreateTimer(create("t", timedelta(seconds=0.2)))
        await stub.PauseTimer(PauseTimerRequest(organization_id="acme", timer_id="t"))
        await stub.ResumeTimer(ResumeTimerRequest(organization_id="acme", timer_id="t"))
        await fired(settings, "t")


async def test_the_poll_finds_a_timer_of_another_replica(settings: Settings) -> None:
    quick = replace(settings, timer_poll=timedelta(milliseconds=100))
    async with running(await compose(quick)), running(await compose(settings)) as other:
        # The other process has woken its engine; the first one to lock a timer fires it, and only that one.
        for number in range(5):
            await TimerServiceStub(other).CreateTimer(create(f"t{number}", timedelta(milliseconds=300)))
        await fired(settings, *(f"t{number}" for number in range(5)))
        await store_silently(settings, "silent")
        await fired(settings, "silent", *(f"t{number}" for number in range(5)))


async def store_silently(settings: Settings, timer_id: str) -> None:
    """Stores a timer that is due now, without waking an engine."""
    database = Database(settings.database_url.reveal(), application="test", pool_size=1)
    ledger = RequestLedger(database, DatabaseClock())
    create = CreateTimer(ids=Uuid7Source(), ledger=ledger, wake=lambda _ahead: None)
    await create(call("CreateTimer"), timer_id=timer_id, request=TimerRequest(topic="test", delay=timedelta(0)))
    await database.dispose()


async def test_a_timer_due_before_the_start_fires(settings: Settings) -> None:
    await store_silently(settings, "t")
    async with running(await compose(settings)):
        await fired(settings, "t")


async def test_the_last_firing_is_published_before_the_process_ends(settings: Settings) -> None:
    async with running(await compose(settings)) as channel:
        await TimerServiceStub(channel).CreateTimer(create("t"))

        async def is_finished() -> bool:
            request = GetTimerRequest(organization_id="acme", timer_id="t")
            return (await TimerServiceStub(channel).GetTimer(request)).timer.state == TIMER_STATE_FINISHED

        await eventually(is_finished)
    assert [event.aggregate_id for event in await announced(settings.nats_url)] == ["t"]


async def test_a_firing_is_linked_to_the_call_that_created_the_timer(
    settings: Settings, spans: InMemorySpanExporter
) -> None:
    async with running(await compose(settings)) as channel:
        await TimerServiceStub(channel).CreateTimer(create("traced"), metadata=[("traceparent", SAMPLED)])
        await fired(settings, "traced")
    (event,) = await announced(settings.nats_url)
    (span,) = [span for span in spans.get_finished_spans() if span.name == "schedule fire timers" and span.links]
    assert [f"{link.context.trace_id:032x}" for link in span.links] == [TRACE]
    assert f"{span.context.trace_id:032x}" in event.traceparent
    assert TRACE not in event.traceparent


async def test_a_permanent_store_error_ends_the_process(settings: Settings) -> None:
    with pytest.raises(ExceptionGroup) as ended:  # noqa: PT012 - the process ends inside
        async with running(await compose(settings)) as channel:
            await break_the_table(settings)
            await TimerServiceStub(channel).CreateTimer(create("t"))
            async with asyncio.timeout(30):
                await asyncio.Event().wait()
    assert ended.group_contains(ProgrammingError, match="wanted_below")


async def break_the_table(settings: Settings) -> None:
    """Changes the table so that timers can be stored and locked, but not fired."""
    database = Database(settings.database_url.reveal(), application="test", pool_size=1)
    async with database.statement() as connection:
        await connection.execute(
            text("""
                create function refuse() returns trigger language plpgsql as
                $$ begin perform wanted_below from timer; return new; end $$
            """)
        )
        await connection.execute(
            text("""
                create trigger refuse before update on timer for each row
                when (new.fire_count > old.fire_count) execute function refuse()
            """)
        )
    await database.dispose()
