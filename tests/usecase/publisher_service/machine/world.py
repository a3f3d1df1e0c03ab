"""Two publisher processes on one database, and everybody who speaks to them: Drafts, Queue, callers, the provider."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row

from postflow.drafts.v1 import draft_pb2
from publisher_service.application.disown_claims import FailedClaim
from publisher_service.application.send_post import Sent
from publisher_service.application.wake_parked import WakeParked
from publisher_service.domain.claim import Claimed, Command
from publisher_service.domain.hold import Scope
from publisher_service.domain.plan import SavedDraft, Slot
from publisher_service.domain.policy import Policy
from publisher_service.domain.post_job import Target, job_id
from publisher_service.domain.resolution import Resolution, Said
from publisher_service.domain.take_back import CancelOutcome, SlotPost
from servicekit.faults import Fault, NotFound, Refused
from servicekit.ids import Uuid7Source
from servicekit.pg.outbox import Outbox
from testkit.calls import call
from testkit.clocks import START
from testkit.database_clocks import FrozenDatabaseClock
from tests.usecase.publisher_service.machine.provider import ScriptedProvider
from tests.usecase.publisher_service.replica import CHANNELS, Replica

ORG = "acme"
MOST = 3
LEASE = timedelta(seconds=15)
POLICY = Policy(
    retry_first=timedelta(seconds=2),
    retry_cap=timedelta(seconds=30),
    unknown_settle=timedelta(seconds=10),
    unknown_deadline=timedelta(minutes=3),
    lookup_again=timedelta(seconds=5),
)
ACCOUNTS = ("keyed", "lookup", "blind")
DRAFTS = {"a": ("keyed",), "b": ("keyed",), "c": ("lookup",), "d": ("lookup", "keyed"), "e": ("blind", "lookup")}
"""The accounts of each draft's targets; another draft of that letter follows once it is out: a2, a3."""
EVERYTHING = "*"
CAPPED = "lookup"
EMPTY = """
    truncate post_job, attempt, open_claim, content, kept_content, resolution, account_gate, hold, hold_release,
        social_account, activity, outbox, inbox, request_ledger, account_action, reservation, parked_line
"""
_CAP = """
    insert into account_action (organization_id, social_account_id, action, cap) values ('acme', :account, 'POST', :cap)
"""
_LIMITED = "update account_gate set limited = true where social_account_id = :account"


@dataclass
class Draft:
    """A draft, as Drafts and Queue have announced it so far."""

    id: str
    accounts: tuple[str, ...]
    version: int = 0
    revision: int = 0
    slots: dict[str, Slot] = field(default_factory=dict)
    saved: SavedDraft | None = None

    def targets(self, *accounts: str) -> tuple[Target, ...]:
        return tuple(Target(social_account_id=each, channel=CHANNELS[0]) for each in accounts)

    def job_id(self, account: str) -> str:
        return job_id(ORG, self.id, self.targets(account)[0])


@dataclass
class Promised:
    """Promises to callers, checked at each request to the provider."""

    # The posts that may still go out under each hold in force, by hold and account.
    held: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)
    # The newest slot of each job that was taken back.
    canceled: dict[str, tuple[int, str, int]] = field(default_factory=dict)
    # The lowest revision of each draft that may go out, and the jobs that may be out with an older one.
    withdrawn: dict[str, tuple[int, frozenset[str]]] = field(default_factory=dict)

    def broken_by(self, claimed: Claimed) -> list[str]:
        job = claimed.job
        account, order = job.target.social_account_id, (job.slot_sequence, job.slot_id, job.slot_revision)
        found = [
            f"{job.id} is sent under the hold {hold}"
            for (hold, covered), in_flight in self.held.items()
            if covered in (account, EVERYTHING) and job.id not in in_flight
        ]
        if job.id in self.canceled and order <= self.canceled[job.id]:
            found.append(f"{job.id} is sent from the slot {order}, which was taken back")
        below, in_flight = self.withdrawn.get(job.draft_id, (0, frozenset[str]()))
        if job.content_revision < below and job.id not in in_flight:
            found.append(f"{job.id} is sent in revision {job.content_revision}, withdrawn below {below}")
        return found


class Processes:
    """Two publishers on one database, at one time and with one provider, which serve one world after another."""

    def __init__(self, url: str) -> None:
        self.clock = FrozenDatabaseClock(START)
        self.provider = ScriptedProvider()
        self.replicas = tuple(
            Replica(url, lease=LEASE, clock=self.clock, adapter=self.provider, policy=POLICY, draw=lambda: 0.5)
            for _ in range(2)
        )
        outbox = Outbox(Uuid7Source(), lambda rows: None)
        self.wakes = tuple(
            WakeParked(database=each.database, clock=self.clock, outbox=outbox, wake_lines=lambda: None)
            for each in self.replicas
        )

    async def close(self) -> None:
        for replica in self.replicas:
            await replica.database.dispose()


class World:
    def __init__(self, processes: Processes) -> None:
        self.clock, self.provider, self.replicas = processes.clock, processes.provider, processes.replicas
        self._wakes = processes.wakes
        self.cap: int | None = None
        # Jobs that this step sends at once: what it cancels at the same time may come first.
        self.urgent: set[str] = set()
        self.promised = Promised()
        self.drafts: dict[str, Draft] = {}
        self.tokens: defaultdict[str, int] = defaultdict(int)
        # What may come again, or late: the events, commands, answers, and claims whose COMMIT was not answered.
        self.events: list[SavedDraft | Slot | SlotPost] = []
        self.commands: list[Command] = []
        self.late: list[Sent] = []
        self.failed: list[FailedClaim] = []
        # Keys: a person has said that these are not out; nobody has settled these.
        self.denied: set[str] = set()
        self.lost: set[str] = set()
        self.broken: list[str] = []
        self.sequence = 0

    @property
    def now(self) -> datetime:
        return self.clock.moment

    async def begin(self) -> None:
        self.clock.moment = START
        self.provider.forget()
        for replica in self.replicas:
            replica.claims.failed.clear()
        await self.replicas[0].write(EMPTY)
        for account in ACCOUNTS:
            await self.connect(0, account)
        for letter in DRAFTS:
            await self.save(0, letter)

    def draft(self, letter: str) -> Draft:
        """Returns the draft of the letter that is not out yet."""
        if letter not in self.drafts:
            self.drafts[letter] = Draft(letter, DRAFTS[letter])
        return self.drafts[letter]

    # Drafts

    async def save(
        self, process: int, letter: str, *, approved: bool = True, new_text: bool = True, left: int = 2
    ) -> None:
        """Announces the draft, with the first targets `left`."""
        draft = self.draft(letter)
        draft.version += 1
        draft.revision += new_text or not draft.revision
        said = {account: f"{account}: {draft.id} in revision {draft.revision}" for account in draft.accounts}
        content = draft_pb2.DraftContent(text=next(iter(said.values()))).SerializeToString(deterministic=True)
        saved = SavedDraft(
            organization_id=ORG,
            draft_id=draft.id,
            version=draft.version,
            revision=draft.revision,
            content=content,
            content_digest=hashlib.sha256(content).hexdigest(),
            approved=approved,
            targets=draft.targets(*draft.accounts[:left]),
        )
        self.events.append(saved)
        draft.saved = saved
        await self.replicas[process].save(saved, now=self.now)

    async def withdraw(self, process: int, letter: str) -> None:
        draft = self.draft(letter)
        below = draft.revision + 1
        withdrawal = await self.replicas[process].withdraw(ORG, draft.id, below)
        if not withdrawal.published:
            self.promised.withdrawn[draft.id] = below, frozenset(withdrawal.in_flight)

    # Queue

    async def schedule(self, process: int, letter: str, account: str, *, ahead: timedelta, late: timedelta) -> None:
        """Gives the post a new slot, or moves the slot that it has."""
        draft = self.draft(letter)
        known = draft.slots.get(account)
        moves = known is not None and self.sequence % 2 == 0
        self.sequence += 1
        due = self.now + ahead
        draft.slots[account] = slot = Slot(
            organization_id=ORG,
            slot_id=known.slot_id if known and moves else f"slot-{self.sequence}",
            sequence=known.sequence if known and moves else self.sequence,
            revision=known.revision + 1 if known and moves else 1,
            draft_id=draft.id,
            targets=draft.targets(account),
            schedule_time=due,
            not_after=due + late,
            target_month="2026-03",
            traceparent="",
        )
        self.events.append(slot)
        self.commands.append(_command(slot, draft.revision))
        await self.replicas[process].take(slot, now=self.now)

    async def repeat_event(self, process: int, number: int) -> None:
        """Has an event come once more, after newer ones."""
        event = self.events[number % len(self.events)]
        replica = self.replicas[process]
        match event:
            case SavedDraft():
                await replica.save(event, now=self.now)
            case Slot():
                await replica.take(event, now=self.now)
            case SlotPost():
                await replica.drop(event, now=self.now)

    async def cancel(self, process: int, letter: str, account: str) -> None:
        post = self._slot_post(letter, account)
        if post is None:
            return
        (taken,) = await self.replicas[process].take_back(post)
        if taken.outcome is CancelOutcome.CANCELED and post.post_job_id not in self.urgent:
            self.promised.canceled[post.post_job_id] = max(
                post.order, self.promised.canceled.get(post.post_job_id, post.order)
            )

    async def drop_slot(self, process: int, letter: str, account: str) -> None:
        """Has Queue cancel a slot that it has not dispatched."""
        post = self._slot_post(letter, account)
        if post is not None:
            self.events.append(post)
            self.commands = [each for each in self.commands if each.slot_id != post.slot_id]
            await self.replicas[process].drop(post, now=self.now)

    def _slot_post(self, letter: str, account: str) -> SlotPost | None:
        draft = self.draft(letter)
        slot = draft.slots.get(account)
        if slot is None:
            return None
        return SlotPost(
            organization_id=ORG,
            draft_id=draft.id,
            target=slot.targets[0],
            slot_id=slot.slot_id,
            slot_revision=slot.revision,
            slot_sequence=slot.sequence,
        )

    # callers

    async def hold(self, process: int, hold: str, account: str) -> None:
        name = f"{hold}-{account}"
        holding = await self.replicas[process].hold(account, hold=name)
        self.promised.held.setdefault((name, account), frozenset(holding.in_flight))

    async def hold_all(self, process: int, scope: Scope) -> None:
        """Holds all accounts there are, of the organization or of the provider."""
        name = f"{scope}-{EVERYTHING}"
        covered = "" if scope is Scope.ORGANIZATION else "sandbox"
        holding = await self.replicas[process].hold(covered, hold=scope.lower(), scope=scope)
        self.promised.held.setdefault((name, EVERYTHING), frozenset(holding.in_flight))

    async def release_all(self, process: int, scope: Scope) -> None:
        if self.promised.held.pop((f"{scope}-{EVERYTHING}", EVERYTHING), None) is not None:
            await self.replicas[process].release(scope.lower())

    async def put_cap(self, cap: int) -> None:
        self.cap = cap
        await self.replicas[0].write(_CAP, account=CAPPED, cap=cap)
        await self.replicas[0].write(_LIMITED, account=CAPPED)

    async def retry(self, process: int, letter: str, account: str) -> None:
        with suppress(Refused, NotFound):
            await self.replicas[process].retry(self.draft(letter).job_id(account))

    async def publish_now(self, process: int, letter: str, account: str) -> None:
        """Sends a post at once, no matter what its slot is; what was taken back before may go out."""
        draft = self.draft(letter)
        target, job = draft.targets(account)[0], draft.job_id(account)
        if draft.saved is None or target not in draft.saved.targets:
            return
        self.urgent.add(job)
        before = self.promised.canceled.pop(job, None)
        try:
            (result,) = await self.replicas[process].publish(draft.saved, target)
            refused = bool(result.reason)
        except Refused:
            refused = True
        if refused and before:
            self.promised.canceled[job] = before

    async def release(self, process: int, hold: str, account: str) -> None:
        name = f"{hold}-{account}"
        # From now on, not from the answer on: the release may take effect at any time between.
        if self.promised.held.pop((name, account), None) is not None:
            await self.replicas[process].release(name)

    async def connect(self, process: int, account: str) -> None:
        self.tokens[account] += 1
        await self.replicas[process].connect(account, token=f"token-{self.tokens[account]}")

    async def resolve(self, process: int, letter: str, account: str) -> None:
        """A person says the truth about a post of unknown outcome."""
        draft = self.draft(letter)
        jobs = await self.rows("select * from post_job where id = :id", id=draft.job_id(account))
        if not jobs or jobs[0].state not in ("UNKNOWN", "NEEDS_ATTENTION"):
            return
        key = f"{jobs[0].id}-{jobs[0].run}"
        if any(sent.claimed.idempotency_key == key for sent in self.late):
            return  # who could know it now?
        effects = self.provider.effects.get(key)
        said = Resolution(
            outcome=Said.PUBLISHED if effects else Said.NOT_PUBLISHED,
            external_id=effects[0] if effects else "",
            external_url="",
            publish_time=None,
            resolver="ann",
            note="",
        )
        if not effects:
            self.denied.add(key)
        try:
            await self.replicas[process].resolve(call("ResolvePostJob"), jobs[0].id, said)
        except Fault as fault:
            # A look, or an answer, came first.
            if fault.reason != "POST_JOB_NOT_RESOLVABLE":
                raise

    # the engine

    async def deliver(self, process: int, number: int, answer: str) -> None:
        """Delivers a command that is due; also an old one."""
        due = [command for command in self.commands if command.schedule_time <= self.now]
        if due:
            command = due[-1 - number % len(due)]
            await self._claim(process, [replace(command, emission=1 + number % 2)], answer)

    async def sweep(self, process: int, answer: str) -> None:
        found = await self.replicas[process].recover()
        for question in found.questions:
            await self.replicas[process].look_up(question.job)
        if found.due:
            await self._claim(process, found.due, answer)

    async def take_turns(self, process: int, answer: str) -> None:
        while await self.replicas[process].relabel():
            pass
        while await self.replicas[process].free():
            pass
        await self._wakes[process].look()
        turns = await self.replicas[process].turns()
        for _, claimed in turns.claimed:
            await self._send(process, claimed, answer)

    async def _claim(self, process: int, commands: Sequence[Command], answer: str) -> None:
        for each in await self.replicas[process].claim(commands):
            if isinstance(each, Claimed):
                await self._send(process, each, answer)

    async def _send(self, process: int, claimed: Claimed, answer: str) -> None:
        self.lost.add(claimed.idempotency_key)
        if answer == "claim failed":
            (attempt,) = await self.rows(
                "select sender from attempt where post_job_id = :id and fence = :fence",
                id=claimed.job.id,
                fence=claimed.job.fence,
            )
            self.failed.append(FailedClaim(sender=attempt.sender, jobs=[claimed.job.key]))
            return
        late = answer.startswith("late ")
        answer = answer.removeprefix("late ")
        if answer != "not begun":
            self.broken += self.promised.broken_by(claimed)
        outcome = self.provider.request(claimed, answer)
        sent = Sent(claimed=claimed, outcome=outcome, time=self.now)
        if late:
            self.late.append(sent)
        elif not answer.endswith("silent"):
            await self.replicas[process].settle([sent])
            self.lost.discard(claimed.idempotency_key)

    async def answer_late(self, process: int) -> None:
        late, self.late = self.late, []
        for sent in late:
            await self.replicas[process].settle([sent])

    async def disown(self, process: int) -> None:
        failed, self.failed = self.failed, []
        for each in failed:
            await self.replicas[process].disown(each)

    async def rows(self, statement: str, **values: object) -> list[Row[Any]]:
        return await self.replicas[0].rows(statement, **values)


def _command(slot: Slot, revision: int) -> Command:
    assert slot.not_after is not None
    return Command(
        organization_id=ORG,
        draft_id=slot.draft_id,
        target=slot.targets[0],
        slot_sequence=slot.sequence,
        slot_id=slot.slot_id,
        slot_revision=slot.revision,
        emission=1,
        schedule_time=slot.schedule_time,
        not_after=slot.not_after,
        content_revision=revision,
        max_attempts=MOST,
        traceparent="",
    )
