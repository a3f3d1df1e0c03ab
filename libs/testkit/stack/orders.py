"""Orders to Publisher of one organization: says what Queue, Drafts and callers say, without these services."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import grpc
from google.protobuf.message import Message
from nats.aio.client import Client

from devstack.sandbox.client import SandboxClient
from postflow.bus.v1 import bus_pb2
from postflow.drafts.v1 import draft_pb2, drafts_events_pb2
from postflow.publisher.v1 import (
    destination_pb2,
    hold_pb2,
    notification_pb2,
    notification_service_pb2,
    post_job_pb2,
    publisher_admin_service_pb2,
    publisher_service_pb2,
    social_account_service_pb2,
)
from postflow.publisher.v1.notification_service_pb2_grpc import NotificationServiceStub
from postflow.publisher.v1.publisher_admin_service_pb2_grpc import PublisherAdminServiceStub
from postflow.publisher.v1.publisher_service_pb2_grpc import PublisherServiceStub
from postflow.publisher.v1.social_account_service_pb2_grpc import SocialAccountServiceStub
from postflow.queue.v1 import publish_command_pb2, queue_events_pb2
from postflow.target.v1 import target_pb2
from servicekit.clock import SystemClock
from servicekit.ids import Uuid7Source
from servicekit.timestamps import timestamp
from testkit.eventually import eventually
from testkit.stack.tenant import TOKEN, target
from topology import events_subject, publish_subject

CLASSES = ("keyed", "lookup", "blind", "container")
"""Classes of providers, by what can be proven there; an account is named after its class."""
_PROVIDERS = {"container": "sandbox-container"}
"""The other classes are modes of accounts of one provider."""
CHAT = "chat"
"""The destination of posts of accounts named `...-chat`; those named `...-mail` send e-mails, all others post."""
LATE_LIMIT = timedelta(hours=1)
REDIRECT_URI = "http://localhost/connected"


class Caller:
    """A client of one publisher process."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.posts = PublisherServiceStub(channel)
        self.accounts = SocialAccountServiceStub(channel)
        self.admin = PublisherAdminServiceStub(channel)
        self.notifications = NotificationServiceStub(channel)


class Orders:
    """The calls go to the process that each names; `forbidden` are the texts that must not go out any more."""

    def __init__(self, organization_id: str, bus: Client, sandbox: SandboxClient) -> None:
        self.organization_id = organization_id
        self.forbidden: set[str] = set()
        self.slots: dict[str, tuple[str, datetime]] = {}
        self.rotating: list[str] = []
        self._backs: dict[str, dict[str, str]] = {}
        self._bus = bus
        self._sandbox = sandbox
        self._ids = Uuid7Source()

    def external(self, account: str) -> str:
        return f"{self.organization_id}.{account}"

    async def connect(self, caller: Caller, account: str, *, again: str = "") -> None:
        """Connects an account, whose class is the part of its name before a hyphen."""
        await self.play(account)
        kind = account.partition("-")[0]
        await caller.accounts.ConnectAccount(
            social_account_service_pb2.ConnectAccountRequest(
                organization_id=self.organization_id,
                social_account_id=account,
                provider=_PROVIDERS.get(kind, "sandbox"),
                external_account_id=self.external(account),
                credentials=social_account_service_pb2.Credentials(access_token=TOKEN),
                request_id=f"connect-{account}-{again}",
            )
        )

    async def connect_rotating(self, caller: Caller, account: str, *, grace: float) -> None:
        """Connects an account whose refresh tokens are good for one use."""
        await self.play(account)
        pair = await self._sandbox.issue_token(self.external(account), seconds=3600, rotating=True, grace=grace)
        await caller.accounts.ConnectAccount(
            social_account_service_pb2.ConnectAccountRequest(
                organization_id=self.organization_id,
                social_account_id=account,
                provider="sandbox",
                external_account_id=self.external(account),
                credentials=social_account_service_pb2.Credentials(
                    access_token=pair["access_token"],
                    refresh_token=pair["refresh_token"],
                    expire_time=timestamp(SystemClock().now() + timedelta(hours=1)),
                ),
            )
        )
        self.rotating.append(account)

    async def refresh(self, caller: Caller, account: str) -> None:
        await caller.accounts.RefreshCredentials(
            social_account_service_pb2.RefreshCredentialsRequest(
                organization_id=self.organization_id, social_account_id=account, request_id=f"refresh-{account}"
            )
        )

    async def generation(self, caller: Caller, account: str) -> int:
        response = await caller.accounts.GetAccount(
            social_account_service_pb2.GetAccountRequest(
                organization_id=self.organization_id, social_account_id=account
            )
        )
        return response.social_account.credentials_info.generation

    async def visit(self, caller: Caller, account: str, *, again: str = "") -> None:
        """Begins a visit for the account, and has a person agree."""
        await self.play(account)
        begun = await caller.accounts.StartConnect(
            social_account_service_pb2.StartConnectRequest(
                organization_id=self.organization_id,
                provider="sandbox",
                redirect_uri=REDIRECT_URI,
                social_account_id=account,
                request_id=f"visit-{account}-{again}",
            )
        )
        self._backs[account] = await self._sandbox.agree(begun.authorization_url, self.external(account))

    async def come_back(self, caller: Caller, account: str) -> None:
        back = self._backs[account]
        await caller.accounts.FinishConnect(
            social_account_service_pb2.FinishConnectRequest(
                organization_id=self.organization_id,
                state=back["state"],
                code=back["code"],
                request_id=f"back-{account}-{back['code']}",
            )
        )

    async def connect_by_visit(self, caller: Caller, account: str) -> None:
        """Visits until the account is connected: a visit that was interrupted has to begin again."""
        if account not in self._backs:
            await self.visit(caller, account)
        try:
            await self.come_back(caller, account)
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.FAILED_PRECONDITION:
                raise
            await self.visit(caller, account, again="again")
            await self.come_back(caller, account)

    def tokens(self) -> list[Mapping[str, object]]:
        """Returns what the provider has been asked for tokens."""
        return [line for line in self._sandbox.ledger() if line.get("operation") == "token"]

    async def play(self, account: str) -> None:
        """Has the provider play the class of the account."""
        kind = account.partition("-")[0]
        if kind not in _PROVIDERS:
            await self._sandbox.mode(self.external(account), kind)

    async def name(self, caller: Caller, account: str, name: str) -> None:
        await caller.accounts.UpdateAccount(
            social_account_service_pb2.UpdateAccountRequest(
                organization_id=self.organization_id,
                social_account_id=account,
                display_name=name,
                request_id=f"name-{name}",
            )
        )

    async def disconnect(self, caller: Caller, account: str, name: str) -> None:
        await caller.accounts.DisconnectAccount(
            social_account_service_pb2.DisconnectAccountRequest(
                organization_id=self.organization_id, social_account_id=account, request_id=f"disconnect-{name}"
            )
        )

    async def faults(self, fault: str, *accounts: str, **fields: object) -> None:
        """Has the provider fail for these accounts, until the next call."""
        rules = [{"fault": fault, "account": self.external(account), **fields} for account in accounts]
        await self._sandbox.faults(*rules)

    def effects(self, account: str = "") -> Sequence[Mapping[str, object]]:
        accounts = f"{self.organization_id}."
        lines = [line for line in self._sandbox.ledger() if line["account"].startswith(accounts)]
        of_account = (line for line in lines if not account or line["account"] == self.external(account))
        return [line for line in of_account if line["kind"] == "effect"]

    # as Drafts and Queue

    async def write(self, draft: str, account: str, *, revision: int = 1, comments: int = 0) -> str:
        """Announces a draft, approved, and returns its text."""
        saved = self._saved(draft, account, revision, comments)
        await self._announce("drafts", "draft", saved)
        return draft_pb2.DraftContent.FromString(saved.content).text

    def _saved(self, draft: str, account: str, revision: int, comments: int = 0) -> drafts_events_pb2.DraftSaved:
        said = f"{draft} of {self.organization_id}, revision {revision}"
        follow_ups = [
            draft_pb2.FollowUp(channel=_place(account).channel, text=f"comment {number} on {said}")
            for number in range(1, comments + 1)
        ]
        content = draft_pb2.DraftContent(text=said, follow_ups=follow_ups).SerializeToString(deterministic=True)
        return drafts_events_pb2.DraftSaved(
            organization_id=self.organization_id,
            draft_id=draft,
            version=revision,
            revision=revision,
            content=content,
            content_digest=hashlib.sha256(content).hexdigest(),
            approved=True,
            targets=[_place(account)],
        )

    async def schedule(self, draft: str, account: str, *, ahead: float = 0.0) -> None:
        slot, due = self._ids.new(), SystemClock().now() + timedelta(seconds=ahead)
        self.slots[draft] = slot, due
        message = queue_events_pb2.SlotScheduled(
            organization_id=self.organization_id,
            slot_id=slot,
            revision=1,
            draft_id=draft,
            social_account_id=account,
            targets=[_place(account)],
            slot_sequence=len(self.slots),
        )
        message.schedule_time.CopyFrom(timestamp(due))
        message.not_after.CopyFrom(timestamp(due + LATE_LIMIT))
        await self._announce("queue", "slot", message)

    async def command(
        self, draft: str, account: str, *, revision: int = 1, emission: int = 1, known_job_version: int = 0
    ) -> None:
        slot, due = self.slots.setdefault(draft, (self._ids.new(), SystemClock().now()))
        message = publish_command_pb2.PublishCommand(
            organization_id=self.organization_id,
            slot_id=slot,
            slot_revision=1,
            slot_sequence=len(self.slots),
            emission=emission,
            draft_id=draft,
            target=_place(account),
            schedule_time=timestamp(due),
            not_after=timestamp(due + LATE_LIMIT),
            content_revision=revision,
            max_attempts=5,
            known_job_version=known_job_version,
        )
        subject = publish_subject(self.organization_id, account)
        await self._bus.jetstream().publish(subject, message.SerializeToString())

    async def garbage(self, account: str, number: int) -> None:
        """Puts what is no command where the commands of the account are."""
        subject = publish_subject(self.organization_id, account)
        await self._bus.jetstream().publish(subject, f"garbage {number} of {self.organization_id}".encode())

    async def post(self, caller: Caller, draft: str, account: str) -> None:
        """Has a post go out now; its command comes after its events, as nearly always."""
        await self.write(draft, account)
        await self.schedule(draft, account)
        await self.until(caller, draft, "SCHEDULED")
        await self.command(draft, account)

    async def post_on_each(self, caller: Caller, name: str, *accounts: str, comments: int = 0) -> None:
        drafts = {account: f"{name}-{account}" for account in accounts}
        for account, draft in drafts.items():
            await self.write(draft, account, comments=comments)
            await self.schedule(draft, account)
        for draft in drafts.values():
            await self.until(caller, draft, "SCHEDULED")
        for account, draft in drafts.items():
            await self.command(draft, account)

    async def _announce(self, context: str, aggregate: str, message: Message) -> None:
        event = bus_pb2.Event(
            id=self._ids.new(),
            type=message.DESCRIPTOR.full_name,
            organization_id=self.organization_id,
            payload=message.SerializeToString(),
        )
        envelope = bus_pb2.Envelope(events=[event]).SerializeToString()
        await self._bus.jetstream().publish(events_subject(context, aggregate), envelope)

    # as callers

    async def job(self, caller: Caller, draft: str) -> post_job_pb2.PostJob:
        """Waits until the draft has a job and returns it."""

        async def made() -> post_job_pb2.PostJob:
            answer = await caller.posts.ListPostJobs(
                publisher_service_pb2.ListPostJobsRequest(organization_id=self.organization_id, draft_id=draft)
            )
            assert answer.post_jobs, f"no job of {draft} yet"
            job: post_job_pb2.PostJob = answer.post_jobs[0]
            return job

        return await eventually(made, within=30)

    async def until(self, caller: Caller, draft: str, state: str) -> post_job_pb2.PostJob:
        async def reached() -> post_job_pb2.PostJob:
            job = await self.job(caller, draft)
            shown = post_job_pb2.PostJobState.Name(job.state)
            assert shown == f"POST_JOB_STATE_{state}", f"{draft} is {shown} {job.state_reason}, not {state}"
            return job

        return await eventually(reached, within=30)

    async def hold(self, caller: Caller, account: str, *, revision: int = 1) -> None:
        await caller.posts.PutHold(
            publisher_service_pb2.PutHoldRequest(
                organization_id=self.organization_id,
                hold_id=f"hold-{account}",
                scope=hold_pb2.HOLD_SCOPE_ACCOUNT,
                scope_id=account,
                revision=revision,
                reason="a test",
                request_id=f"hold-{account}-{revision}",
            )
        )

    async def hold_all(self, caller: Caller, *, revision: int, end_time: datetime | None = None) -> None:
        """Holds everything of the organization, under a hold that `release` knows as that of `all`."""
        await caller.posts.PutHold(
            publisher_service_pb2.PutHoldRequest(
                organization_id=self.organization_id,
                hold_id="hold-all",
                scope=hold_pb2.HOLD_SCOPE_ORGANIZATION,
                revision=revision,
                reason="a test",
                request_id=f"hold-all-{revision}",
                end_time=timestamp(end_time),
            )
        )

    async def release(self, caller: Caller, account: str, *, revision: int = 2) -> None:
        await caller.posts.ReleaseHold(
            publisher_service_pb2.ReleaseHoldRequest(
                organization_id=self.organization_id,
                hold_id=f"hold-{account}",
                revision=revision,
                request_id=f"release-{account}-{revision}",
            )
        )

    async def cancel(self, caller: Caller, draft: str, account: str) -> None:
        """Takes a post back that has not begun."""
        slot, _ = self.slots[draft]
        post = publisher_service_pb2.SlotPost(
            draft_id=draft, target=target(account), slot_id=slot, slot_revision=1, slot_sequence=len(self.slots)
        )
        answer = await caller.posts.CancelPostJobs(
            publisher_service_pb2.CancelPostJobsRequest(
                organization_id=self.organization_id, posts=[post], request_id=f"cancel-{draft}"
            )
        )
        assert answer.results[0].outcome == publisher_service_pb2.CANCEL_OUTCOME_CANCELED

    async def withdraw(self, caller: Caller, draft: str, *, below: int) -> None:
        answer = await caller.posts.WithdrawContent(
            publisher_service_pb2.WithdrawContentRequest(
                organization_id=self.organization_id, draft_id=draft, below_revision=below
            )
        )
        assert answer.outcome == publisher_service_pb2.WITHDRAW_OUTCOME_WITHDRAWN

    async def retry(self, caller: Caller, draft: str) -> None:
        job = await self.job(caller, draft)
        await caller.posts.RetryPostJob(
            publisher_service_pb2.RetryPostJobRequest(
                organization_id=self.organization_id, post_job_id=job.id, request_id=f"retry-{draft}"
            )
        )

    async def publish_now(self, caller: Caller, draft: str, account: str) -> None:
        answer = await caller.posts.PublishNow(
            publisher_service_pb2.PublishNowRequest(
                organization_id=self.organization_id,
                draft=self._saved(draft, account, 1),
                targets=[target(account)],
                request_id=f"now-{draft}",
            )
        )
        (result,) = answer.results
        assert result.outcome == publisher_service_pb2.PUBLISH_NOW_OUTCOME_STARTED, result

    async def replay(self, caller: Caller) -> None:
        await caller.admin.ReplayPostJobEvents(
            publisher_admin_service_pb2.ReplayPostJobEventsRequest(organization_id=self.organization_id)
        )

    async def switch(self, caller: Caller, account: str, state: destination_pb2.DestinationState) -> None:
        """Says whether posts go to the chat of the account."""
        await caller.posts.UpdateDestination(
            publisher_service_pb2.UpdateDestinationRequest(
                organization_id=self.organization_id, target=_place(account), state=state
            )
        )

    async def notify(self, caller: Caller, people: str) -> None:
        """Says who gets mails, and sends a test to them."""
        email = f"{people}@example.com"
        await caller.notifications.PutRecipients(
            notification_service_pb2.PutRecipientsRequest(
                organization_id=self.organization_id,
                recipient_list=notification_pb2.RecipientList(
                    recipients=[notification_pb2.Recipient(email=email, role=notification_pb2.RECIPIENT_ROLE_ADMIN)]
                ),
                request_id=f"put-{people}",
            )
        )
        await caller.notifications.SendTestNotification(
            notification_service_pb2.SendTestNotificationRequest(
                organization_id=self.organization_id, email=email, request_id=f"test-{people}"
            )
        )

    async def delivered(self, caller: Caller) -> Sequence[str]:
        """Returns the addresses of all mails, once each of them has been delivered."""

        async def all_delivered() -> Sequence[str]:
            found = await caller.notifications.ListDeliveries(
                notification_service_pb2.ListDeliveriesRequest(organization_id=self.organization_id)
            )
            states = {each.state for each in found.deliveries}
            assert states == {notification_pb2.DELIVERY_STATE_DELIVERED}, found.deliveries
            return [each.email for each in found.deliveries]

        return await eventually(all_delivered, within=120)

    async def resolve(self, caller: Caller, draft: str, account: str) -> None:
        """Says truly that the post of unknown outcome is out."""
        job = await self.job(caller, draft)
        (effect,) = (each for each in self.effects(account) if str(each["idempotency_key"]).startswith(job.id))
        await caller.posts.ResolvePostJob(
            publisher_service_pb2.ResolvePostJobRequest(
                organization_id=self.organization_id,
                post_job_id=job.id,
                outcome=publisher_service_pb2.RESOLVE_OUTCOME_PUBLISHED,
                external_id=str(effect["id"]),
                resolver="ann",
                request_id=f"resolve-{draft}",
            )
        )


def _place(account: str) -> target_pb2.Target:
    if account.endswith("-mail"):
        return target(account, channel="email", destination="ann@example.org")
    return target(account, destination=CHAT if account.endswith(f"-{CHAT}") else "")
