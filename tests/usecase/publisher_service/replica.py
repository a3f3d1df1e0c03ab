"""The use cases of one publisher process, wired on a real database, for tests that call them one by one."""

import base64
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Row, text

from channels import KNOWN
from publisher_service.adapters.postgres.accounts import insert_account
from publisher_service.adapters.providers.adapter import Adapter, Limits, Post, Proof
from publisher_service.adapters.providers.provider import Providers
from publisher_service.adapters.providers.sandbox_rules import SANDBOX_RULES
from publisher_service.adapters.vault import Vault
from publisher_service.application import post_log
from publisher_service.application.begin_follow_ups import BeginFollowUps
from publisher_service.application.cancel_post_jobs import CancelPostJobs
from publisher_service.application.claim_jobs import Claim, ClaimJobs, Turns
from publisher_service.application.connect_account import ConnectAccount
from publisher_service.application.disown_claims import DisownClaims
from publisher_service.application.drop_kept_content import DropKeptContent
from publisher_service.application.drop_slots import DropSlots
from publisher_service.application.end_holds import EndHolds
from publisher_service.application.explain_post_job import ExplainPostJob
from publisher_service.application.free_posts import FreePosts
from publisher_service.application.hold_check import HoldCheck
from publisher_service.application.late_evidence import LateEvidence
from publisher_service.application.marks import Marks
from publisher_service.application.publish_now import PublishNow
from publisher_service.application.put_hold import PutHold
from publisher_service.application.recover_jobs import RecoverJobs
from publisher_service.application.relabel_lines import RelabelLines
from publisher_service.application.release_hold import ReleaseHold
from publisher_service.application.resolve_post_job import ResolvePostJob
from publisher_service.application.resolve_unknown import ResolveUnknown
from publisher_service.application.retry_post_job import RetryPostJob
from publisher_service.application.save_drafts import SaveDrafts
from publisher_service.application.send_post import SendPost, Sent
from publisher_service.application.settle_posts import SettlePosts
from publisher_service.application.storing_account import StoringAccount
from publisher_service.application.take_slots import TakeSlots
from publisher_service.application.wake_stranded_lines import WakeStrandedLines
from publisher_service.application.withdraw_content import WithdrawContent
from publisher_service.domain.account import AccountState, Connection, SocialAccount
from publisher_service.domain.claim import Claimed, Command, Lane
from publisher_service.domain.credentials import Credentials
from publisher_service.domain.hold import Hold, Holding, Scope, WantedHold
from publisher_service.domain.limits import DEFAULTS, LimitDefaults
from publisher_service.domain.outcome import Absent, Accepted, Finding, Outcome
from publisher_service.domain.plan import SavedDraft, Slot
from publisher_service.domain.policy import Policy
from publisher_service.domain.post_job import PostJob, Target
from publisher_service.domain.publish_now import UrgentPost, UrgentPosts
from publisher_service.domain.take_back import SlotPost, TakenBack
from servicekit.clock import SystemClock
from servicekit.ids import Uuid7Source
from servicekit.pg.clock import DatabaseClock, SteadyClock
from servicekit.pg.database import Database
from servicekit.pg.ledger import RequestLedger
from servicekit.pg.outbox import Outbox
from servicekit.run.settings import Secret
from testkit.calls import call
from testkit.eventually import eventually

DUE = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
FAR = datetime(2126, 3, 2, 9, 0, tzinfo=UTC)
# That of most posts is the first.
CHANNELS = ("facebook", *(each for each in KNOWN if each != "facebook"))
# Retries and look-ups are due at once.
AT_ONCE = Policy(unknown_settle=timedelta(0), lookup_again=timedelta(0), retry_first=timedelta(0))
# The gate of an account in whose line nothing waits.
_OPEN_GATE = text("""
    insert into account_gate (organization_id, social_account_id, provider, connected)
    values ('acme', :id, 'sandbox', true)
    on conflict (organization_id, social_account_id) do update set connected = true, provider = 'sandbox'
""")


class TrustingAdapter:
    """Accepts every credential and finds no post."""

    name = "sandbox"
    rules = SANDBOX_RULES
    proof = Proof.KEYED
    limits = Limits(request_timeout=timedelta(seconds=1))

    async def verify(
        self, organization_id: str, external_account_id: str, credentials: Credentials, settings: Mapping[str, str]
    ) -> None:
        pass

    async def send(self, post: Post) -> Outcome:
        raise AssertionError("tests on a replica report outcomes themselves")

    async def look(self, post: Post) -> Finding:
        return Absent()


class Replica:
    """One publisher process without its engine: a test calls each use case itself."""

    def __init__(
        self,
        url: str,
        *,
        lease: timedelta = timedelta(seconds=30),
        clock: DatabaseClock | None = None,
        adapter: Adapter | None = None,
        policy: Policy = AT_ONCE,
        draw: Callable[[], float] = random.random,
        limits: LimitDefaults = DEFAULTS,
    ) -> None:
        self.database = database = Database(url, application="test")
        self.clock = clock = clock or DatabaseClock()
        self.vault = vault = Vault([("test", Secret(base64.b64encode(bytes(32)).decode()))])
        self.lanes = [Lane(provider="sandbox", room=1000, lease=lease)]
        ids, ledger = Uuid7Source(), RequestLedger(database, clock)
        self.system = system = SystemClock()
        steady, outbox = SteadyClock(system), Outbox(ids, lambda rows: None)
        providers = Providers([adapter or TrustingAdapter()], system)
        late = LateEvidence(outbox)
        self.marks = Marks(ids.new())
        self.claims = ClaimJobs(
            database=database,
            clock=clock,
            steady=steady,
            outbox=outbox,
            instance=self.marks.process,
            marks=self.marks,
            limits=limits,
        )
        holds = HoldCheck(database=database, clock=system)
        self.send_post = SendPost(
            providers=providers, vault=vault, holds=holds, database=database, clock=system, steady=steady
        )
        self.settle = SettlePosts(
            database=database,
            clock=clock,
            ids=ids,
            outbox=outbox,
            policies=lambda name: policy,
            late=late,
            wake_lines=_nothing,
            draw=draw,
        )
        self.recover = RecoverJobs(
            database=database, clock=clock, steady=steady, outbox=outbox, policies=lambda name: policy
        )
        self.look_up = ResolveUnknown(
            database=database,
            clock=clock,
            outbox=outbox,
            providers=providers,
            vault=vault,
            policies=lambda name: policy,
            late=late,
            draw=draw,
        )
        self.disown = DisownClaims(database=database, clock=clock, outbox=outbox, policy=policy, draw=draw)
        self.drop_kept = DropKeptContent(database)
        self.relabel = RelabelLines(database=database, clock=clock, outbox=outbox)
        self.wake_stranded = WakeStrandedLines(database=database, clock=clock)
        self.withdraw = WithdrawContent(database)
        self.resolve = ResolvePostJob(ledger=ledger, outbox=outbox)
        rules = providers.rules
        self.retry_post_job = RetryPostJob(ledger=ledger, outbox=outbox, rules=rules, wake_sweep=_nothing)
        self.begin_follow_ups = BeginFollowUps(
            database=database,
            clock=clock,
            outbox=outbox,
            rules=rules,
            policies=lambda name: policy,
            wake_sweep=_nothing,
        )
        self.put_hold = PutHold(ledger=ledger, providers=providers.names, on_changed=_nothing)
        self.release_hold = ReleaseHold(ledger=ledger, on_released=_nothing)
        self.end_holds = EndHolds(database=database, clock=clock, on_ended=_nothing)
        self.free = FreePosts(database=database, clock=clock, outbox=outbox, rate=500, on_freed=_nothing)
        self.cancel = CancelPostJobs(ledger=ledger, outbox=outbox)
        self.drop_slots = DropSlots(outbox)
        self.explain = ExplainPostJob(
            database=database, clock=clock, vault=vault, lanes=lambda: self.lanes, marks=self.marks, rules=rules
        )
        self.save_drafts = SaveDrafts(outbox, _nothing)
        self.publish_now = PublishNow(
            ledger=ledger, outbox=outbox, save_drafts=self.save_drafts, wake_sweep=_nothing, limits=limits
        )
        self.take_slots = TakeSlots(outbox)
        storing = StoringAccount(
            database=database, ids=ids, outbox=outbox, vault=vault, providers=providers, on_connected=_nothing
        )
        self.connect_account = ConnectAccount(database=database, ledger=ledger, storing=storing)

    async def claim(self, commands: Sequence[Command]) -> list[Claim]:
        return await self.claims(commands, self.lanes)

    async def send(self, claimed: Claimed) -> Sent:
        return await self.send_post(claimed, claim_started=self.system.monotonic())

    async def turns(self) -> Turns:
        return await self.claims.from_lines(self.lanes, most=100)

    async def next_in_line(self) -> list[Claimed]:
        return [claimed for _, claimed in (await self.turns()).claimed]

    async def save(self, *drafts: SavedDraft, now: datetime = DUE) -> None:
        await self.database.run(lambda tx: self.save_drafts(tx, drafts, now))

    async def take(self, *slots: Slot, now: datetime = DUE) -> None:
        await self.database.run(lambda tx: self.take_slots(tx, slots, now))

    async def drop(self, *posts: SlotPost, now: datetime = DUE) -> None:
        """Applies the cancellation of slots with one post each."""
        await self.database.run(lambda tx: self.drop_slots(tx, [[post] for post in posts], now))

    async def hold(
        self,
        account: str,
        *,
        scope: Scope = Scope.ACCOUNT,
        hold: str = "hold",
        revision: int = 0,
        reason: str = "",
        holder: str = "",
        end: datetime | None = None,
    ) -> Holding:
        """Puts a hold of the account, or of what else `account` names in the scope."""
        wanted = WantedHold(
            organization_id="acme",
            id=hold,
            scope=scope,
            scope_id=account,
            revision=revision,
            reason=reason,
            holder=holder,
            end_time=end,
        )
        holding: Holding = await self.put_hold(call("PutHold"), wanted)
        return holding

    async def release(self, hold: str = "hold", *, revision: int = 0) -> Hold:
        released: Hold = await self.release_hold(call("ReleaseHold"), hold, revision)
        return released

    async def retry(self, job_id: str, *, not_after: datetime | None = None, request_id: str = "") -> PostJob:
        job: PostJob = await self.retry_post_job(call("RetryPostJob", request_id=request_id), job_id, not_after)
        return job

    async def publish(
        self, draft: SavedDraft, *targets: Target, request_id: str = "", **fields: Any
    ) -> Sequence[UrgentPost]:
        """Publishes these targets of the draft, or all of them, at once."""
        asked = UrgentPosts(draft=draft, targets=targets or draft.targets, **fields)
        results: Sequence[UrgentPost] = await self.publish_now(call("PublishNow", request_id=request_id), asked)
        return results

    async def take_back(self, *posts: SlotPost) -> Sequence[TakenBack]:
        results: Sequence[TakenBack] = await self.cancel(call("CancelPostJobs"), posts)
        return results

    async def connect(self, account: str, *, token: str = "token", request_id: str = "") -> SocialAccount:
        wanted = Connection(
            organization_id="acme",
            account_id=account,
            provider="sandbox",
            external_account_id=f"ext-{account}",
            display_name="",
            channels=CHANNELS,
            credentials=Credentials(access_token=token),
        )
        connected: SocialAccount = await self.connect_account(call("ConnectAccount", request_id=request_id), wanted)
        return connected

    async def posts(self, count: int, *, account: str = "", approved: bool = True, connected: bool = True) -> list[str]:
        """Saves drafts with one target each: on an account of their own, or all on `account`."""
        names = [f"d{number}" for number in range(count)]
        accounts = {name: account or f"page-{name}" for name in names}
        await self.save(*(a_draft(name, accounts[name], approved=approved) for name in names))
        if connected:
            async with self.database.transaction() as tx:
                for each in sorted(set(accounts.values())):
                    sealed = self.vault.seal(Credentials(access_token="token"), organization_id="acme", account_id=each)
                    await insert_account(tx.connection, an_account(each), sealed)
                    await tx.connection.execute(_OPEN_GATE, {"id": each})
        return names

    async def rows(self, statement: str, **values: object) -> list[Row[Any]]:
        async with self.database.read() as connection:
            return list(await connection.execute(text(statement), values))

    async def write(self, statement: str, **values: object) -> None:
        """Changes rows as a process of another release, or a person, may."""
        async with self.database.transaction() as tx:
            await tx.connection.execute(text(statement), values)

    async def states(self) -> Counter[str]:
        return Counter(f"{row.state} {row.state_reason}".strip() for row in await self.rows("select * from post_job"))


def claims_in(answers: Sequence[Claim]) -> list[Claimed]:
    """Returns the jobs among the answers that were claimed."""
    return [answer for answer in answers if isinstance(answer, Claimed)]


def a_command(draft: str, account: str = "") -> Command:
    return Command(
        organization_id="acme",
        draft_id=draft,
        target=Target(social_account_id=account or f"page-{draft}", channel="facebook"),
        slot_id="slot",
        slot_revision=1,
        emission=1,
        schedule_time=DUE,
        not_after=FAR,
        content_revision=1,
        max_attempts=5,
        traceparent="",
    )


def a_slot_post(draft: str, account: str = "", *, slot: str = "slot", revision: int = 1, sequence: int = 0) -> SlotPost:
    return SlotPost(
        organization_id="acme",
        draft_id=draft,
        target=Target(social_account_id=account or f"page-{draft}", channel="facebook"),
        slot_id=slot,
        slot_revision=revision,
        slot_sequence=sequence,
    )


def a_draft(
    draft: str, account: str, *, approved: bool = True, version: int = 1, brand: str = "", campaign: str = ""
) -> SavedDraft:
    return SavedDraft(
        organization_id="acme",
        draft_id=draft,
        version=version,
        revision=1,
        content=b"",
        content_digest="",
        approved=approved,
        targets=(Target(social_account_id=account, channel="facebook"),),
        brand_id=brand,
        campaign_id=campaign,
    )


def an_account(name: str) -> SocialAccount:
    return SocialAccount(
        organization_id="acme",
        id=name,
        provider="sandbox",
        external_account_id=f"ext-{name}",
        display_name="",
        channels=CHANNELS,
        state=AccountState.CONNECTED,
        version=1,
        create_time=DUE,
        update_time=DUE,
    )


def a_sent(claimed: Claimed, outcome: Outcome | None = None) -> Sent:
    """A request and its outcome; `Accepted` when none is given."""
    accepted = Accepted(external_id=f"out-{claimed.job.draft_id}", external_url="")
    return Sent(claimed=claimed, outcome=outcome or accepted, time=claimed.job.update_time)


async def a_second_attempt(replica: Replica, hasty: Replica) -> tuple[Claimed, Claimed]:
    """Makes two attempts of one post: the first was lost and proven absent before the second began."""
    (name,) = await replica.posts(1)
    (first,) = claims_in(await hasty.claim([a_command(name)]))
    await replica.recover()
    (question,) = (await replica.recover()).questions
    await replica.look_up(question.job)
    assert await replica.states() == {"WAITING RETRY": 1}

    async def due() -> list[Command]:
        return list((await replica.recover()).due)

    (command,) = await eventually(due)
    (second,) = claims_in(await replica.claim([command]))
    assert (second.job.fence, second.job.attempts) == (2, 2)
    return first, second


def outcome_lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Returns what was logged about posts since the last call."""
    found = [record.getMessage() for record in caplog.records if record.name == post_log.__name__]
    caplog.clear()
    return found


def _nothing() -> None:
    pass
