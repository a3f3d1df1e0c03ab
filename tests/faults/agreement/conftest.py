"""Drafts, Queue and Publisher in one process, with everything between them under the test's control."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import text

from drafts_service.application.account_obstacles import AccountObstacles
from drafts_service.application.approve_draft import ApproveDraft, DraftApproval
from drafts_service.application.complete_withdrawals import CompleteWithdrawals
from drafts_service.application.content_check import ContentCheck
from drafts_service.application.create_draft import CreateDraft, DraftCreation
from drafts_service.application.get_draft import GetDraft
from drafts_service.application.keep_accounts import KeepAccounts
from drafts_service.application.keep_refusals import KeepRefusals
from drafts_service.application.known_rules import KnownRules
from drafts_service.application.reflect_post_jobs import ReflectPostJobs
from drafts_service.application.update_draft import UpdateDraft
from drafts_service.domain.channel_rules import Rules
from drafts_service.domain.content import Content
from drafts_service.domain.draft import Change, GivenApproval, GivenDraft, UpdatedDraft
from drafts_service.domain.media import Inspected
from drafts_service.domain.target import Target
from drafts_service.entrypoints.events import routes as drafts_routes
from drafts_service.wire import drafts as drafts_drafts
from drafts_service.wire import events as drafts_events
from postflow.bus.v1 import bus_pb2
from postflow.drafts.v1.draft_pb2 import Draft
from postflow.drafts.v1.drafts_events_pb2 import DraftSaved
from postflow.publisher.v1.publisher_service_pb2 import WithdrawContentResponse
from postflow.queue.v1.publish_command_pb2 import PublishCommand
from publisher_service.application.cancel_post_jobs import CancelPostJobs
from publisher_service.application.claim_jobs import ClaimJobs
from publisher_service.application.drop_slots import DropSlots
from publisher_service.application.late_evidence import LateEvidence
from publisher_service.application.publish_now import PublishNow
from publisher_service.application.recover_jobs import RecoverJobs
from publisher_service.application.save_drafts import SaveDrafts
from publisher_service.application.send_post import Sent
from publisher_service.application.settle_posts import SettlePosts
from publisher_service.application.take_slots import TakeSlots
from publisher_service.application.withdraw_content import WithdrawContent
from publisher_service.domain.claim import Claimed, Lane
from publisher_service.domain.outcome import Outcome
from publisher_service.domain.policy import Policy as PublishPolicy
from publisher_service.domain.publish_now import UrgentPosts
from publisher_service.entrypoints.events import routes as publisher_routes
from publisher_service.wire.commands import command_from
from publisher_service.wire.events import saved_draft_from
from publisher_service.wire.posts import withdraw_response
from publisher_service.wire.take_backs import cancel_response, slot_posts_from
from queue_service.application.account_check import AccountCheck
from queue_service.application.account_lock import AccountLock
from queue_service.application.arranger import Arranger
from queue_service.application.book_requested_times import RequestedTimes
from queue_service.application.draft_finder import DraftFinder
from queue_service.application.follow_drafts import FollowDrafts
from queue_service.application.hand_over import HandOver
from queue_service.application.outstanding import Outstanding
from queue_service.application.remove_from_queue import Removal, RemoveFromQueue
from queue_service.application.schedule_at import ExactOrder, ScheduleAt
from queue_service.application.settle_slots import SettleSlots
from queue_service.application.slot_booker import SlotBooker
from queue_service.application.slot_mover import SlotMover
from queue_service.application.slot_recorder import SlotRecorder
from queue_service.application.take_back import TakeBack
from queue_service.domain.policy import Policy as QueuePolicy
from queue_service.domain.stream import Hearing, Holding, Room
from queue_service.entrypoints.events import routes as queue_routes
from queue_service.wire.commands import publish_command
from queue_service.wire.drafts import draft as queued_draft
from queue_service.wire.take_backs import cancel_answer, cancel_posts_request
from servicekit.clock import SystemClock
from servicekit.faults import Refused, Unavailable
from servicekit.ids import Uuid7Source
from servicekit.messaging.routes import Received, Routes
from servicekit.pg.clock import SteadyClock
from servicekit.pg.database import Database
from servicekit.pg.ledger import Call, RequestLedger
from servicekit.pg.outbox import Outbox
from testkit.calls import call
from testkit.database_clocks import FrozenDatabaseClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from sqlalchemy import Row

    from drafts_service.domain.withdrawal import WithdrawalAnswer
    from publisher_service.domain.publish_now import UrgentPost
    from queue_service.domain.command import Command, SentCommand
    from queue_service.domain.draft import Draft as QueuedDraft
    from queue_service.domain.take_back import CancelAnswer, SlotPost

ORG = "acme"
_LANES = [Lane(provider="sandbox", room=1000, lease=timedelta(seconds=30))]


class Site:
    """A service's database, its announcements, and the events that wait to be delivered to it."""

    def __init__(self, database: Database, clock: FrozenDatabaseClock) -> None:
        self.database, self.clock = database, clock
        self.outbox = Outbox(Uuid7Source(), lambda rows: None)
        self.routes = Routes([])
        self.waiting: list[bus_pb2.Event] = []
        self.position = 0

    async def announced(self) -> list[bus_pb2.Event]:
        """Returns the announcements since the last call."""
        rows = await self.rows("select position, payload from outbox where position > :position order by position",
                               position=self.position)  # fmt: skip
        self.position = rows[-1].position if rows else self.position
        return [event for row in rows for event in bus_pb2.Envelope.FromString(row.payload).events]

    async def receive(self, events: Sequence[bus_pb2.Event]) -> None:
        read = [each for event in events if isinstance(each := self.routes.read(event, ""), Received)]
        await self.database.run(lambda tx: self.routes.apply(tx, read, self.clock.moment))

    async def rows(self, statement: str, **names: object) -> list[Row[Any]]:
        async with self.database.statement() as connection:
            return list(await connection.execute(text(statement), names))


class Stream:
    """Keeps the commands that Queue sends until the test hands them to Publisher."""

    def __init__(self) -> None:
        self.commands: list[Command] = []

    async def room(self) -> Room:
        return Room(10_000, frozenset())

    async def send(self, commands: Sequence[Command]) -> list[Command]:
        self.commands += commands
        return []

    def take_stored(self) -> list[SentCommand]:
        """Returns nothing: Queue cannot know which commands wait, and repeats them as often as it may."""
        return []

    async def holding(self) -> Holding | None:
        return Holding(1, 0)

    @property
    def first_sequence(self) -> int:
        return 0

    async def hearing(self) -> Hearing | None:
        return Hearing(0, 0)


class AllTaken:
    """A publisher without any rule."""

    async def rules(self) -> Rules:
        return {}


class NoMedia:
    async def inspect(self, organization_id: str, urls: Sequence[str]) -> Inspected:
        raise AssertionError("no draft here has media")


class AllConnected:
    """Publisher's accounts: all connected for Queue, unreachable for Drafts."""

    async def is_connected(self, organization_id: str, social_account_id: str) -> bool:
        return True

    async def account(self, organization_id: str, account_id: str) -> None:
        raise Unavailable("DOWNSTREAM_UNAVAILABLE", "unreachable")


class World:
    """The use cases of three services on real databases, and the calls, events and commands between them."""

    def __init__(self, drafts: Database, queue: Database, publisher: Database) -> None:
        self.clock = FrozenDatabaseClock()  # one for all databases
        self.drafts, self.queue, self.publisher = (Site(each, self.clock) for each in (drafts, queue, publisher))
        self.sites = (self.drafts, self.queue, self.publisher)
        self.stream = Stream()
        self.loses_answer: Callable[[], bool] = lambda: False
        self._numbers = iter(range(1_000_000))
        self._make_drafts()
        self._make_queue()
        self._make_publisher()

    def _make_drafts(self) -> None:
        site, ledger = self.drafts, RequestLedger(self.drafts.database, self.clock)
        obstacles = AccountObstacles(database=site.database, directory=AllConnected())
        check = ContentCheck(obstacles=obstacles, rules=KnownRules(AllTaken(), SystemClock()), media=NoMedia())
        creation = DraftCreation(ids=Uuid7Source(), outbox=site.outbox)
        self._create = CreateDraft(creation=creation, ledger=ledger, check=check)
        self._approve = ApproveDraft(approval=DraftApproval(site.outbox), ledger=ledger, check=check)
        self._update = UpdateDraft(
            database=site.database, clock=self.clock, ledger=ledger, outbox=site.outbox, publisher=self,
            obstacles=obstacles, check=check,
        )  # fmt: skip
        self._get = GetDraft(database=site.database, obstacles=obstacles)
        self.complete_withdrawals = CompleteWithdrawals(
            database=site.database, clock=self.clock, publisher=self, outbox=site.outbox
        )
        site.routes = Routes(drafts_routes(ReflectPostJobs(), KeepAccounts(), KeepRefusals()))

    def _make_queue(self) -> None:
        site, policy = self.queue, QueuePolicy()
        mover = SlotMover(outbox=site.outbox, policy=policy, release="2026a")
        record = SlotRecorder(outbox=site.outbox, ids=Uuid7Source(), policy=policy, on_slots=lambda: None)
        arranger = Arranger(outbox=site.outbox, mover=mover, policy=policy, on_slots=lambda: None)
        ledger = RequestLedger(site.database, self.clock)
        settle = SettleSlots(policy, site.outbox)
        self._remove = RemoveFromQueue(
            database=site.database, clock=self.clock, ledger=ledger, policy=policy, arranger=arranger,
            take_back=TakeBack(publisher=self, settle=settle),
        )  # fmt: skip
        self._at = ScheduleAt(
            ledger=ledger,
            find_draft=DraftFinder(database=site.database, drafts=self, check_accounts=AccountCheck(AllConnected())),
            book=SlotBooker(lock=AccountLock(mover), record=record, policy=policy, release=mover.release),
        )
        self.hand_over = HandOver(
            database=site.database,
            clock=self.clock,
            commands=self.stream,
            outstanding=Outstanding(database=site.database, commands=self.stream, answers=self.stream),
            policy=policy,
            wake=asyncio.Event(),
        )
        site.routes = Routes(
            queue_routes(
                settle_slots=settle,
                follow_drafts=FollowDrafts(
                    outbox=site.outbox,
                    requested_times=RequestedTimes(mover=mover, record=record, arranger=arranger, outbox=site.outbox),
                ),
            )
        )

    def _make_publisher(self) -> None:
        site, steady, policy = (
            self.publisher,
            SteadyClock(SystemClock()),
            PublishPolicy(unknown_deadline=timedelta(minutes=5)),
        )
        parts: dict[str, Any] = {"database": site.database, "clock": self.clock, "outbox": site.outbox}
        self._claim = ClaimJobs(**parts, steady=steady, instance="one")
        self._recover = RecoverJobs(**parts, steady=steady, policies=lambda name: policy)
        self._settle = SettlePosts(
            **parts, ids=Uuid7Source(), policies=lambda name: policy, late=LateEvidence(site.outbox),
            wake_lines=lambda: None, draw=lambda: 0.5,
        )  # fmt: skip
        self._withdraw = WithdrawContent(site.database)
        ledger, save_drafts = RequestLedger(site.database, self.clock), SaveDrafts(site.outbox, lambda: None)
        self._cancel = CancelPostJobs(ledger=ledger, outbox=site.outbox)
        self._publish_now = PublishNow(
            ledger=ledger, outbox=site.outbox, save_drafts=save_drafts, wake_sweep=lambda: None
        )
        site.routes = Routes(publisher_routes(save_drafts, TakeSlots(site.outbox), DropSlots(site.outbox)))

    # the services' calls to each other

    async def withdraw(self, organization_id: str, draft_id: str, *, below: int) -> WithdrawalAnswer | None:
        try:
            withdrawal = await self._withdraw(organization_id, draft_id, below)
        except Refused as refused:
            raise Unavailable("DOWNSTREAM_UNAVAILABLE", "the revision is not known") from refused
        if self.loses_answer():
            raise Unavailable("DOWNSTREAM_UNAVAILABLE", "the answer is lost")
        response: WithdrawContentResponse = withdraw_response(withdrawal)
        return drafts_events.withdrawal_answer(organization_id, draft_id, below, response)

    async def cancel_posts(self, organization_id: str, posts: Sequence[SlotPost]) -> list[CancelAnswer]:
        asked = slot_posts_from(cancel_posts_request(organization_id, posts))
        response = cancel_response(await self._cancel(self.call("Cancel"), asked))
        if self.loses_answer():
            raise Unavailable("TAKE_BACK_PENDING", "the answer is lost")
        answers = (cancel_answer(post, result) for post, result in zip(posts, response.results, strict=True))
        return [answer for answer in answers if answer is not None]

    async def get_draft(self, organization_id: str, draft_id: str, *, is_optional: bool) -> QueuedDraft:
        found = await self._get(organization_id=organization_id, draft_id=draft_id)
        return queued_draft(organization_id, drafts_drafts.draft_message(found))

    # the users' calls

    def call(self, method: str) -> Call[Any, Any]:
        request_id = f"r{next(self._numbers)}"
        return call(method, organization_id=ORG, request_id=request_id, digest=request_id.encode())

    async def shown(self, draft: str) -> Draft:
        return drafts_drafts.draft_message(await self._get(organization_id=ORG, draft_id=draft))

    async def create(self, draft: str, targets: Sequence[Target]) -> None:
        given = GivenDraft(id=draft, content=Content(text="text"), targets=tuple(targets))
        await self._create(self.call("Create"), given)

    async def approve(self, draft: str) -> None:
        given = GivenApproval(draft_id=draft, content_digest="", etag="", approver="ann")
        await self._approve(self.call("Approve"), given)

    async def change(self, draft: str, change: Change) -> UpdatedDraft:
        updated: UpdatedDraft = await self._update(self.call("Update"), draft_id=draft, etag="", change=change)
        return updated

    async def schedule(self, draft: str, due: datetime, *accounts: str) -> None:
        order = ExactOrder(organization_id=ORG, draft_id=draft, schedule_time=due, social_account_ids=accounts)
        await self._at(self.call("At"), order)

    async def remove(self, slot_id: str) -> None:
        """Takes a slot out of the queue; repeats the call until Publisher's answer arrives."""
        request = self.call("Remove")
        while True:
            try:
                await self._remove(request, Removal(organization_id=ORG, slot_id=slot_id))
            except Unavailable:
                continue
            return

    async def publish_now(self, draft: str) -> Sequence[UrgentPost]:
        """Sends the draft at once, as it was announced last."""
        saved = saved_draft_from(await self._announced_draft(draft))
        urgent: Sequence[UrgentPost] = await self._publish_now(
            self.call("PublishNow"), UrgentPosts(draft=saved, targets=saved.targets)
        )
        return urgent

    async def _announced_draft(self, draft: str) -> DraftSaved:
        for row in await self.drafts.rows("select payload from outbox order by position desc"):
            for event in reversed(bus_pb2.Envelope.FromString(row.payload).events):
                if event.type == DraftSaved.DESCRIPTOR.full_name:
                    saved = DraftSaved.FromString(event.payload)
                    if saved.draft_id == draft:
                        return saved
        raise AssertionError(f"{draft} was never announced")

    # what moves between them

    async def collect(self) -> None:
        """Moves new announcements from the outboxes to the services that consume them."""
        for site in self.sites:
            events = await site.announced()
            for other in self.sites:
                if other is not site:
                    other.waiting += [event for event in events if other.routes.read(event, "") is not None]

    async def claim(self, commands: Sequence[Command]) -> list[Claimed]:
        """Claims the jobs of these commands and those due in Publisher's own database."""
        wanted = [
            command_from(PublishCommand.FromString(publish_command(each, 3).payload))
            for each in commands
            if each.schedule_time <= self.clock.moment
        ]
        wanted += (await self._recover()).due
        claims = await self._claim(wanted, _LANES) if wanted else []
        turns = await self._claim.from_lines(_LANES, most=100)
        return [each for each in claims if isinstance(each, Claimed)] + [each for _, each in turns.claimed]

    async def settle(self, answers: Sequence[tuple[Claimed, Outcome]]) -> None:
        if answers:
            await self._settle(
                [Sent(claimed=each, outcome=outcome, time=self.clock.moment) for each, outcome in answers]
            )

    async def connect(self, *accounts: str) -> None:
        async with self.publisher.database.transaction() as tx:
            for account in accounts:
                names = {"org": ORG, "id": account}
                await tx.connection.execute(
                    text("""
                        insert into social_account (organization_id, id, provider, external_account_id, display_name,
                            channels, state, credentials, version, create_time, update_time)
                        values (:org, :id, 'sandbox', 'ext', '', '{facebook, instagram_feed}', 'CONNECTED', '', 1,
                            now(), now())
                    """),
                    names,
                )
                await tx.connection.execute(
                    text("""
                        insert into account_gate (organization_id, social_account_id, connected, provider)
                        values (:org, :id, true, 'sandbox')
                    """),
                    names,
                )


@pytest.fixture
async def world(service_database: Callable[[str], Awaitable[str]]) -> AsyncIterator[World]:
    databases = [
        Database(await service_database(name), application="test") for name in ("drafts", "queue", "publisher")
    ]
    yield World(*databases)
    for database in databases:
        await database.dispose()
