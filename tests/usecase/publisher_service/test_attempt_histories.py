"""Random histories of posts over the real statements: whatever happens to its attempts, a run ends, and ends right."""

import base64
import hashlib
import itertools
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Row, text

from postflow.drafts.v1 import draft_pb2
from publisher_service.adapters.providers.adapter import Limits, Post
from publisher_service.adapters.providers.provider import Providers
from publisher_service.adapters.vault import Vault
from publisher_service.application.claim_jobs import Claim, ClaimJobs
from publisher_service.application.connect_account import ConnectAccount
from publisher_service.application.disown_claims import DisownClaims, FailedClaim
from publisher_service.application.drop_kept_content import DropKeptContent
from publisher_service.application.late_evidence import LateEvidence
from publisher_service.application.recover_jobs import RecoverJobs
from publisher_service.application.relabel_lines import RelabelLines
from publisher_service.application.resolve_post_job import ResolvePostJob
from publisher_service.application.resolve_unknown import ResolveUnknown
from publisher_service.application.save_drafts import SaveDrafts
from publisher_service.application.send_post import Sent
from publisher_service.application.settle_posts import SettlePosts
from publisher_service.application.take_slots import TakeSlots
from publisher_service.application.withdraw_content import WithdrawContent
from publisher_service.domain.account import Connection
from publisher_service.domain.claim import Claimed, Command, Lane
from publisher_service.domain.outcome import (
    Absent,
    Accepted,
    Ambiguous,
    AuthRefused,
    Finding,
    Found,
    NoProof,
    NotSent,
    NotTried,
    Outcome,
    RateLimited,
    Rejected,
)
from publisher_service.domain.plan import SavedDraft, Slot
from publisher_service.domain.policy import Policy
from publisher_service.domain.post_job import Target, job_id
from publisher_service.domain.resolution import Resolution, Said
from servicekit.clock import SystemClock
from servicekit.ids import Uuid7Source
from servicekit.pg.clock import SteadyClock
from servicekit.pg.database import Database
from servicekit.pg.ledger import RequestLedger
from servicekit.pg.outbox import Outbox
from servicekit.run.settings import Secret
from testkit.calls import call
from testkit.database_clocks import FrozenDatabaseClock

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
MOST = 3
LEASE = timedelta(seconds=15)
LATEST = timedelta(minutes=20)
POLICY = Policy(
    retry_first=timedelta(seconds=2),
    retry_cap=timedelta(seconds=30),
    unknown_settle=timedelta(seconds=10),
    unknown_deadline=timedelta(minutes=3),
    lookup_again=timedelta(seconds=5),
)
CHANNEL = "facebook"
UNSENT = ("FAILED", "MISSED", "CANCELED")
OPEN = """
    select id, state, state_reason from post_job
    where state not in ('PENDING', 'FAILED', 'MISSED', 'CANCELED', 'PUBLISHED', 'NEEDS_ATTENTION')
"""
Key = str


@dataclass
class World:
    """The provider, and what has truly been asked of it under each idempotency key."""

    dice: random.Random
    requests: defaultdict[Key, int] = field(default_factory=lambda: defaultdict(int))
    doubtful: dict[Key, bytes] = field(default_factory=dict)
    denied: set[Key] = field(default_factory=set)
    effects: set[Key] = field(default_factory=set)

    def request(self, claimed: Claimed) -> Outcome | None:
        """Makes a request; None: its answer is lost with the process."""
        key, content = claimed.idempotency_key, claimed.content
        assert self.doubtful.get(key, content) == content, "other bytes under a key that may be out"
        outcome = self.dice.choice(OUTCOMES)
        if isinstance(outcome, NotSent | NotTried):
            return outcome
        if not isinstance(outcome, RateLimited | AuthRefused):
            self.requests[key] += 1
            assert self.requests[key] <= MOST
        if isinstance(outcome, Ambiguous | None):
            self.doubtful[key] = content
            if self.dice.random() < 0.3:
                self.effects.add(key)
        if isinstance(outcome, Accepted):
            self.effects.add(key)
            return replace(outcome, external_id=key)
        return outcome

    def look(self, key: Key) -> Finding:
        if self.dice.random() < 0.3:
            return NoProof(message="m") if self.dice.random() < 0.5 else AuthRefused(message="m")
        # An effect may come after the look that misses it.
        if key in self.effects and self.dice.random() < 0.5:
            return Found(external_id=key, external_url="")
        return Absent()


OUTCOMES: Sequence[Outcome | None] = [
    None,
    None,
    Ambiguous(reason="TIMEOUT_AFTER_WRITE", message="m"),
    Ambiguous(reason="TIMEOUT_AFTER_WRITE", message="m"),
    Ambiguous(reason="TIMEOUT_AFTER_WRITE", message="m"),
    Rejected(reason="STATUS_422", message="m"),
    NotSent(reason="CONNECTION_REFUSED", message="m"),
    NotTried(reason="LEASE_TOO_SHORT", message="m"),
    NotTried(reason="CREDENTIALS_UNREADABLE", message="m"),
    RateLimited(message="m", retry_after=timedelta(seconds=20)),
    AuthRefused(message="m"),
    Accepted(external_id="", external_url=""),
]


class WorldAdapter:
    name = "sandbox"
    channels = (CHANNEL,)
    limits = Limits(request_timeout=timedelta(seconds=5))

    def __init__(self, world: World) -> None:
        self._world = world

    async def verify(self, external_account_id: str, access_token: str) -> None:
        pass

    async def send(self, post: Post) -> Outcome:
        raise AssertionError("the history sends by itself")

    async def look(self, post: Post) -> Finding:
        return self._world.look(post.idempotency_key)


@dataclass
class Author:
    """What the other contexts have said about one draft."""

    name: str
    account: str
    version: int = 0
    revision: int = 0
    said: str = ""
    slot: Slot | None = None

    @property
    def target(self) -> Target:
        return Target(social_account_id=self.account, channel=CHANNEL)

    @property
    def job_id(self) -> str:
        return job_id("acme", self.name, self.target)


class Process:
    """The use cases of a publisher, at a time that the history sets."""

    def __init__(self, url: str, world: World, clock: FrozenDatabaseClock) -> None:
        self.database = Database(url, application="test", pool_size=4)
        self.clock, ids = clock, Uuid7Source()
        steady, outbox = SteadyClock(SystemClock()), Outbox(ids, lambda rows: None)
        vault = Vault([("test", Secret(base64.b64encode(bytes(32)).decode()))])
        providers = Providers([WorldAdapter(world)], SystemClock())
        late = LateEvidence(outbox)
        database, draw, ledger = self.database, world.dice.random, RequestLedger(self.database, clock)
        self.claims = ClaimJobs(database=database, clock=clock, steady=steady, outbox=outbox, instance=ids.new())
        self.settle = SettlePosts(
            database=database,
            clock=clock,
            ids=ids,
            outbox=outbox,
            policies=lambda name: POLICY,
            late=late,
            wake_lines=lambda: None,
            draw=draw,
        )
        self.recover = RecoverJobs(
            database=database, clock=clock, steady=steady, outbox=outbox, policies=lambda name: POLICY
        )
        self.look = ResolveUnknown(
            database=database,
            clock=clock,
            outbox=outbox,
            providers=providers,
            vault=vault,
            policies=lambda name: POLICY,
            late=late,
            draw=draw,
        )
        self.disown = DisownClaims(database=database, clock=clock, outbox=outbox, policy=POLICY, draw=draw)
        self.withdraw = WithdrawContent(database)
        self.drop_kept = DropKeptContent(database)
        self.relabel = RelabelLines(database=database, clock=clock, outbox=outbox)
        self._resolve = ResolvePostJob(ledger=ledger, outbox=outbox)
        self._save = SaveDrafts(outbox, lambda: None)
        self._slots = TakeSlots(outbox)
        self._connect = ConnectAccount(
            database=database,
            ids=ids,
            ledger=ledger,
            outbox=outbox,
            vault=vault,
            providers=providers,
            on_connected=lambda: None,
        )

    @property
    def lanes(self) -> list[Lane]:
        return [Lane(provider="sandbox", room=100, lease=LEASE)]

    async def save(self, draft: SavedDraft) -> None:
        await self.database.run(lambda tx: self._save(tx, [draft], self.clock.moment))

    async def take(self, slot: Slot) -> None:
        await self.database.run(lambda tx: self._slots(tx, [slot], self.clock.moment))

    async def connect(self, account: str) -> None:
        wanted = Connection(
            organization_id="acme",
            account_id=account,
            provider="sandbox",
            external_account_id="ext",
            display_name="",
            channels=(CHANNEL,),
            access_token="token",
        )
        await self._connect(call("ConnectAccount"), wanted)

    async def resolve(self, post_job_id: str, outcome: Said) -> None:
        said = Resolution(
            outcome=outcome,
            external_id="said" if outcome is Said.PUBLISHED else "",
            external_url="",
            publish_time=None,
            resolver="ann",
            note="",
        )
        await self._resolve(call("ResolvePostJob"), post_job_id, said)

    async def rows(self, statement: str, **values: object) -> list[Row[Any]]:
        async with self.database.statement() as connection:
            return list(await connection.execute(text(statement), values))

    async def job(self, job_id: str) -> Row[Any]:
        (job,) = await self.rows("select * from post_job where id = :id", id=job_id)
        return job


class History:
    """Deeds at random, and after each of them what must be true of every post."""

    def __init__(self, process: Process, world: World, *, drafts: int) -> None:
        self.process = process
        self.world = world
        self.dice = world.dice
        self.authors: list[Author] = []
        self.numbers = itertools.count()
        self.accounts = [f"page-{number}" for number in range(drafts // 2)]
        self.drafts = drafts
        self.late: list[Sent] = []
        self.failed: list[FailedClaim] = []
        self.sequence = 0

    async def run(self, steps: int) -> None:
        for account in self.accounts:
            await self.process.connect(account)
        for _ in range(self.drafts):
            self.authors.append(await self.begin())
        for _ in range(steps):
            (deed,) = self.dice.choices(list(self.deeds), list(self.deeds.values()))
            author = self.dice.choice(self.authors)
            await deed(author)
            await self.check()
        await self.end()

    async def begin(self) -> Author:
        author = Author(f"d{next(self.numbers)}", self.dice.choice(self.accounts))
        await self.save(author)
        await self.new_slot(author)
        return author

    @property
    def deeds(self) -> Mapping[Callable[[Author], Awaitable[None]], int]:
        """How often each of them is done."""
        return {
            self.pass_time: 20,
            self.command: 20,
            self.sweep: 20,
            self.take_turns: 20,
            self.answer_late: 3,
            self.take_back: 3,
            self.reconnect: 10,
            self.save: 1,
            self.save_the_same: 2,
            self.remove_the_target: 1,
            self.edit: 1,
            self.new_slot: 2,
            self.move: 2,
            self.person: 3,
            self.drop_kept: 2,
        }

    async def pass_time(self, author: Author) -> None:
        self.process.clock.moment += timedelta(seconds=self.dice.choice([1, 5, 12, 20, 60]))

    async def command(self, author: Author) -> None:
        job = await self.process.job(author.job_id)
        if job.state in ("PUBLISHED", "NEEDS_ATTENTION"):
            self.authors[self.authors.index(author)] = author = await self.begin()
        assert author.slot is not None
        await self.claim([_command(author, author.slot)])

    async def sweep(self, author: Author) -> None:
        found = await self.process.recover()
        for question in found.questions:
            if self.dice.random() < 0.8:
                await self.process.look(question.job)
        await self.claim(found.due)

    async def take_turns(self, author: Author) -> None:
        while await self.process.relabel():
            pass
        turns = await self.process.claims.from_lines(self.process.lanes, most=100)
        for _, claimed in turns.claimed:
            await self.send(claimed)

    async def claim(self, commands: Sequence[Command]) -> None:
        answers: Sequence[Claim] = await self.process.claims(commands, self.process.lanes) if commands else []
        for answer in answers:
            if isinstance(answer, Claimed):
                await self.send(answer)

    async def send(self, claimed: Claimed) -> None:
        if self.dice.random() < 0.1:
            # Nothing is sent: the answer to the COMMIT was lost.
            (attempt,) = await self.process.rows(
                "select sender from attempt where post_job_id = :id and fence = :fence",
                id=claimed.job.id,
                fence=claimed.job.fence,
            )
            self.failed.append(FailedClaim(sender=attempt.sender, jobs=[("acme", claimed.job.id)]))
            return
        outcome = self.world.request(claimed)
        if outcome is None:
            return
        sent = Sent(claimed=claimed, outcome=outcome, time=self.process.clock.moment)
        if self.dice.random() < 0.2:
            self.late.append(sent)
        else:
            await self.process.settle([sent])

    async def answer_late(self, author: Author) -> None:
        late, self.late = self.late, []
        for sent in late:
            await self.process.settle([sent])

    async def take_back(self, author: Author) -> None:
        failed, self.failed = self.failed, []
        for each in failed:
            await self.process.disown(each)

    async def save(self, author: Author) -> None:
        """An approved text, new or as it was."""
        author.revision += 1
        author.said = f"text {author.revision}"
        await self._announce(author)

    async def save_the_same(self, author: Author) -> None:
        author.revision += self.dice.choice([0, 1])
        await self._announce(author, approved=self.dice.random() < 0.7)

    async def remove_the_target(self, author: Author) -> None:
        author.revision += 1
        await self._announce(author, has_target=False)

    async def edit(self, author: Author) -> None:
        await self.process.withdraw("acme", author.name, author.revision + 1)
        if self.dice.random() < 0.7:
            await self.save(author)

    async def _announce(self, author: Author, *, approved: bool = True, has_target: bool = True) -> None:
        author.version += 1
        content = draft_pb2.DraftContent(text=author.said).SerializeToString(deterministic=True)
        await self.process.save(
            SavedDraft(
                organization_id="acme",
                draft_id=author.name,
                version=author.version,
                revision=author.revision,
                content=content,
                content_digest=hashlib.sha256(content).hexdigest(),
                approved=approved,
                targets=(author.target,) if has_target else (),
            )
        )

    async def new_slot(self, author: Author) -> None:
        self.sequence += 1
        now = self.process.clock.moment
        author.slot = Slot(
            organization_id="acme",
            slot_id=f"slot-{self.sequence}",
            sequence=self.sequence,
            revision=1,
            draft_id=author.name,
            targets=(author.target,),
            schedule_time=now,
            not_after=now + self.dice.choice([timedelta(minutes=2), LATEST]),
            target_month="2026-03",
            traceparent="",
        )
        await self.process.take(author.slot)

    async def move(self, author: Author) -> None:
        if author.slot is not None:
            now = self.process.clock.moment
            author.slot = replace(
                author.slot, revision=author.slot.revision + 1, schedule_time=now, not_after=now + LATEST
            )
            await self.process.take(author.slot)

    async def reconnect(self, author: Author) -> None:
        await self.process.connect(author.target.social_account_id)

    async def person(self, author: Author) -> None:
        job = await self.process.job(author.job_id)
        if self.dice.random() < 0.3 or job.state not in ("UNKNOWN", "NEEDS_ATTENTION"):
            return
        said = self.dice.choice(list(Said))
        if said is Said.NOT_PUBLISHED:
            self.world.denied.add(f"{author.job_id}-{job.run}")
        await self.process.resolve(author.job_id, said)

    async def drop_kept(self, author: Author) -> None:
        await self.process.drop_kept()

    async def check(self) -> None:
        for job in await self.process.rows("select * from post_job"):
            key = f"{job.id}-{job.run}"
            unproven = key in self.world.doubtful and key not in self.world.denied
            assert not (unproven and job.state in UNSENT), f"{key} is {job.state}"
            assert job.attempts <= MOST
            if job.state == "PUBLISHED" and job.evidence_kind == "PROVIDER_ID":
                assert job.external_id in self.world.effects

    async def end(self) -> None:
        """Nothing else happens: whatever is open ends."""
        for account in self.accounts:
            await self.process.connect(account)
        for author in self.authors:
            assert author.slot is not None
            await self.claim([_command(author, author.slot)])
        end = self.process.clock.moment + timedelta(hours=1)
        while open_jobs := await self.process.rows(OPEN):
            assert self.process.clock.moment < end, open_jobs
            self.process.clock.moment += timedelta(seconds=10)
            await self.sweep(self.authors[0])
            await self.take_turns(self.authors[0])
            await self.check()
        assert await self.process.rows("select 1 from account_gate where open_job_id is not null") == []


def _command(author: Author, slot: Slot) -> Command:
    assert slot.not_after is not None
    return Command(
        organization_id="acme",
        draft_id=author.name,
        target=author.target,
        slot_sequence=slot.sequence,
        slot_id=slot.slot_id,
        slot_revision=slot.revision,
        emission=1,
        schedule_time=slot.schedule_time,
        not_after=slot.not_after,
        content_revision=author.revision,
        max_attempts=MOST,
        traceparent="",
    )


@pytest.mark.parametrize("seed", range(6, 14))
async def test_whatever_happens_to_its_attempts_a_run_ends_and_ends_right(database_url: str, seed: int) -> None:
    world = World(random.Random(seed))
    process = Process(database_url, world, FrozenDatabaseClock())
    try:
        await History(process, world, drafts=6).run(250)
    finally:
        await process.database.dispose()
