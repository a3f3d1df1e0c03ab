"""The whole schedule process: what it announces and consumes, and that it drains."""

from datetime import timedelta
from typing import Any

import nats
import pytest
from google.protobuf.message import Message
from grpc_health.v1 import health_pb2, health_pb2_grpc
from sqlalchemy import text

from devstack.servers.nats import EmbeddedNats
from postflow.bus.v1 import bus_pb2
from postflow.queue.v1.queue_events_pb2 import SlotCanceled, SlotMoved, SlotScheduled
from postflow.schedule.v1.account_schedule_pb2 import AccountSchedule
from postflow.schedule.v1.schedule_events_pb2 import AccountScheduleChanged
from postflow.schedule.v1.schedule_service_pb2 import DeleteAccountScheduleRequest, PutAccountScheduleRequest
from postflow.schedule.v1.schedule_service_pb2_grpc import ScheduleServiceStub
from schedule_service.main import compose
from schedule_service.settings import Settings
from servicekit.clock import SystemClock
from servicekit.faults import Refused
from servicekit.ids import Uuid7Source
from servicekit.pg.database import Database
from servicekit.rpc import calling
from servicekit.run import Secret
from testkit.eventually import eventually
from testkit.processes import running
from topology import EVENTS, events_subject

PUT = PutAccountScheduleRequest(
    organization_id="acme",
    account_schedule=AccountSchedule(social_account_id="page", time_zone="UTC", enabled=True),
)
DELETE = DeleteAccountScheduleRequest(organization_id="acme", social_account_id="page")


@pytest.fixture
async def settings(database_url: str, fresh_nats: EmbeddedNats) -> Settings:
    return Settings(listen="127.0.0.1:0", database_url=Secret(database_url), nats_url=fresh_nats.url)


async def test_a_change_is_announced_on_the_stream(settings: Settings) -> None:
    async with running(await compose(settings)) as channel:
        health = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
        assert health.status == health_pb2.HealthCheckResponse.SERVING
        stored = (await ScheduleServiceStub(channel).PutAccountSchedule(PUT)).account_schedule
        assert await announced(settings.nats_url) == [stored]


async def test_an_allocated_slot_keeps_the_schedule_until_it_moves_away(settings: Settings) -> None:
    tomorrow = SystemClock().now() + timedelta(days=1)
    slot: dict[str, Any] = {"organization_id": "acme", "slot_id": "s1", "social_account_id": "page", "draft_id": "d1"}
    async with running(await compose(settings)) as channel:
        stub = ScheduleServiceStub(channel)
        await stub.PutAccountSchedule(PUT)
        await tell(settings.nats_url, SlotScheduled(**slot, revision=1, schedule_time=tomorrow))
        await heard(settings, revision=1)
        with pytest.raises(Refused), calling():
            await stub.DeleteAccountSchedule(DELETE)
        await tell(settings.nats_url, SlotMoved(**slot, revision=2, schedule_time=tomorrow - timedelta(days=2)))
        await heard(settings, revision=2)
        await stub.DeleteAccountSchedule(DELETE)


async def test_a_canceled_slot_keeps_no_schedule(settings: Settings) -> None:
    slot: dict[str, Any] = {"organization_id": "acme", "slot_id": "s1", "social_account_id": "page", "draft_id": "d1"}
    slot["schedule_time"] = SystemClock().now() + timedelta(days=1)
    async with running(await compose(settings)) as channel:
        stub = ScheduleServiceStub(channel)
        await stub.PutAccountSchedule(PUT)
        await tell(settings.nats_url, SlotScheduled(**slot, revision=1))
        await heard(settings, revision=1)
        await tell(settings.nats_url, SlotCanceled(**slot, revision=2))
        await heard(settings, revision=2)
        await stub.DeleteAccountSchedule(DELETE)


async def test_past_slots_are_deleted(settings: Settings) -> None:
    await asked(
        settings,
        """
        insert into upcoming_slot
        values ('acme', 's1', 'page', 1, now() - interval '61 minutes'), ('acme', 's2', 'page', 1, now())
        returning revision
        """,
    )
    async with running(await compose(settings)):

        async def only_the_recent() -> bool:
            return await asked(settings, "select slot_id from upcoming_slot") == ["s2"]

        await eventually(only_the_recent)


async def test_a_malformed_slot_is_parked_and_the_next_is_applied(settings: Settings) -> None:
    tomorrow = SystemClock().now() + timedelta(days=1)
    slot: dict[str, Any] = {"organization_id": "acme", "slot_id": "s1", "revision": 1, "schedule_time": tomorrow}
    async with running(await compose(settings)):
        await tell(settings.nats_url, SlotScheduled(**slot))
        await tell(settings.nats_url, SlotScheduled(**slot, social_account_id="page"))
        await heard(settings, revision=1)
        assert await asked(settings, "select reason from dead_letter") == ["MALFORMED_EVENT while applying"]


async def tell(url: str, message: Message) -> None:
    event = bus_pb2.Event(
        id=Uuid7Source().new(),
        type=message.DESCRIPTOR.full_name,
        organization_id="acme",
        aggregate_id="s1",
        payload=message.SerializeToString(),
    )
    client = await nats.connect(url)
    try:
        subject = events_subject("queue", "slot")
        await client.jetstream().publish(subject, bus_pb2.Envelope(events=[event]).SerializeToString())
    finally:
        await client.close()


async def heard(settings: Settings, *, revision: int) -> None:
    async def known() -> bool:
        return await asked(settings, "select revision from upcoming_slot") == [revision]

    await eventually(known)


async def asked(settings: Settings, question: str) -> list[Any]:
    database = Database(settings.database_url.reveal(), application="test", pool_size=1)
    try:
        async with database.statement() as connection:
            return list((await connection.execute(text(question))).scalars())
    finally:
        await database.dispose()


async def announced(url: str) -> list[AccountSchedule]:
    client = await nats.connect(url)

    async def first_payload() -> bytes:
        if (await client.jetstream().stream_info(EVENTS.name)).state.messages == 0:
            return b""
        message = await client.jetstream().get_last_msg(EVENTS.name, "events.schedule.account_schedule")
        return message.data or b""

    try:
        events = bus_pb2.Envelope.FromString(await eventually(first_payload)).events
    finally:
        await client.close()
    return [AccountScheduleChanged.FromString(event.payload).account_schedule for event in events]
