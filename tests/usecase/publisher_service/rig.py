"""A whole publisher process on the test's loop: real database, real stream, real HTTP to the sandbox."""

import base64
import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import nats
from google.protobuf.message import Message
from nats.aio.client import Client
from sqlalchemy import Row, text

from devstack.sandbox.client import SandboxClient
from devstack.sandbox.provider import Sandbox
from devstack.servers.nats import EmbeddedNats
from postflow.bus.v1 import bus_pb2
from postflow.drafts.v1 import draft_pb2, drafts_events_pb2
from postflow.publisher.v1 import hold_pb2, publisher_events_pb2, publisher_service_pb2, social_account_service_pb2
from postflow.publisher.v1.notification_service_pb2_grpc import NotificationServiceStub
from postflow.publisher.v1.publisher_service_pb2_grpc import PublisherServiceStub
from postflow.publisher.v1.social_account_service_pb2_grpc import SocialAccountServiceStub
from postflow.queue.v1 import publish_command_pb2, queue_events_pb2
from postflow.target.v1 import target_pb2
from publisher_service.main import compose
from publisher_service.settings import Settings
from servicekit.clock import SystemClock
from servicekit.ids import Uuid7Source
from servicekit.pg.database import Database
from servicekit.run.settings import Secret
from testkit.eventually import eventually
from testkit.processes import running
from topology import events_subject, publish_subject

ORGANIZATION = "acme"
KEY = Secret(base64.b64encode(bytes(range(32))).decode())

LATE_LIMIT = timedelta(hours=24)

Start = Callable[..., AbstractAsyncContextManager["Rig"]]


@dataclass
class Rig:
    """A running process: says what the other services would say to it, and reads what it did."""

    database: Database
    client: Client
    sandbox: SandboxClient
    publisher: Any
    accounts: Any
    notifications: Any
    ids: Uuid7Source = field(default_factory=Uuid7Source)
    sequences: dict[str, int] = field(default_factory=dict)
    clock: SystemClock = field(default_factory=SystemClock)

    async def connect(
        self, account: str = "page", *, organization: str = ORGANIZATION, token: str = "sandbox-ok", refresh: str = ""
    ) -> None:
        await self.accounts.ConnectAccount(
            social_account_service_pb2.ConnectAccountRequest(
                organization_id=organization,
                social_account_id=account,
                provider="sandbox",
                external_account_id=f"ext-{account}",
                credentials=social_account_service_pb2.Credentials(access_token=token, refresh_token=refresh),
            )
        )

    async def save_draft(
        self,
        draft: str,
        *accounts: str,
        said: str = "hello",
        revision: int = 1,
        version: int | None = None,
        approved: bool = True,
        organization: str = ORGANIZATION,
    ) -> None:
        content = draft_pb2.DraftContent(text=said).SerializeToString(deterministic=True)
        await self.announce(
            "drafts",
            "draft",
            drafts_events_pb2.DraftSaved(
                organization_id=organization,
                draft_id=draft,
                version=revision if version is None else version,
                revision=revision,
                content=content,
                content_digest=hashlib.sha256(content).hexdigest(),
                approved=approved,
                targets=[_target(account) for account in accounts or ("page",)],
            ),
            organization,
        )

    async def schedule(
        self, draft: str, due: datetime, *, account: str = "page", slot: str | None = None, knowing: int = 0
    ) -> str:
        """Announces a slot; `knowing` is the revision of the draft that Queue knew."""
        slot = slot or self.new_slot()
        scheduled = self.scheduled(draft, slot, due, account=account)
        scheduled.content_revision = knowing
        await self.announce("queue", "slot", scheduled, ORGANIZATION)
        return slot

    def new_slot(self) -> str:
        """Returns the id of a slot that is newer than all before."""
        slot = self.ids.new()
        self.sequences[slot] = len(self.sequences) + 1
        return slot

    async def move(self, draft: str, slot: str, due: datetime, *, revision: int = 2) -> None:
        await self.announce("queue", "slot", self.moved(draft, slot, due, revision=revision), ORGANIZATION)

    def scheduled(
        self, draft: str, slot: str, due: datetime, *, account: str = "page"
    ) -> queue_events_pb2.SlotScheduled:
        message = queue_events_pb2.SlotScheduled(
            organization_id=ORGANIZATION,
            slot_id=slot,
            revision=1,
            draft_id=draft,
            social_account_id=account,
            targets=[_target(account)],
            slot_sequence=self.sequences.get(slot, 0),
        )
        message.schedule_time.FromDatetime(due)
        message.not_after.FromDatetime(due + LATE_LIMIT)
        return message

    def moved(self, draft: str, slot: str, due: datetime, *, revision: int = 2) -> queue_events_pb2.SlotMoved:
        message = queue_events_pb2.SlotMoved(
            organization_id=ORGANIZATION,
            slot_id=slot,
            revision=revision,
            draft_id=draft,
            social_account_id="page",
            targets=[_target("page")],
            time_zone="UTC",
            reason=queue_events_pb2.SLOT_MOVE_REASON_ZONE_DATA,
            slot_sequence=self.sequences.get(slot, 0),
        )
        message.schedule_time.FromDatetime(due)
        message.not_after.FromDatetime(due + LATE_LIMIT)
        return message

    async def cancel(self, draft: str, slot: str, *, revision: int) -> None:
        await self.announce("queue", "slot", self.canceled(draft, slot, revision=revision), ORGANIZATION)

    def canceled(self, draft: str, slot: str, *, revision: int) -> queue_events_pb2.SlotCanceled:
        return queue_events_pb2.SlotCanceled(
            organization_id=ORGANIZATION,
            slot_id=slot,
            revision=revision,
            draft_id=draft,
            social_account_id="page",
            targets=[_target("page")],
            slot_sequence=self.sequences.get(slot, 0),
            reason=queue_events_pb2.SLOT_CANCEL_REASON_REMOVED,
        )

    async def command(
        self,
        draft: str,
        slot: str,
        due: datetime,
        *,
        account: str = "page",
        organization: str = ORGANIZATION,
        **fields: Any,
    ) -> None:
        message = self.command_message(draft, slot, due, account=account, organization=organization, **fields)
        await self.client.jetstream().publish(publish_subject(organization, account), message.SerializeToString())

    def command_message(
        self,
        draft: str,
        slot: str,
        due: datetime,
        *,
        account: str = "page",
        emission: int = 1,
        revision: int = 1,
        slot_revision: int = 1,
        not_after: datetime | None = None,
        organization: str = ORGANIZATION,
    ) -> publish_command_pb2.PublishCommand:
        message = publish_command_pb2.PublishCommand(
            organization_id=organization,
            slot_id=slot,
            slot_revision=slot_revision,
            emission=emission,
            draft_id=draft,
            target=_target(account),
            content_revision=revision,
            max_attempts=5,
            slot_sequence=self.sequences.get(slot, 0),
        )
        message.schedule_time.FromDatetime(due)
        message.not_after.FromDatetime(not_after or due + LATE_LIMIT)
        return message

    async def announce(self, context: str, aggregate: str, message: Message, organization: str) -> None:
        await self.announce_together(context, aggregate, [message], organization)

    async def announce_together(
        self, context: str, aggregate: str, messages: Sequence[Message], organization: str
    ) -> None:
        """Announces the messages in one envelope."""
        events = [
            bus_pb2.Event(
                id=self.ids.new(),
                type=message.DESCRIPTOR.full_name,
                organization_id=organization,
                payload=message.SerializeToString(),
            )
            for message in messages
        ]
        envelope = bus_pb2.Envelope(events=events).SerializeToString()
        await self.client.jetstream().publish(events_subject(context, aggregate), envelope)

    async def go(self, draft: str, *, account: str = "page", due: datetime | None = None, revision: int = 1) -> str:
        """Announces a slot together with its command."""
        due = due or self.clock.now()
        slot = await self.schedule(draft, due, account=account)
        await self.command(draft, slot, due, account=account, revision=revision)
        return slot

    async def post_many(
        self, count: int, *, account: str = "page", prefix: str = "d", due: datetime | None = None
    ) -> list[str]:
        """Announces drafts, slots and commands of posts that are all due at once, on one account."""
        names = [f"{prefix}{number}" for number in range(count)]
        due = due or self.clock.now()
        for name in names:
            await self.save_draft(name, account)
        slots = {name: await self.schedule(name, due, account=account) for name in names}
        for name, slot in slots.items():
            await self.command(name, slot, due, account=account)
        return names

    async def job(self, draft: str, account: str = "page", *, part: int = 0) -> Row[Any]:
        rows = await self.rows(
            "select * from post_job where draft_id = :draft and social_account_id = :account and part = :part",
            draft=draft,
            account=account,
            part=part,
        )
        assert rows, f"no post job of {draft} yet"
        return rows[0]

    async def in_state(self, state: str, draft: str, account: str = "page", *, within: float = 10) -> Row[Any]:
        async def found() -> Row[Any]:
            job = await self.job(draft, account)
            assert job.state == state, f"{job.state} {job.state_reason} {job.error_reason} {job.error_message}"
            return job

        return await eventually(found, within=within)

    async def all_in(self, state: str, count: int, *, reason: str = "", within: float = 60) -> None:
        """Waits until `count` posts are in the state, for the reason."""

        async def reached() -> bool:
            rows = await self.rows("select state, state_reason, count(*) as n from post_job group by 1, 2")
            found = {(row.state, row.state_reason): row.n for row in rows}
            assert found.get((state, reason), 0) == count, found
            return True

        await eventually(reached, within=within)

    async def attempts(self, job: Row[Any]) -> list[Row[Any]]:
        return await self.rows("select * from attempt where post_job_id = :job order by fence", job=job.id)

    async def announced(self, draft: str) -> list[publisher_events_pb2.PostJobChanged]:
        """Returns the changes of a draft's jobs that were announced, oldest first."""
        events = [
            event
            for row in await self.rows("select payload from outbox order by position")
            for event in bus_pb2.Envelope.FromString(row.payload).events
            if event.type == publisher_events_pb2.PostJobChanged.DESCRIPTOR.full_name
        ]
        changes = [publisher_events_pb2.PostJobChanged.FromString(event.payload) for event in events]
        return [change for change in changes if change.post_job.draft_id == draft]

    async def kinds(self, draft: str) -> list[str]:
        prefix = len("POST_JOB_EVENT_KIND_")
        return [
            publisher_events_pb2.PostJobEventKind.Name(change.kind)[prefix:] for change in await self.announced(draft)
        ]

    async def publish_stream_is_empty(self) -> bool:
        return (await self.client.jetstream().stream_info("PUBLISH")).state.messages == 0

    async def rows(self, statement: str, **values: object) -> list[Row[Any]]:
        async with self.database.read() as connection:
            return list(await connection.execute(text(statement), values))

    async def write(self, statement: str, **values: object) -> None:
        """Changes rows without the process knowing."""
        async with self.database.transaction() as tx:
            await tx.connection.execute(text(statement), values)

    async def hold(self, account: str = "page", *, revision: int = 0) -> publisher_service_pb2.PutHoldResponse:
        response = await self.publisher.PutHold(
            publisher_service_pb2.PutHoldRequest(
                organization_id=ORGANIZATION,
                hold_id=f"hold-{account}",
                scope=hold_pb2.HOLD_SCOPE_ACCOUNT,
                scope_id=account,
                revision=revision,
                reason="wrong price",
            )
        )
        assert isinstance(response, publisher_service_pb2.PutHoldResponse)
        return response

    async def release(self, account: str = "page", *, revision: int = 0) -> None:
        await self.publisher.ReleaseHold(
            publisher_service_pb2.ReleaseHoldRequest(
                organization_id=ORGANIZATION, hold_id=f"hold-{account}", revision=revision
            )
        )

    async def retry(self, job_id: str) -> None:
        await self.publisher.RetryPostJob(
            publisher_service_pb2.RetryPostJobRequest(organization_id=ORGANIZATION, post_job_id=job_id)
        )

    async def take_back(
        self, draft: str, slot: str, *, revision: int = 1
    ) -> publisher_service_pb2.CancelPostJobsResponse:
        post = publisher_service_pb2.SlotPost(
            draft_id=draft,
            target=_target("page"),
            slot_id=slot,
            slot_revision=revision,
            slot_sequence=self.sequences.get(slot, 0),
        )
        response = await self.publisher.CancelPostJobs(
            publisher_service_pb2.CancelPostJobsRequest(organization_id=ORGANIZATION, posts=[post])
        )
        assert isinstance(response, publisher_service_pb2.CancelPostJobsResponse)
        return response

    async def withdraw(self, draft: str, below: int) -> publisher_service_pb2.WithdrawContentResponse:
        response = await self.publisher.WithdrawContent(
            publisher_service_pb2.WithdrawContentRequest(
                organization_id=ORGANIZATION, draft_id=draft, below_revision=below
            )
        )
        assert isinstance(response, publisher_service_pb2.WithdrawContentResponse)
        return response


def starting(url: str, broker: EmbeddedNats, sandbox: Sandbox) -> Start:
    control = SandboxClient(sandbox.url, sandbox.path)

    @asynccontextmanager
    async def start(**overrides: Any) -> AsyncIterator[Rig]:
        settings: dict[str, Any] = {
            "database_url": Secret(url),
            "credentials_key": KEY,
            "listen": "127.0.0.1:0",
            "metrics_listen": "127.0.0.1:0",
            "nats_url": broker.url,
            "sandbox_url": sandbox.url,
            "request_timeout": timedelta(seconds=1),
            "lease_margin": timedelta(seconds=1),
            "unknown_settle": timedelta(milliseconds=200),
            "lookup_again": timedelta(milliseconds=300),
            "retry_first": timedelta(milliseconds=100),
            "sweep_period": timedelta(milliseconds=100),
            "grace": timedelta(seconds=5),
        }
        async with AsyncExitStack() as stack:
            database = Database(url, application="test")
            stack.push_async_callback(database.dispose)
            client = await nats.connect(broker.url)
            stack.push_async_callback(client.close)
            channel = await stack.enter_async_context(running(await compose(Settings(**settings | overrides))))
            yield Rig(
                database=database,
                client=client,
                sandbox=control,
                publisher=PublisherServiceStub(channel),
                accounts=SocialAccountServiceStub(channel),
                notifications=NotificationServiceStub(channel),
            )

    return start


def _target(account: str) -> target_pb2.Target:
    return target_pb2.Target(social_account_id=account, channel="facebook")
