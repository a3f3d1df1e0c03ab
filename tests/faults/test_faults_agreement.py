"""Drafts, Queue and Publisher over events in any order, repeated and late: their own use cases on real databases.

Everything between them is here: whatever one has committed to its outbox waits until a test hands it to another, alone
or in a batch, in whatever order, perhaps twice. Their consumers' inboxes are left out: versions alone have to do.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import text

from drafts_service import wire as drafts_wire
from drafts_service.application.account_obstacles import AccountObstacles
from drafts_service.application.approve_draft import ApproveDraft
from drafts_service.application.complete_withdrawals import CompleteWithdrawals
from drafts_service.application.create_draft import CreateDraft
from drafts_service.application.get_draft import GetDraft
from drafts_service.application.keep_accounts import KeepAccounts
from drafts_service.application.reflect_post_jobs import ReflectPostJobs
from drafts_service.application.update_draft import UpdateDraft
from drafts_service.domain.content import Content
from drafts_service.domain.draft import PATIENCE, Change, UpdatedDraft
from drafts_service.domain.target import Target
from drafts_service.entrypoints.events import routes as drafts_routes
from postflow.bus.v1 import bus_pb2
from postflow.drafts.v1.draft_pb2 import Draft, DraftState
from postflow.publisher.v1.publisher_service_pb2 import WithdrawContentResponse
from postflow.queue.v1.publish_command_pb2 import PublishCommand
from publisher_service.application.claim_jobs import ClaimJobs
from publisher_service.application.late_evidence import LateEvidence
from publisher_service.application.recover_jobs import RecoverJobs
from publisher_service.application.save_drafts import SaveDrafts
from publisher_service.application.send_post import Sent
from publisher_service.application.settle_posts import SettlePosts
from publisher_service.application.take_slots import TakeSlots
from publisher_service.application.withdraw_content import WithdrawContent
from publisher_service.domain.claim import Claimed, Lane
from publisher_service.domain.outcome import Accepted, NotSent, Outcome, Rejected
from publisher_service.domain.policy import Policy as PublishPolicy
from publisher_service.entrypoints.events import routes as publisher_routes
from publisher_service.wire.commands import command_from
from publisher_service.wire.posts import withdraw_response
from queue_service.application.account_check import AccountCheck
from queue_service.application.draft_finder import DraftFinder
from queue_service.application.follow_drafts import FollowDrafts
from queue_service.application.hand_over import HandOver
from queue_service.application.schedule_at import ExactOrder, ScheduleAt
from queue_service.application.settle_slots import SettleSlots
from queue_service.application.slot_mover import SlotMover
from queue_service.application.slot_recorder import SlotRecorder
from queue_service.domain.policy import Policy as QueuePolicy
from queue_service.domain.stream import Room
from queue_service.entrypoints.events import routes as queue_routes
from queue_service.wire.commands import publish_command
from queue_service.wire.drafts import draft as queued_draft
from servicekit.clock import SystemClock
from servicekit.faults import Fault, Refused, Unavailable
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
    from queue_service.domain.command import Command
    from queue_service.domain.draft import Draft as QueuedDraft

ORG = "acme"
_LANES = [Lane(provider="sandbox", room=1000, lease=timedelta(seconds=30))]
_LIVE = {"SCHEDULED", "DISPATCHED"}


class Site:
    """A service's database, what it has announced, and what waits to be told to it."""

    def __init__(self, database: Database, clock: FrozenDatabaseClock) -> None:
        self.database, self.clock = database, clock
        self.outbox = Outbox(Uuid7Source(), lambda rows: None)
        self.routes = Routes([])
        self.waiting: list[bus_pb2.Event] = []
        self.position = 0

    async def announced(self) -> list[bus_pb2.Event]:
        """Since the last time."""
        rows = await self.rows("select position, payload from outbox where position > :position order by position",
                               position=self.position)  # fmt: skip
        self.position = rows[-1].position if rows else self.position
        return [event for row in rows for event in bus_pb2.Envelope.FromString(row.payload).events]

    async def hear(self, events: Sequence[bus_pb2.Event]) -> None:
        read = [each for event in events if isinstance(each := self.routes.read(event, ""), Received)]
        await self.database.run(lambda tx: self.routes.apply(tx, read, self.clock.moment))

    async def rows(self, statement: str, **names: object) -> list[Row[Any]]:
        async with self.database.statement() as connection:
            return list(await connection.execute(text(statement), names))


class Stream:
    def __init__(self) -> None:
        self.commands: list[Command] = []

    async def room(self) -> Room:
        return Room(10_000, frozenset())

    async def send(self, commands: Sequence[Command]) -> list[Command]:
        self.commands += commands
        return []


class AllConnected:
    async def is_connected(self, organization_id: str, social_account_id: str) -> bool:
        return True

    async def account(self, organization_id: str, account_id: str) -> None:
        raise Unavailable("DOWNSTREAM_UNAVAILABLE", "away")


class World:
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
        self._create = CreateDraft(ledger=ledger, outbox=site.outbox, ids=Uuid7Source(), obstacles=obstacles)
        self._approve = ApproveDraft(ledger=ledger, outbox=site.outbox)
        self._update = UpdateDraft(
            database=site.database, clock=self.clock, ledger=ledger, outbox=site.outbox, publisher=self,
            obstacles=obstacles,
        )  # fmt: skip
        self._get = GetDraft(database=site.database, obstacles=obstacles)
        self.complete_withdrawals = CompleteWithdrawals(
            database=site.database, clock=self.clock, publisher=self, outbox=site.outbox
        )
        site.routes = Routes(drafts_routes(ReflectPostJobs(), KeepAccounts()))

    def _make_queue(self) -> None:
        site, policy = self.queue, QueuePolicy()
        self._at = ScheduleAt(
            ledger=RequestLedger(site.database, self.clock),
            find_draft=DraftFinder(database=site.database, drafts=self, check_accounts=AccountCheck(AllConnected())),
            mover=SlotMover(outbox=site.outbox, policy=policy, release="2026a"),
            record=SlotRecorder(outbox=site.outbox, ids=Uuid7Source(), policy=policy, on_slots=lambda: None),
        )
        self.hand_over = HandOver(
            database=site.database, clock=self.clock, commands=self.stream, policy=policy, wake=asyncio.Event()
        )
        site.routes = Routes(
            queue_routes(settle_slots=SettleSlots(policy, site.outbox), follow_drafts=FollowDrafts(site.outbox))
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
        site.routes = Routes(publisher_routes(SaveDrafts(site.outbox, lambda: None), TakeSlots(site.outbox)))

    # what the services ask of each other

    async def withdraw(self, organization_id: str, draft_id: str, *, below: int) -> WithdrawalAnswer | None:
        try:
            withdrawal = await self._withdraw(organization_id, draft_id, below)
        except Refused as refused:
            raise Unavailable("DOWNSTREAM_UNAVAILABLE", "the revision is not known") from refused
        if self.loses_answer():
            raise Unavailable("DOWNSTREAM_UNAVAILABLE", "the answer is lost")
        response: WithdrawContentResponse = withdraw_response(withdrawal)
        return drafts_wire.withdrawal_answer(organization_id, draft_id, below, response)

    async def get_draft(self, organization_id: str, draft_id: str, *, in_a_hurry: bool) -> QueuedDraft:
        found = await self._get(organization_id=organization_id, draft_id=draft_id)
        return queued_draft(organization_id, drafts_wire.draft_message(found))

    # what users do

    def call(self, method: str) -> Call[Any, Any]:
        request_id = f"r{next(self._numbers)}"
        return call(method, organization_id=ORG, request_id=request_id, digest=request_id.encode())

    async def shown(self, draft: str) -> Draft:
        return drafts_wire.draft_message(await self._get(organization_id=ORG, draft_id=draft))

    async def create(self, draft: str, targets: Sequence[Target]) -> None:
        await self._create(self.call("Create"), draft_id=draft, content=Content(text="text"), targets=tuple(targets))

    async def approve(self, draft: str) -> None:
        await self._approve(self.call("Approve"), draft_id=draft, content_digest="", etag="", approver="ann")

    async def change(self, draft: str, change: Change) -> UpdatedDraft:
        updated: UpdatedDraft = await self._update(self.call("Update"), draft_id=draft, etag="", change=change)
        return updated

    async def schedule(self, draft: str, due: datetime, *accounts: str) -> None:
        order = ExactOrder(organization_id=ORG, draft_id=draft, schedule_time=due, social_account_ids=accounts)
        await self._at(self.call("At"), order)

    # what is carried between them

    async def carry(self) -> None:
        """From the outboxes to what waits before each service."""
        for site in self.sites:
            events = await site.announced()
            for other in self.sites:
                if other is not site:
                    other.waiting += [event for event in events if other.routes.read(event, "") is not None]

    async def claim(self, commands: Sequence[Command]) -> list[Claimed]:
        """Publisher has these commands now, and what is due in its own database."""
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
            await self._settle([Sent(claimed=each, outcome=told, time=self.clock.moment) for each, told in answers])

    async def connect(self, *accounts: str) -> None:
        async with self.publisher.database.transaction() as tx:
            for account in accounts:
                names = {"org": ORG, "id": account}
                await tx.connection.execute(
                    text("""
                        insert into social_account (organization_id, id, provider, external_account_id, display_name,
                            channels, state, credentials, version, create_time, update_time)
                        values (:org, :id, 'sandbox', 'ext', '', '{facebook}', 'CONNECTED', '', 1, now(), now())
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


@dataclass
class Story:
    """What happens to one draft, by a seed."""

    world: World
    seed: int
    targets: list[set[Target]] = field(default_factory=list)  # as Drafts has had them, oldest first
    booked: list[tuple[str, int]] = field(default_factory=list)  # a slot, and how many of `targets` were there then
    said: list[str] = field(default_factory=list)
    open: list[tuple[Claimed, Outcome]] = field(default_factory=list)  # requests whose answer nobody has recorded
    effects: list[tuple[str, int]] = field(default_factory=list)  # post job and revision of what is out
    answers: list[UpdatedDraft] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.draft = f"d{self.seed}"
        self.pages = (f"a{self.seed}", f"b{self.seed}")
        self.all = [
            Target(social_account_id=self.pages[0], channel="facebook"),
            Target(social_account_id=self.pages[0], channel="instagram_feed"),
            Target(social_account_id=self.pages[1], channel="facebook"),
        ]

    async def begin(self) -> None:
        await self.world.connect(*self.pages)
        self.world.loses_answer = lambda: self.random.random() < 0.2
        first = self._some_targets()
        await self.world.create(self.draft, first)
        self.targets.append(set(first))
        self.said.append(f"create {self._names(first)}")
        if self.random.random() < 0.5:
            await self.world.approve(self.draft)

    async def step(self) -> None:
        deed = self.random.choices(
            [self.retarget, self.rewrite, self.approve, self.book, self.tell, self.pass_time, self.settle],
            weights=[6, 1, 1, 3, 12, 2, 1],
        )[0]
        try:
            await deed()
        except Fault as fault:
            self.said.append(f"  refused {fault.reason}")

    async def retarget(self) -> None:
        wanted = self._some_targets()
        if self.random.random() < 0.5:
            await self.tell_publisher()
        self.said.append(f"targets {self._names(wanted)}")
        await self.change(Change(targets=wanted))
        self.targets.append(set(wanted))

    async def rewrite(self) -> None:
        self.said.append("text")
        await self.change(Change(text=f"text {self.random.random()}"))

    async def change(self, change: Change) -> None:
        before = (await self.world.shown(self.draft)).revision
        answer = await self.world.change(self.draft, change)
        if answer.draft.revision > before:
            self.answers.append(answer)

    async def approve(self) -> None:
        self.said.append("approve")
        await self.world.approve(self.draft)

    async def book(self) -> None:
        page = self.random.choice(self.pages)
        due = self.world.clock.moment + timedelta(seconds=self.random.choice([10, 100, 1000]))
        self.said.append(f"schedule {page} {due.time()}")
        await self.world.schedule(self.draft, due, page)
        slots = [slot for slot in await self.slots() if slot.social_account_id == page]
        self.booked.append((slots[-1].id, len(self.targets)))

    async def tell(self) -> None:
        await self.world.carry()
        site = self.random.choice(self.world.sites)
        if self.random.random() < 0.5:
            self.random.shuffle(site.waiting)
        count = self.random.choice([1, 1, 2, 4])
        batch, rest = site.waiting[:count], site.waiting[count:]
        self.said.append(f"tell {self._name(site)} {[self._event(site, each) for each in batch]}")
        await site.hear(batch)
        site.waiting = rest + [each for each in batch if self.random.random() < 0.2]

    async def tell_publisher(self) -> None:
        """What Drafts has announced: an edit waits for it."""
        await self.world.carry()
        site = self.world.publisher
        news = [event for event in site.waiting if event.type.endswith("DraftSaved")]
        if news:
            self.said.append(f"tell publisher {[self._event(site, each) for each in news]}")
            await site.hear(news)
            site.waiting = [event for event in site.waiting if event not in news]

    async def pass_time(self) -> None:
        self.world.clock.moment += timedelta(seconds=self.random.choice([1, 20]))
        self.said.append(f"now {self.world.clock.moment.time()}")
        await self.world.hand_over.dispatch()
        await self.world.hand_over.repeat()
        commands = self.world.stream.commands
        self.random.shuffle(commands)
        some, self.world.stream.commands = commands[:3], [*commands[3:], *commands[:1]]
        await self._send(some)

    async def settle(self) -> None:
        self.said.append(f"{len(self.open)} answers")
        answers, self.open = self.open, []
        await self.world.settle(answers)

    async def _send(self, commands: Sequence[Command]) -> None:
        claimed = await self.world.claim(commands)
        self.open += [(each, self._answer(each)) for each in claimed]
        if self.random.random() < 0.5:
            await self.settle()

    async def rest(self) -> None:
        """Everything is told, in order, until nobody has anything to say."""
        while True:
            await self.world.carry()
            if not any(site.waiting for site in self.world.sites):
                return
            for site in self.world.sites:
                waiting, site.waiting = site.waiting, []
                await site.hear(waiting)

    async def end(self) -> None:
        self.world.loses_answer = lambda: False
        await self.settle()
        await self.rest()
        self.world.clock.moment += PATIENCE
        await self.world.complete_withdrawals()
        await self.rest()
        await self.check_plan()
        await self.world.approve(self.draft)
        for _ in range(60):
            if not await self._has_live_slots():
                break
            self.world.clock.moment += timedelta(seconds=120)
            while await self.world.hand_over.dispatch():
                pass
            await self.world.hand_over.repeat()
            commands, self.world.stream.commands = self.world.stream.commands, []
            await self._send(commands)
            await self.settle()
            await self.rest()
        await self.check_plan()
        await self.check_end()

    async def _has_live_slots(self) -> bool:
        return bool(_LIVE & {slot.state for slot in await self.slots()})

    async def check_plan(self) -> None:
        """Slot, draft and job say the same."""
        slots = {slot.id: slot for slot in await self.slots()}
        jobs = await self.jobs()
        for slot_id, target in await self.slot_targets():
            job = jobs.get((slots[slot_id].social_account_id, target.channel))
            if job is None or job.slot_id != slot_id:
                continue
            assert (target.job_version, target.job_state) == (job.version, job.state), (slot_id, target, job)
            if slots[slot_id].state == "SCHEDULED" and job.state in ("PENDING", "SCHEDULED"):
                assert (job.state, job.schedule_time) == ("SCHEDULED", slots[slot_id].schedule_time), job
        for job in jobs.values():
            if job.state == "SCHEDULED":
                assert slots[job.slot_id].state in _LIVE, (job, slots[job.slot_id])
            if job.state == "PUBLISHED":
                assert slots[job.slot_id].state in _LIVE | {"PUBLISHED", "PARTIALLY_PUBLISHED"}, slots[job.slot_id]
        draft = await self.world.shown(self.draft)
        shown = {
            (each.target.social_account_id, each.target.channel): each.post_job_state for each in draft.target_states
        }
        for key, state in shown.items():
            # That a job stands in line is told to Queue alone.
            assert state == jobs[key].state or jobs[key].state_reason == "IN_LINE", (key, state, jobs[key])
        live = {slot.social_account_id for slot in slots.values() if slot.state == "SCHEDULED"}
        wanted = {target.social_account_id for target in self.targets[-1]}
        if live & wanted:
            assert DraftState.Name(draft.state) not in ("DRAFT_STATE_DRAFT", "DRAFT_STATE_PUBLISHED"), draft

    async def check_end(self) -> None:
        """What had a slot and stayed got its turn; what an edit has replaced is not out, unless its answer named it."""
        for answer in self.answers:
            older = {job for job, revision in self.effects if revision < answer.draft.revision}
            assert older <= set(answer.in_flight), (older, answer)
        slots = {slot.id: slot for slot in await self.slots()}
        assert not _LIVE & {slot.state for slot in slots.values()}, slots
        for slot_id, count in self.booked:
            slot = slots[slot_id]
            stayed = set.intersection(*self.targets[count - 1 :])
            stayed = {target for target in stayed if target.social_account_id == slot.social_account_id}
            if stayed and not slot.state_reason:
                assert slot.state != "CANCELED", (slot, stayed)

    async def slots(self) -> list[Row[Any]]:
        return await self.world.queue.rows("select * from slot where draft_id = :id order by sequence", id=self.draft)

    async def slot_targets(self) -> list[tuple[str, Row[Any]]]:
        rows = await self.world.queue.rows(
            "select t.* from slot s join slot_target t on t.slot_id = s.id where s.draft_id = :id", id=self.draft
        )
        return [(row.slot_id, row) for row in rows]

    async def jobs(self) -> dict[tuple[str, str], Row[Any]]:
        rows = await self.world.publisher.rows("select * from post_job where draft_id = :id", id=self.draft)
        return {(row.social_account_id, row.channel): row for row in rows}

    def _some_targets(self) -> tuple[Target, ...]:
        """Mostly one more or one less than now."""
        one = {self.random.choice(self.all)}
        if self.targets and self.random.random() < 0.8 and (changed := self.targets[-1] ^ one):
            return tuple(sorted(changed, key=repr))
        return tuple(self.random.sample(self.all, self.random.randint(1, 3)))

    def _answer(self, claimed: Claimed) -> Outcome:
        job = claimed.job
        outcomes: list[Outcome] = [
            Accepted(external_id="7", external_url="u"),
            Rejected(reason="NO", message=""),
            NotSent(reason="REFUSED", message=""),
        ]
        outcome = self.random.choices(outcomes, weights=[3, 1, 1])[0]
        self.said.append(f"sent {job.target.social_account_id}/{job.target.channel} r{job.content_revision} {outcome}")
        if isinstance(outcome, Accepted):
            assert job.id not in {key for key, _ in self.effects}, "a second effect"
            self.effects.append((job.id, job.content_revision))
        return outcome

    def _name(self, site: Site) -> str:
        return {id(self.world.drafts): "drafts", id(self.world.queue): "queue"}.get(id(site), "publisher")

    @staticmethod
    def _event(site: Site, event: bus_pb2.Event) -> str:
        read = site.routes.read(event, "")
        message: Any = read.message  # type: ignore[union-attr]
        kind = event.type.rsplit(".", 1)[1]
        if kind == "PostJobChanged":
            job = message.post_job
            return f"job {job.target.social_account_id}/{job.target.channel} v{job.version} {job.state}"
        if kind == "DraftSaved":
            names = [f"{each.social_account_id}/{each.channel}" for each in message.targets]
            return f"saved v{message.version} r{message.revision} {message.approved} {names}"
        return f"{kind} {getattr(message, 'slot_id', '')}"

    @staticmethod
    def _names(targets: Sequence[Target]) -> list[str]:
        return [f"{each.social_account_id}/{each.channel}" for each in targets]


@pytest.mark.parametrize("first", range(0, 40, 10))
async def test_all_agree_whatever_the_order_of_events(world: World, first: int) -> None:
    for seed in range(first, first + 10):
        story = Story(world, seed)
        try:
            await story.begin()
            for _ in range(story.random.randint(10, 30)):
                await story.step()
            await story.end()
        except AssertionError as error:
            error.add_note("\n".join([f"seed {seed}", *story.said]))
            raise
