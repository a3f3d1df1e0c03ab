"""A whole Queue process with a real NATS server, and fakes of Schedule, Drafts and Publisher on real gRPC servers."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NoReturn

import grpc
import pytest
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from nats.aio.client import Client
from sqlalchemy import text

from civil.zones import tzdata_version
from devstack.servers.nats import EmbeddedNats
from postflow.bus.v1.bus_pb2 import Envelope, Event
from postflow.drafts.v1.draft_pb2 import Draft
from postflow.drafts.v1.drafts_service_pb2 import GetDraftRequest, GetDraftResponse
from postflow.drafts.v1.drafts_service_pb2_grpc import DraftsServiceServicer, add_DraftsServiceServicer_to_server
from postflow.publisher.v1.publisher_events_pb2 import PostJobChanged
from postflow.publisher.v1.publisher_service_pb2_grpc import add_PublisherServiceServicer_to_server
from postflow.publisher.v1.social_account_pb2 import (
    SOCIAL_ACCOUNT_STATE_CONNECTED,
    SOCIAL_ACCOUNT_STATE_DISCONNECTED,
    SocialAccount,
)
from postflow.publisher.v1.social_account_service_pb2 import GetAccountRequest, GetAccountResponse
from postflow.publisher.v1.social_account_service_pb2_grpc import (
    SocialAccountServiceServicer,
    add_SocialAccountServiceServicer_to_server,
)
from postflow.queue.v1.publish_command_pb2 import PublishCommand
from postflow.queue.v1.queue_service_pb2_grpc import QueueServiceStub
from postflow.schedule.v1.account_schedule_pb2 import AccountSchedule, SlotTime
from postflow.schedule.v1.schedule_events_pb2 import AccountScheduleChanged
from postflow.schedule.v1.schedule_service_pb2 import (
    FindSlotTimesRequest,
    FindSlotTimesResponse,
    GetAccountScheduleRequest,
    GetAccountScheduleResponse,
)
from postflow.schedule.v1.schedule_service_pb2_grpc import (
    ScheduleServiceServicer,
    add_ScheduleServiceServicer_to_server,
)
from postflow.target.v1.target_pb2 import Target
from queue_service.main import compose
from queue_service.settings import Settings
from servicekit.faults import Fault, NotFound
from servicekit.ids import Uuid7Source
from servicekit.pg.database import Database
from servicekit.rpc import RpcServer, calling
from servicekit.run import Secret
from testkit.eventually import eventually
from testkit.processes import running
from tests.rpc.queue_service.fake_posts import FakePosts
from topology import PUBLISH, events_subject

ORG = "acme"
Context = grpc.aio.ServicerContext[Any, Any]


@dataclass
class FakeSchedule(ScheduleServiceServicer):
    """Answers with the slot times of some accounts, with the fault that it is given, or not at all."""

    schedules: dict[str, AccountSchedule] = field(default_factory=dict)
    times: dict[str, list[datetime]] = field(default_factory=dict)
    # The categories for which times are kept.
    kept: dict[datetime, str] = field(default_factory=dict)
    fault: Fault | None = None
    is_frozen: bool = False
    asked: list[FindSlotTimesRequest] = field(default_factory=list)
    times_sent: int = 0

    async def FindSlotTimes(self, request: FindSlotTimesRequest, context: Context) -> FindSlotTimesResponse:
        self.asked.append(request)
        if self.is_frozen:
            await asyncio.Event().wait()
        if self.fault:
            raise self.fault
        if request.social_account_id not in self.times:
            raise NotFound("SCHEDULE_NOT_FOUND", "no schedule")
        schedule = self.schedules.get(request.social_account_id, AccountSchedule(time_zone="UTC", version=1))
        known = (request.known_schedule_version, request.known_tzdata_version)
        if known == (schedule.version, schedule.tzdata_version):
            return FindSlotTimesResponse(schedule_version=known[0], tzdata_version=known[1], unchanged=True)
        after, before = request.after.ToDatetime(UTC), request.before.ToDatetime(UTC)
        found = [time for time in self.times[request.social_account_id] if after <= time < before]
        if request.of_category_only:
            found = [time for time in found if self.kept.get(time, "") == request.category_id]
        self.times_sent += len(found[: request.count])
        return FindSlotTimesResponse(
            slot_times=[
                SlotTime(
                    time=stamp(time), nominal_local_time=f"{time:%Y-%m-%dT%H:%M}", category_id=self.kept.get(time, "")
                )
                for time in found[: request.count]
            ],
            time_zone=schedule.time_zone,
            schedule_version=schedule.version,
            max_posts_per_day=schedule.max_posts_per_day,
            enabled=schedule.enabled,
            tzdata_version=schedule.tzdata_version,
        )

    async def GetAccountSchedule(
        self, request: GetAccountScheduleRequest, context: Context
    ) -> GetAccountScheduleResponse:
        if self.fault:
            raise self.fault
        if request.social_account_id not in self.schedules:
            raise NotFound("SCHEDULE_NOT_FOUND", "no schedule")
        return GetAccountScheduleResponse(account_schedule=self.schedules[request.social_account_id])

    async def PutAccountSchedule(self, request: object, context: Context) -> NoReturn:
        raise AssertionError("Queue changes no schedule")

    ListAccountSchedules = DeleteAccountSchedule = CheckSendWindow = PutAccountSchedule
    CreateScheduleRule = GetScheduleRule = UpdateScheduleRule = DeleteScheduleRule = PutAccountSchedule
    ListScheduleRules = ListRuleTargets = PutAccountSchedule


@dataclass
class FakeDrafts(DraftsServiceServicer):
    drafts: dict[str, Draft] = field(default_factory=dict)
    fault: Fault | None = None

    async def GetDraft(self, request: GetDraftRequest, context: Context) -> GetDraftResponse:
        if self.fault:
            raise self.fault
        if request.draft_id not in self.drafts:
            raise NotFound("DRAFT_NOT_FOUND", f"draft {request.draft_id} does not exist")
        return GetDraftResponse(draft=self.drafts[request.draft_id])

    async def CreateDraft(self, request: object, context: Context) -> NoReturn:
        raise AssertionError("Queue changes no draft")

    UpdateDraft = ApproveDraft = BatchCreateDrafts = BatchApproveDrafts = CreateDraft


@dataclass
class FakePublisher(SocialAccountServiceServicer):
    """Knows every account, except those named."""

    missing: set[str] = field(default_factory=set)
    disconnected: set[str] = field(default_factory=set)

    async def GetAccount(self, request: GetAccountRequest, context: Context) -> GetAccountResponse:
        if request.social_account_id in self.missing:
            raise NotFound("ACCOUNT_NOT_FOUND", "no such account")
        is_connected = request.social_account_id not in self.disconnected
        state = SOCIAL_ACCOUNT_STATE_CONNECTED if is_connected else SOCIAL_ACCOUNT_STATE_DISCONNECTED
        return GetAccountResponse(social_account=SocialAccount(id=request.social_account_id, state=state))

    async def ConnectAccount(self, request: object, context: Context) -> NoReturn:
        raise AssertionError("Queue connects no account")

    ListAccounts = ConnectAccount


@dataclass
class Rig:
    """The process as seen from outside: its stub, its neighbours, its streams."""

    stub: Any
    address: str
    schedule: FakeSchedule
    drafts: FakeDrafts
    publisher: FakePublisher
    posts: FakePosts
    nats: Client
    database_url: str
    settings: Settings

    def draft(self, draft_id: str, *targets: tuple[str, str, str]) -> None:
        self.drafts.drafts[draft_id] = Draft(
            id=draft_id,
            revision=1,
            targets=[Target(social_account_id=a, channel=c, destination=d) for a, c, d in targets],
        )

    async def put_schedule(self, account: str, *times: datetime, announce: bool = True, **fields: Any) -> None:
        """Saves a schedule in Schedule. With `announce` the event is published, too."""
        self.schedule.times[account] = list(times)
        given: dict[str, Any] = {
            "time_zone": "UTC",
            "enabled": True,
            "version": 1,
            "tzdata_version": tzdata_version(),
        } | fields
        schedule = self.schedule.schedules[account] = AccountSchedule(social_account_id=account, **given)
        if announce:
            changed = AccountScheduleChanged(organization_id=ORG, account_schedule=schedule)
            await self.announce("schedule", changed, account)

    async def announce(self, context: str, message: Message, aggregate_id: str) -> None:
        event = Event(
            id=Uuid7Source().new(),
            type=message.DESCRIPTOR.full_name,
            organization_id=ORG,
            aggregate_id=aggregate_id,
            payload=message.SerializeToString(),
        )
        await self.publish(context, Envelope(events=[event]).SerializeToString())

    async def publish(self, context: str, payload: bytes) -> None:
        await self.nats.jetstream().publish(events_subject(context, "thing"), payload)

    async def report(self, command: PublishCommand, state: int, version: int, *, state_reason: str = "") -> None:
        changed = PostJobChanged(organization_id=ORG)
        job = changed.post_job
        job.id, job.draft_id, job.version = f"job-{command.draft_id}", command.draft_id, version
        job.state = state  # type: ignore[assignment]
        job.target.CopyFrom(command.target)
        job.slot_id, job.slot_revision = command.slot_id, command.slot_revision
        job.publish_time.CopyFrom(command.schedule_time)
        job.external_url, job.state_reason = "https://example.org/1", state_reason
        await self.announce("publisher", changed, job.id)

    async def rows(self, sql: str) -> list[Any]:
        database = Database(self.database_url, application="test", pool_size=1)
        async with database.statement() as connection:
            found = list((await connection.execute(text(sql))).all())
        await database.dispose()
        return found

    async def messages(self, stream: str) -> Sequence[tuple[str, bytes]]:
        """Returns (subject, payload) of all messages in a stream."""
        js = self.nats.jetstream()
        state = (await js.stream_info(stream)).state
        if not state.messages:
            return []
        found = [await js.get_msg(stream, number) for number in range(state.first_seq, state.last_seq + 1)]
        return [(each.subject or "", each.data or b"") for each in found]

    async def commands(self, count: int) -> list[PublishCommand]:
        return await eventually(lambda: self._commands(count))

    async def _commands(self, count: int) -> list[PublishCommand]:
        found = [PublishCommand.FromString(payload) for _, payload in await self.messages(PUBLISH.name)]
        return found if len(found) >= count else []


def stamp(moment: datetime) -> Timestamp:
    timestamp = Timestamp()
    timestamp.FromDatetime(moment)
    return timestamp


@pytest.fixture
async def rig(database_url: str, fresh_nats: EmbeddedNats) -> AsyncIterator[Rig]:
    schedule, drafts, publisher, posts = FakeSchedule(), FakeDrafts(), FakePublisher(), FakePosts()  # type: ignore[abstract]  # serves what is asked here
    neighbours = [
        await neighbour((add_ScheduleServiceServicer_to_server, schedule)),
        await neighbour((add_DraftsServiceServicer_to_server, drafts)),
        await neighbour(
            (add_SocialAccountServiceServicer_to_server, publisher), (add_PublisherServiceServicer_to_server, posts)
        ),
    ]
    settings = Settings(
        listen="127.0.0.1:0",
        database_url=Secret(database_url),
        nats_url=fresh_nats.url,
        schedule_target=f"127.0.0.1:{neighbours[0].port}",
        drafts_target=f"127.0.0.1:{neighbours[1].port}",
        publisher_target=f"127.0.0.1:{neighbours[2].port}",
    )
    process = await compose(settings)
    nats = Client()
    await nats.connect(fresh_nats.url)
    async with running(process) as channel:
        assert isinstance(process.server, RpcServer)
        address = f"127.0.0.1:{process.server.port}"
        yield Rig(QueueServiceStub(channel), address, schedule, drafts, publisher, posts, nats, database_url, settings)
    await nats.close()
    for server in neighbours:
        await server.stop(0)


async def neighbour(*servicers: tuple[Callable[[Any, Any], None], Any]) -> RpcServer:
    server = RpcServer(listen="127.0.0.1:0", servicers=servicers, ids=Uuid7Source())
    await server.start()
    await server.set_serving(serving=True)
    return server


@pytest.fixture
def refusal() -> Callable[[Awaitable[object]], Awaitable[Fault]]:
    async def refused(call: Awaitable[object]) -> Fault:
        with pytest.raises(Fault) as fault, calling():
            await call
        return fault.value

    return refused
