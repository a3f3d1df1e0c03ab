"""The schedule process as it is composed: a put over gRPC arrives on the stream, and it drains."""

import asyncio
from collections.abc import Awaitable, Callable

import nats
from grpc_health.v1 import health_pb2, health_pb2_grpc

from devstack.nats import EmbeddedNats
from postflow.bus.v1 import bus_pb2
from postflow.schedule.v1.account_schedule_pb2 import AccountSchedule
from postflow.schedule.v1.schedule_events_pb2 import AccountScheduleChanged
from postflow.schedule.v1.schedule_service_pb2 import PutAccountScheduleRequest
from postflow.schedule.v1.schedule_service_pb2_grpc import ScheduleServiceStub
from schedule_service.main import compose
from schedule_service.settings import Settings
from servicekit.rpc import RpcServer, open_channel
from servicekit.run import Secret, serve
from testkit.eventually import eventually
from topology import EVENTS


async def test_a_change_is_announced_on_the_stream(
    service_database: Callable[[str], Awaitable[str]], fresh_nats: EmbeddedNats
) -> None:
    settings = Settings(
        listen="127.0.0.1:0", database_url=Secret(await service_database("schedule")), nats_url=fresh_nats.url
    )
    process = await compose(settings)
    stop, ready = asyncio.Event(), asyncio.Event()
    async with asyncio.TaskGroup() as group, asyncio.timeout(30):
        group.create_task(serve(process, stop, ready))
        await ready.wait()
        assert isinstance(process.server, RpcServer)
        async with open_channel(f"127.0.0.1:{process.server.port}") as channel:
            health = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
            assert health.status == health_pb2.HealthCheckResponse.SERVING
            schedule = AccountSchedule(social_account_id="page", time_zone="UTC", enabled=True)
            request = PutAccountScheduleRequest(organization_id="acme", account_schedule=schedule)
            stored = (await ScheduleServiceStub(channel).PutAccountSchedule(request)).account_schedule
        assert await announced(fresh_nats.url) == [stored]
        stop.set()


async def announced(url: str) -> list[AccountSchedule]:
    client = await nats.connect(url)

    async def first_payload() -> bytes:
        if (await client.jetstream().stream_info(EVENTS.name)).state.messages == 0:
            return b""
        message = await client.jetstream().get_last_msg(EVENTS.name, "events.schedule.acme.account_schedule")
        return message.data or b""

    try:
        events = bus_pb2.Envelope.FromString(await eventually(first_payload)).events
    finally:
        await client.close()
    return [AccountScheduleChanged.FromString(event.payload).account_schedule for event in events]
