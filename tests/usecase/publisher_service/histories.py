"""Random histories of posts on the real statements, for tests that add actions of their own."""

import hashlib
import itertools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from sqlalchemy import Row

from postflow.drafts.v1 import draft_pb2
from publisher_service.application.claim_jobs import Claim
from publisher_service.application.disown_claims import FailedClaim
from publisher_service.application.send_post import Sent
from publisher_service.domain.claim import Claimed, Command
from publisher_service.domain.plan import SavedDraft, Slot
from publisher_service.domain.policy import Policy
from publisher_service.domain.post_job import Target, job_id
from publisher_service.domain.resolution import Resolution, Said
from testkit.calls import call
from testkit.database_clocks import FrozenDatabaseClock
from tests.usecase.publisher_service.random_provider import RandomProvider
from tests.usecase.publisher_service.replica import CHANNELS, Replica

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
UNSENT = ("FAILED", "MISSED", "CANCELED")
OPEN = """
    select id, state, state_reason from post_job
    where state not in ('PENDING', 'FAILED', 'MISSED', 'CANCELED', 'PUBLISHED', 'NEEDS_ATTENTION')
"""


@dataclass
class Author:
    """One draft, as Drafts and Queue have announced it so far."""

    name: str
    account: str
    version: int = 0
    revision: int = 0
    said: str = ""
    slot: Slot | None = None

    @property
    def target(self) -> Target:
        return Target(social_account_id=self.account, channel=CHANNELS[0])

    @property
    def job_id(self) -> str:
        return job_id("acme", self.name, self.target)


class History:
    """Does things at random, and checks after each what must be true of every post."""

    def __init__(self, replica: Replica, clock: FrozenDatabaseClock, provider: RandomProvider, *, drafts: int) -> None:
        self.replica = replica
        self.clock = clock
        self.provider = provider
        self.dice = provider.dice
        self.authors: list[Author] = []
        self.numbers = itertools.count()
        self.accounts = [f"page-{number}" for number in range(drafts // 2)]
        self.drafts = drafts
        self.late: list[Sent] = []
        self.failed: list[FailedClaim] = []
        self.sequence = 0

    async def run(self, steps: int) -> None:
        for account in self.accounts:
            await self.replica.connect(account)
        for _ in range(self.drafts):
            self.authors.append(await self.begin())
        for _ in range(steps):
            (act,) = self.dice.choices(list(self.actions), list(self.actions.values()))
            author = self.dice.choice(self.authors)
            await act(author)
            await self.check()
        await self.end()

    async def begin(self) -> Author:
        author = Author(f"d{next(self.numbers)}", self.dice.choice(self.accounts))
        await self.save(author)
        await self.new_slot(author)
        return author

    @property
    def actions(self) -> Mapping[Callable[[Author], Awaitable[None]], int]:
        """Returns each action and its weight."""
        return {
            self.pass_time: 20,
            self.command: 20,
            self.sweep: 20,
            self.take_turns: 20,
            self.answer_late: 3,
            self.disown: 3,
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
        self.clock.moment += timedelta(seconds=self.dice.choice([1, 5, 12, 20, 60]))

    async def command(self, author: Author) -> None:
        job = await self.job_of(author)
        if job.state in ("PUBLISHED", "NEEDS_ATTENTION"):
            self.authors[self.authors.index(author)] = author = await self.begin()
        assert author.slot is not None
        await self.claim([a_command_of(author, author.slot)])

    async def sweep(self, author: Author) -> None:
        found = await self.replica.recover()
        for question in found.questions:
            if self.dice.random() < 0.8:
                await self.replica.look_up(question.job)
        await self.claim(found.due)

    async def take_turns(self, author: Author) -> None:
        while await self.replica.relabel():
            pass
        turns = await self.replica.turns()
        for _, claimed in turns.claimed:
            await self.send(claimed)

    async def claim(self, commands: Sequence[Command]) -> None:
        answers: Sequence[Claim] = await self.replica.claim(commands) if commands else []
        for answer in answers:
            if isinstance(answer, Claimed):
                await self.send(answer)

    async def send(self, claimed: Claimed) -> None:
        if self.dice.random() < 0.1:
            # The answer to the COMMIT is lost, so nothing is sent.
            (attempt,) = await self.replica.rows(
                "select sender from attempt where post_job_id = :id and fence = :fence",
                id=claimed.job.id,
                fence=claimed.job.fence,
            )
            self.failed.append(FailedClaim(sender=attempt.sender, jobs=[("acme", claimed.job.id)]))
            return
        outcome = self.provider.request(claimed)
        if outcome is None:
            return
        sent = Sent(claimed=claimed, outcome=outcome, time=self.clock.moment)
        if self.dice.random() < 0.2:
            self.late.append(sent)
        else:
            await self.replica.settle([sent])

    async def answer_late(self, author: Author) -> None:
        late, self.late = self.late, []
        for sent in late:
            await self.replica.settle([sent])

    async def disown(self, author: Author) -> None:
        failed, self.failed = self.failed, []
        for each in failed:
            await self.replica.disown(each)

    async def save(self, author: Author) -> None:
        """Saves and approves a new text."""
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
        await self.replica.withdraw("acme", author.name, author.revision + 1)
        if self.dice.random() < 0.7:
            await self.save(author)

    def ids_of(self, author: Author) -> tuple[str, str]:
        """Returns the brand and the campaign of the draft."""
        return "", ""

    async def _announce(self, author: Author, *, approved: bool = True, has_target: bool = True) -> None:
        author.version += 1
        draft = self.announced(author, approved=approved, has_target=has_target)
        await self.replica.save(draft, now=self.clock.moment)

    def announced(self, author: Author, *, approved: bool = True, has_target: bool = True) -> SavedDraft:
        brand_id, campaign_id = self.ids_of(author)
        content = draft_pb2.DraftContent(text=author.said).SerializeToString(deterministic=True)
        return SavedDraft(
            organization_id="acme",
            draft_id=author.name,
            version=author.version,
            revision=author.revision,
            content=content,
            content_digest=hashlib.sha256(content).hexdigest(),
            approved=approved,
            targets=(author.target,) if has_target else (),
            brand_id=brand_id,
            campaign_id=campaign_id,
        )

    async def new_slot(self, author: Author) -> None:
        self.sequence += 1
        now = self.clock.moment
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
        await self.replica.take(author.slot, now=self.clock.moment)

    async def move(self, author: Author) -> None:
        if author.slot is not None:
            now = self.clock.moment
            author.slot = replace(
                author.slot, revision=author.slot.revision + 1, schedule_time=now, not_after=now + LATEST
            )
            await self.replica.take(author.slot, now=self.clock.moment)

    async def reconnect(self, author: Author) -> None:
        await self.replica.connect(author.target.social_account_id)

    async def person(self, author: Author) -> None:
        job = await self.job_of(author)
        if self.dice.random() < 0.3 or job.state not in ("UNKNOWN", "NEEDS_ATTENTION"):
            return
        said = self.dice.choice(list(Said))
        if said is Said.NOT_PUBLISHED:
            self.provider.denied.add(f"{author.job_id}-{job.run}")
        await self.resolve(author, said)

    async def drop_kept(self, author: Author) -> None:
        await self.replica.drop_kept()

    async def resolve(self, author: Author, outcome: Said) -> None:
        said = Resolution(
            outcome=outcome,
            external_id="said" if outcome is Said.PUBLISHED else "",
            external_url="",
            publish_time=None,
            resolver="ann",
            note="",
        )
        await self.replica.resolve(call("ResolvePostJob"), author.job_id, said)

    async def job_of(self, author: Author) -> Row[Any]:
        (job,) = await self.replica.rows("select * from post_job where id = :id", id=author.job_id)
        return job

    async def check(self) -> None:
        """Checks that no run in doubt ended as unsent, that attempts are limited, and that proof is real."""
        for job in await self.replica.rows("select * from post_job"):
            key = f"{job.id}-{job.run}"
            unproven = key in self.provider.doubtful and key not in self.provider.denied
            assert not (unproven and job.state in UNSENT), f"{key} is {job.state}"
            assert job.attempts <= MOST
            if job.state == "PUBLISHED" and job.evidence_kind == "PROVIDER_ID":
                assert job.external_id in self.provider.effects

    async def end(self) -> None:
        """Lets time pass until everything that is open has ended; nothing new begins."""
        for account in self.accounts:
            await self.replica.connect(account)
        for author in self.authors:
            assert author.slot is not None
            await self.claim([a_command_of(author, author.slot)])
        end = self.clock.moment + timedelta(hours=1)
        while open_jobs := await self.replica.rows(OPEN):
            assert self.clock.moment < end, open_jobs
            self.clock.moment += timedelta(seconds=10)
            await self.sweep(self.authors[0])
            await self.take_turns(self.authors[0])
            await self.check()
        assert await self.replica.rows("select 1 from account_gate where open_job_id is not null") == []


def a_command_of(author: Author, slot: Slot) -> Command:
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
