"""What several processes do to the same rows at the same time, on a real database."""

import asyncio
import base64
import logging
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Row, text

from publisher_service.adapters.postgres.accounts import insert_account
from publisher_service.adapters.postgres.lines import lock_due_lines
from publisher_service.adapters.providers.adapter import Limits, Post
from publisher_service.adapters.providers.provider import Providers
from publisher_service.adapters.vault import Vault
from publisher_service.application import post_log
from publisher_service.application.claim_jobs import Again, Claim, ClaimJobs, Turns
from publisher_service.application.connect_account import ConnectAccount
from publisher_service.application.late_evidence import LateEvidence
from publisher_service.application.recover_jobs import RecoverJobs
from publisher_service.application.relabel_lines import RelabelLines
from publisher_service.application.resolve_unknown import ResolveUnknown
from publisher_service.application.save_drafts import SaveDrafts
from publisher_service.application.send_post import Sent
from publisher_service.application.settle_posts import SettlePosts
from publisher_service.application.wake_stranded_lines import WakeStrandedLines
from publisher_service.application.withdraw_content import WithdrawContent
from publisher_service.domain.account import AccountState, Connection, SocialAccount
from publisher_service.domain.claim import Claimed, Command, Lane
from publisher_service.domain.outcome import (
    Absent,
    Accepted,
    AuthRefused,
    Finding,
    NotSent,
    NotTried,
    Outcome,
    Rejected,
)
from publisher_service.domain.plan import SavedDraft
from publisher_service.domain.policy import Policy
from publisher_service.domain.post_job import Target
from publisher_service.domain.withdrawal import Withdrawal
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
CHANNELS = ("facebook",)
# An account in whose line nothing waits.
CONNECT = text("""
    insert into account_gate (organization_id, social_account_id, provider, connected)
    values ('acme', :id, 'sandbox', true)
    on conflict (organization_id, social_account_id) do update set connected = true, provider = 'sandbox'
""")
DISCONNECT = text("update account_gate set connected = false, relabel = true, wake_time = null")


class TrustingAdapter:
    """Takes every credential, and finds nothing."""

    name = "sandbox"
    channels = CHANNELS
    limits = Limits(request_timeout=timedelta(seconds=1))

    async def verify(self, external_account_id: str, access_token: str) -> None:
        pass

    async def send(self, post: Post) -> Outcome:
        raise AssertionError("nothing is sent here")

    async def look(self, post: Post) -> Finding:
        return Absent()


class Office:
    """The use cases of one process."""

    def __init__(self, url: str, *, lease: timedelta = timedelta(seconds=30)) -> None:
        self.database = Database(url, application="test", pool_size=8)
        clock, ids = DatabaseClock(), Uuid7Source()
        steady, outbox = SteadyClock(SystemClock()), Outbox(ids, lambda rows: None)
        policy = Policy(unknown_settle=timedelta(0), lookup_again=timedelta(0), retry_first=timedelta(0))
        self._vault = vault = Vault([("test", Secret(base64.b64encode(bytes(32)).decode()))])
        providers = Providers([TrustingAdapter()], SystemClock())
        late = LateEvidence(outbox)
        self._lanes = [Lane(provider="sandbox", room=1000, lease=lease)]
        self._claim = ClaimJobs(database=self.database, clock=clock, steady=steady, outbox=outbox, instance=ids.new())
        self.settle = SettlePosts(
            database=self.database,
            clock=clock,
            ids=ids,
            outbox=outbox,
            policies=lambda name: policy,
            late=late,
            wake_lines=_nothing,
        )
        self.recover = RecoverJobs(
            database=self.database, clock=clock, steady=steady, outbox=outbox, policies=lambda name: policy
        )
        self.resolve = ResolveUnknown(
            database=self.database,
            clock=clock,
            outbox=outbox,
            providers=providers,
            vault=vault,
            policies=lambda name: policy,
            late=late,
        )
        self.relabel = RelabelLines(database=self.database, clock=clock, outbox=outbox)
        self.wake_stranded = WakeStrandedLines(database=self.database, clock=clock)
        self.withdraw = WithdrawContent(self.database)
        self._save = SaveDrafts(outbox, _nothing)
        self._connect = ConnectAccount(
            database=self.database,
            ids=ids,
            ledger=RequestLedger(self.database, clock),
            outbox=outbox,
            vault=vault,
            providers=providers,
            on_connected=_nothing,
        )

    async def claim(self, commands: Sequence[Command]) -> list[Claim]:
        return await self._claim(commands, self._lanes)

    async def turns(self) -> Turns:
        return await self._claim.from_lines(self._lanes, most=100)

    async def next_in_line(self) -> list[Claimed]:
        return [claimed for _, claimed in (await self.turns()).claimed]

    async def save(self, *drafts: SavedDraft) -> None:
        await self.database.run(lambda tx: self._save(tx, drafts, DUE))

    async def connect(self, account: str, *, token: str = "token") -> None:
        wanted = Connection(
            organization_id="acme",
            account_id=account,
            provider="sandbox",
            external_account_id="ext",
            display_name="",
            channels=CHANNELS,
            access_token=token,
        )
        await self._connect(call("ConnectAccount"), wanted)

    async def posts(self, count: int, *, account: str = "", approved: bool = True, connected: bool = True) -> list[str]:
        """So many drafts with one target each: of an account of its own, unless one is named."""
        names = [f"d{number}" for number in range(count)]
        accounts = {name: account or f"page-{name}" for name in names}
        await self.save(*(a_draft(name, accounts[name], approved=approved) for name in names))
        if connected:
            async with self.database.transaction() as tx:
                for each in sorted(set(accounts.values())):
                    sealed = self._vault.seal("token", organization_id="acme", account_id=each)
                    await insert_account(tx.connection, an_account(each), sealed)
                    await tx.connection.execute(CONNECT, {"id": each})
        return names

    async def rows(self, statement: str) -> list[Row[Any]]:
        async with self.database.statement() as connection:
            return list(await connection.execute(text(statement)))

    async def write(self, statement: str, **values: object) -> None:
        """Changes rows as a process of another release, or a person, may."""
        async with self.database.transaction() as tx:
            await tx.connection.execute(text(statement), values)

    async def states(self) -> Counter[str]:
        return Counter(f"{row.state} {row.state_reason}".strip() for row in await self.rows("select * from post_job"))


@pytest.fixture
async def office(database_url: str) -> AsyncIterator[Office]:
    office = Office(database_url)
    yield office
    await office.database.dispose()


@pytest.fixture
async def another(office: Office) -> AsyncIterator[Office]:
    another = Office(office.database.engine.url.render_as_string(hide_password=False))
    yield another
    await another.database.dispose()


@pytest.fixture
async def hasty(office: Office) -> AsyncIterator[Office]:
    """Its leases are over at once."""
    hasty = Office(office.database.engine.url.render_as_string(hide_password=False), lease=timedelta(0))
    yield hasty
    await hasty.database.dispose()


async def test_two_processes_with_the_same_commands_claim_each_once(office: Office, another: Office) -> None:
    names = await office.posts(500)
    claimed: list[str] = []

    async def work(mine: Office, order: Sequence[str]) -> None:
        left = list(order)
        while left:
            batch, left = left[:50], left[50:]
            answers = await mine.claim([a_command(name) for name in batch])
            claimed.extend(answer.job.draft_id for answer in answers if isinstance(answer, Claimed))

    async with asyncio.TaskGroup() as group:
        group.create_task(work(office, names))
        group.create_task(work(another, names[::-1]))
    assert sorted(claimed) == sorted(names)
    attempts = await office.rows("select post_job_id, state, fence from attempt")
    assert len(attempts) == 500
    assert {(row.state, row.fence) for row in attempts} == {("SENDING", 1)}
    assert await office.states() == {"SENDING": 500}


async def test_one_account_never_has_two_open_attempts(office: Office, another: Office) -> None:
    names = await office.posts(60, account="page")
    open_now: set[str] = set()
    sent: list[str] = []

    async def send(mine: Office, claimed: Claimed) -> None:
        open_now.add(claimed.job.draft_id)
        assert open_now == {claimed.job.draft_id}
        await asyncio.sleep(0)
        open_now.discard(claimed.job.draft_id)
        sent.append(claimed.job.draft_id)
        await mine.settle([a_sent(claimed)])

    async def work(mine: Office, commands: Sequence[Command]) -> None:
        left = list(commands)
        while len(sent) < len(names):
            batch, left = left[:7], left[7:]
            answers = await mine.claim(batch) if batch else []
            left += [command for command, answer in zip(batch, answers, strict=True) if isinstance(answer, Again)]
            for claimed in [*_claimed(answers), *await mine.next_in_line()]:
                await send(mine, claimed)

    async def wake(mine: Office) -> None:
        while len(sent) < len(names):
            await mine.wake_stranded()

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(wake(another))
        for part, mine in enumerate((office, office, another, another)):
            group.create_task(work(mine, [a_command(name, "page") for name in names[part::4]]))
    assert sorted(sent) == sorted(names)
    assert await office.states() == {"PUBLISHED": 60}
    assert await office.rows("select 1 from account_gate where open_job_id is not null") == []
    numbers = [row.number for row in await office.rows("select number from attempt")]
    assert numbers == [1] * 60


async def test_after_the_answer_of_a_withdrawal_no_older_text_starts(office: Office, another: Office) -> None:
    names = await office.posts(200)
    late: set[str] = set()

    async def withdraw(name: str) -> None:
        await asyncio.sleep(random.uniform(0, 0.02))
        if (await another.withdraw("acme", name, 2)).in_flight:
            late.add(name)

    for start in range(0, 200, 20):
        round_of = names[start : start + 20]
        async with asyncio.TaskGroup() as group:
            for name in round_of:
                group.create_task(withdraw(name))
            for half in (round_of[:10], round_of[10:]):
                await asyncio.sleep(random.uniform(0, 0.02))
                group.create_task(office.claim([a_command(name) for name in half]))
        again = await office.claim([a_command(name) for name in round_of])
        assert not any(isinstance(answer, Claimed) for answer in again)

    started = {row.draft_id for row in await office.rows("select draft_id from post_job where state = 'SENDING'")}
    assert started == late
    assert len(await office.rows("select 1 from attempt")) == len(late)
    assert await office.states() == {"SENDING": len(late), "BLOCKED WITHDRAWN": 200 - len(late)}


async def test_a_withdrawal_never_conceals_what_is_out(office: Office, another: Office) -> None:
    """Two processes send and settle while the texts are withdrawn: each answer is what the attempts say for ever."""
    names = await office.posts(300)
    answers: dict[str, Withdrawal] = {}

    async def withdraw(mine: Office, name: str) -> None:
        await asyncio.sleep(random.uniform(0, 0.08))
        answers[name] = await mine.withdraw("acme", name, 2)

    async def publish(mine: Office, some: Sequence[str]) -> None:
        claimed = _claimed(await mine.claim([a_command(name) for name in some]))
        await asyncio.sleep(random.uniform(0, 0.02))
        await mine.settle([a_sent(each) for each in claimed])

    for start in range(0, 300, 30):
        round_of = names[start : start + 30]
        async with asyncio.TaskGroup() as group:
            for place, name in enumerate(round_of):
                group.create_task(withdraw(another if place % 2 else office, name))
            for mine, half in ((office, round_of[:15]), (another, round_of[15:])):
                group.create_task(publish(mine, half))
        assert not _claimed(await office.claim([a_command(name) for name in round_of]))

    jobs = {row.draft_id: row for row in await office.rows("select * from post_job")}
    for name, answer in answers.items():
        out = jobs[name].state == "PUBLISHED"
        assert out == bool(answer.published or answer.in_flight), (name, answer)
        assert (jobs[name].withdrawn_below == 0) == bool(answer.published)
    kinds = Counter(
        "published" if each.published else "late" if each.in_flight else "in time" for each in answers.values()
    )
    assert len(kinds) == 3, kinds


async def test_an_approval_that_comes_with_the_claim_is_not_overlooked(office: Office, another: Office) -> None:
    """Of a job that was refused for want of an approval that had just come nobody would think again."""
    names = await office.posts(600, approved=False)

    async def approve(some: Sequence[str]) -> None:
        await asyncio.sleep(random.uniform(0, 0.01))
        await another.save(*(a_draft(name, f"page-{name}", version=2) for name in some))

    for start in range(0, 600, 40):
        round_of = names[start : start + 40]
        async with asyncio.TaskGroup() as group:
            for part in range(0, 40, 10):
                group.create_task(approve(round_of[part : part + 10]))
            await asyncio.sleep(random.uniform(0, 0.01))
            group.create_task(office.claim([a_command(name) for name in round_of]))
    states = await office.states()
    assert states["BLOCKED NOT_APPROVED"] == 0, states
    assert states["READY"] + states["SENDING"] + states["PENDING"] == 600


async def test_a_connection_that_comes_with_the_claim_is_not_overlooked(office: Office, another: Office) -> None:
    names = await office.posts(200, connected=False)

    async def connect(some: Sequence[str]) -> None:
        for name in some:
            await another.connect(f"page-{name}")

    for start in range(0, 200, 20):
        round_of = names[start : start + 20]
        async with asyncio.TaskGroup() as group:
            for part in range(0, 20, 5):
                group.create_task(connect(round_of[part : part + 5]))
            for part in range(0, 20, 4):
                await asyncio.sleep(random.uniform(0, 0.01))
                group.create_task(office.claim([a_command(name) for name in round_of[part : part + 4]]))
    while await office.next_in_line():
        pass
    states = await office.states()
    # What a claim found locked is asked for again by its command.
    assert states["SENDING"] + states["PENDING"] == 200, states


async def test_a_line_whose_first_post_may_not_go_is_looked_at_again_at_once(office: Office) -> None:
    names = await office.posts(3, account="page")
    answers = await office.claim([a_command(name, "page") for name in names])
    for name in names:
        await office.withdraw("acme", name, 2)
    await office.settle([a_sent(each) for each in _claimed(answers)])
    turns = [await office.turns() for _ in range(3)]
    assert [(len(each.claimed), each.more) for each in turns] == [(0, True), (0, True), (0, False)]
    assert await office.states() == {"PUBLISHED": 1, "BLOCKED WITHDRAWN": 2}
    assert await office.rows("select 1 from account_gate where lined or wake_time is not null") == []


@pytest.mark.parametrize(
    "left_behind",
    [
        "update account_gate set wake_time = null",
        "update account_gate set wake_time = null, lined = false",
        "update account_gate set open_job_id = (select id from post_job where state = 'PUBLISHED'), wake_time = null",
    ],
)
async def test_a_line_that_nothing_would_wake_is_woken(office: Office, left_behind: str) -> None:
    names = await office.posts(3, account="page")
    answers = await office.claim([a_command(name, "page") for name in names])
    await office.settle([a_sent(each) for each in _claimed(answers)])
    await office.write(left_behind)
    assert not await office.wake_stranded()
    for _ in range(2):
        await office.settle([a_sent(each) for each in await office.next_in_line()])
    assert await office.states() == {"PUBLISHED": 3}


@pytest.mark.parametrize("state", ["SENDING", "UPLOADING"], ids=["is out", "is in a state of a newer release"])
async def test_a_line_behind_a_post_that_goes_on_is_left_alone(office: Office, state: str) -> None:
    names = await office.posts(3, account="page")
    await office.claim([a_command(name, "page") for name in names])
    for constraint in ("post_job_state_check", "post_job_moves"):
        await office.write(f"alter table post_job drop constraint {constraint}")
    await office.write("update post_job set state = :state where state = 'SENDING'", state=state)
    await office.write("update account_gate set lined = false")
    assert not await office.wake_stranded()
    (gate,) = await office.rows("select * from account_gate")
    assert (gate.lined, gate.wake_time, gate.open_job_id is None) == (True, None, False)
    assert await office.next_in_line() == []


async def test_lines_are_looked_at_page_by_page(office: Office) -> None:
    wake_stranded = WakeStrandedLines(database=office.database, clock=DatabaseClock(), page=2)
    names = await office.posts(5)
    await office.claim([a_command(name) for name in names])
    await office.write("update post_job set state = 'READY', state_reason = 'IN_LINE'")
    await office.write("update account_gate set open_job_id = null")
    assert [await wake_stranded() for _ in range(4)] == [True, True, False, True]
    assert len(await office.rows("select 1 from account_gate where lined and wake_time is not null")) == 5


async def test_the_end_of_a_lease_wakes_the_line(office: Office, hasty: Office) -> None:
    names = await office.posts(3, account="page")
    await hasty.claim([a_command(name, "page") for name in names])
    assert await office.next_in_line() == []
    await office.recover()
    assert len(await office.next_in_line()) == 1
    assert await office.states() == {"UNKNOWN": 1, "SENDING": 1, "READY IN_LINE": 1}


async def test_a_line_has_its_turn_beside_very_many_of_an_organization(office: Office) -> None:
    await office.write(
        """
        insert into account_gate (organization_id, social_account_id, provider, connected, lined, wake_time)
        select organization_id, 'page-' || n, 'sandbox', true, true, cast(:due as timestamptz) + n * interval '1 second'
        from generate_series(1, 1300) n, lateral (
            select case when n <= 1200 then 'm' when n <= 1250 then 'b' || n else 'z' || n end as organization_id
        ) o
        """,
        due=DUE,
    )
    lanes = [Lane(provider="sandbox", room=101, lease=timedelta(seconds=15))]
    async with office.database.transaction() as tx:
        due = await lock_due_lines(tx.connection, lanes, now=DUE + timedelta(hours=1), most=200)
    assert len(set(due)) == len({organization for organization, _ in due}) == 101


async def test_lines_have_their_turns_over_organizations_and_providers(office: Office) -> None:
    for organization, provider, count, minute in (("big", "a", 9, 0), ("small", "a", 1, 9), ("other", "b", 9, 0)):
        await office.write(
            """
            insert into account_gate (organization_id, social_account_id, provider, connected, lined, wake_time)
            select cast(:organization as text), 'page-' || n, cast(:provider as text), true, true,
                cast(:due as timestamptz) + n * interval '1 second'
            from generate_series(1, cast(:count as integer)) n
            """,
            organization=organization,
            provider=provider,
            count=count,
            due=DUE + timedelta(minutes=minute),
        )
    lanes = [Lane(provider=name, room=room, lease=timedelta(seconds=15)) for name, room in (("a", 3), ("b", 2))]
    async with office.database.transaction() as tx:
        due = await lock_due_lines(tx.connection, lanes, now=DUE + timedelta(hours=1), most=100)
    assert sorted(due) == [
        ("big", "page-1"),
        ("big", "page-2"),
        ("other", "page-1"),
        ("other", "page-2"),
        ("small", "page-1"),
    ]


async def test_a_command_does_not_overtake_a_line(office: Office, another: Office) -> None:
    *names, last = await office.posts(4, account="page")
    answers = await office.claim([a_command(name, "page") for name in names])
    await office.settle([a_sent(each) for each in _claimed(answers)])
    assert _claimed(await another.claim([a_command(last, "page")])) == []
    assert await office.states() == {"PUBLISHED": 1, "READY IN_LINE": 3}
    assert len(await office.next_in_line()) == 1


async def test_a_line_goes_on_while_a_page_of_it_is_relabeled(office: Office, another: Office) -> None:
    names = await office.posts(250, account="page", connected=False)
    await office.claim([a_command(name, "page") for name in names])
    await office.connect("page")
    async with another.database.transaction() as tx:
        assert await another.relabel.page(tx)
        assert len(await office.next_in_line()) == 1
    while await office.relabel():
        pass
    assert await office.states() == {"SENDING": 1, "READY IN_LINE": 249}
    assert await office.rows("select 1 from account_gate where relabel") == []


async def test_a_post_without_its_times_ends_no_relabeling(office: Office) -> None:
    names = await office.posts(3, account="page", connected=False)
    await office.claim([a_command(name, "page") for name in names])
    await office.write("update post_job set not_after = null where draft_id = 'd1'")
    await office.connect("page")
    while await office.relabel():
        pass
    assert await office.states() == {"READY IN_LINE": 2, "BLOCKED ACCOUNT_NOT_CONNECTED": 1}
    assert await office.rows("select 1 from account_gate where relabel") == []


async def test_a_page_that_an_account_overtakes_is_relabeled_again(office: Office, another: Office) -> None:
    names = await office.posts(20, account="page", connected=False)
    await office.claim([a_command(name, "page") for name in names])
    await office.connect("page")
    async with another.database.transaction() as tx:
        assert await another.relabel.page(tx)
        async with office.database.transaction() as other:
            await other.connection.execute(DISCONNECT)
        assert not await office.relabel()
    while await office.relabel():
        pass
    assert await office.states() == {"BLOCKED ACCOUNT_NOT_CONNECTED": 20}
    assert await office.rows("select 1 from account_gate where relabel") == []


async def test_an_answer_and_the_end_of_its_lease_at_once_leave_one_proven_post(office: Office, hasty: Office) -> None:
    names = await office.posts(200)
    for start in range(0, 200, 20):
        claimed = _claimed(await hasty.claim([a_command(name) for name in names[start : start + 20]]))
        assert len(claimed) == 20
        async with asyncio.TaskGroup() as group:
            group.create_task(office.recover())
            await asyncio.sleep(random.uniform(0, 0.003))
            group.create_task(hasty.settle([a_sent(each) for each in claimed]))
    assert await office.states() == {"PUBLISHED": 200}
    attempts = await office.rows("select state, external_id from attempt")
    assert Counter(row.state for row in attempts) == {"ACCEPTED": 200}
    assert {row.external_id for row in attempts} == {f"out-{name}" for name in names}
    assert await office.rows("select 1 from account_gate where open_job_id is not null") == []


async def test_proof_that_comes_after_the_question_answers_it(office: Office, hasty: Office) -> None:
    (name,) = await office.posts(1)
    (claimed,) = _claimed(await hasty.claim([a_command(name)]))
    await office.recover()
    assert await office.states() == {"UNKNOWN": 1}
    await office.settle([a_sent(claimed)])
    (job,) = await office.rows("select * from post_job")
    assert (job.state, job.external_id, job.version) == ("PUBLISHED", f"out-{name}", claimed.job.version + 2)
    (attempt,) = await office.rows("select * from attempt")
    assert (attempt.state, attempt.external_id) == ("ACCEPTED", f"out-{name}")


async def test_an_answer_that_proves_nothing_leaves_the_question_open(office: Office, hasty: Office) -> None:
    (name,) = await office.posts(1)
    (claimed,) = _claimed(await hasty.claim([a_command(name)]))
    await office.recover()
    await office.settle([a_sent(claimed, Rejected(reason="TOO_LONG", message=""))])
    assert await office.states() == {"UNKNOWN": 1}


@pytest.mark.parametrize(
    ("outcome", "attempts"),
    [(NotTried(reason="LEASE_TOO_SHORT", message=""), 0), (NotSent(reason="CONNECTION_REFUSED", message=""), 1)],
    ids=lambda value: type(value).__name__,
)
async def test_an_attempt_that_was_not_sent_leaves_no_doubt_however_late(
    office: Office, hasty: Office, outcome: Outcome, attempts: int, caplog: pytest.LogCaptureFixture
) -> None:
    """The process stood still for longer than its lease."""
    caplog.set_level(logging.INFO, logger=post_log.__name__)
    (name,) = await office.posts(1)
    (claimed,) = _claimed(await hasty.claim([a_command(name)]))
    await office.recover()
    await hasty.settle([a_sent(claimed, outcome)])
    (job,) = await office.rows("select * from post_job")
    assert (job.state, job.state_reason, job.attempts, job.in_doubt) == ("WAITING", "RETRY", attempts, False)
    (attempt,) = await office.rows("select * from attempt")
    assert attempt.state == "NOT_SENT"
    before = await office.rows("select * from post_job")
    await hasty.settle([a_sent(claimed, outcome)])
    assert await office.rows("select * from post_job") == before
    assert _lines(caplog) == ["post unknown", "post waiting"]


async def test_an_attempt_that_was_not_sent_takes_no_doubt_from_another(office: Office, hasty: Office) -> None:
    first, second = await a_second_try(office, hasty)
    await hasty.settle([a_sent(first, NotTried(reason="LEASE_TOO_SHORT", message=""))])
    assert await office.states() == {"SENDING": 1}
    async with office.database.transaction() as tx:
        await tx.connection.execute(text("update post_job set next_action_time = now()"))
    await office.recover()
    await office.settle([a_sent(second, NotTried(reason="LEASE_TOO_SHORT", message=""))])
    (job,) = await office.rows("select * from post_job")
    assert (job.state, job.attempts, job.in_doubt) == ("WAITING", 1, True)


def _lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was said about posts since the last call."""
    found = [record.getMessage() for record in caplog.records if record.name == post_log.__name__]
    caplog.clear()
    return found


async def test_each_outcome_that_is_recorded_is_one_line_and_no_other(
    office: Office, hasty: Office, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger=post_log.__name__)
    (name,) = await office.posts(1)
    (claimed,) = _claimed(await hasty.claim([a_command(name)]))
    await office.recover()
    assert _lines(caplog) == ["post unknown"]
    await office.settle([a_sent(claimed, Rejected(reason="TOO_LONG", message=""))])
    assert _lines(caplog) == []
    await office.settle([a_sent(claimed)])
    assert _lines(caplog) == ["post published"]
    await office.settle([a_sent(claimed)])
    assert _lines(caplog) == []


async def test_a_post_whose_target_is_removed_is_one_line(office: Office, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger=post_log.__name__)
    (name,) = await office.posts(1)
    await office.save(a_draft(name, "another", version=2))
    assert _lines(caplog) == ["post canceled"]


async def test_an_account_that_is_disconnected_is_one_line(office: Office, caplog: pytest.LogCaptureFixture) -> None:
    (name,) = await office.posts(1)
    (claimed,) = _claimed(await office.claim([a_command(name)]))
    await office.settle([a_sent(claimed, AuthRefused(message="token revoked"))])
    (line,) = [each for each in caplog.records if each.getMessage() == "account disconnected"]
    said = {key: line.__dict__[key] for key in ("organization_id", "social_account_id", "error")}
    assert said == {"organization_id": "acme", "social_account_id": f"page-{name}", "error": "token revoked"}


async def a_second_try(office: Office, hasty: Office) -> tuple[Claimed, Claimed]:
    """The first was lost and found absent; then the second began."""
    (name,) = await office.posts(1)
    (first,) = _claimed(await hasty.claim([a_command(name)]))
    await office.recover()
    (question,) = (await office.recover()).questions
    await office.resolve(question.job)
    assert await office.states() == {"WAITING RETRY": 1}
    (due,) = await eventually(_due(office))
    (second,) = _claimed(await office.claim([due]))
    assert (second.job.fence, second.job.attempts) == (2, 2)
    return first, second


async def test_proof_from_an_earlier_try_ends_the_later_one(office: Office, hasty: Office) -> None:
    first, second = await a_second_try(office, hasty)
    await office.settle([a_sent(first)])
    assert await office.states() == {"PUBLISHED": 1}
    tries = await office.rows("select state from attempt order by fence")
    assert [row.state for row in tries] == ["ACCEPTED", "ABANDONED"]
    # The second request is still out: the account sends nothing else before its lease has ended.
    (gate,) = await office.rows("select resume_time from account_gate")
    assert gate.resume_time == second.job.next_action_time
    assert await office.rows("select 1 from account_gate where open_job_id is not null") == []

    before = await office.rows("select * from post_job")
    await office.settle([a_sent(second)])
    await office.settle([a_sent(second, Rejected(reason="DUPLICATE", message=""))])
    assert await office.rows("select * from post_job") == before


async def test_two_proofs_that_differ_are_cried_out(
    office: Office, hasty: Office, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = await a_second_try(office, hasty)
    await office.settle([a_sent(first)])
    assert not [record for record in caplog.records if record.levelname == "CRITICAL"]
    await office.settle([a_sent(second, Accepted(external_id="another", external_url=""))])
    (record,) = [record for record in caplog.records if record.levelname == "CRITICAL"]
    assert "is out twice: out-d0 and another" in record.getMessage()
    (job,) = await office.rows("select * from post_job")
    assert (job.state, job.external_id) == ("PUBLISHED", "out-d0")


async def test_a_refusal_of_credentials_that_have_been_replaced_disconnects_nobody(office: Office) -> None:
    (name,) = await office.posts(1)
    (claimed,) = _claimed(await office.claim([a_command(name)]))
    await office.connect(f"page-{name}", token="a newer one")
    await office.settle([a_sent(claimed, AuthRefused(message="expired"))])
    (account,) = await office.rows("select state, version from social_account")
    assert (account.state, account.version) == ("CONNECTED", 2)
    (again,) = await office.next_in_line()
    assert again.job.draft_id == name
    assert again.credentials != claimed.credentials


async def test_a_refusal_of_the_credentials_in_use_disconnects_the_account(office: Office) -> None:
    (name,) = await office.posts(1)
    (claimed,) = _claimed(await office.claim([a_command(name)]))
    await office.settle([a_sent(claimed, AuthRefused(message="expired"))])
    (account,) = await office.rows("select state from social_account")
    assert account.state == "DISCONNECTED"
    assert await office.states() == {"BLOCKED ACCOUNT_NOT_CONNECTED": 1}
    assert await office.next_in_line() == []
    await office.connect(f"page-{name}")
    (again,) = await office.next_in_line()
    assert again.job.draft_id == name


async def test_a_settlement_that_is_repeated_changes_nothing(office: Office) -> None:
    """The first commit went through, and its answer was lost on the way."""
    names = await office.posts(3)
    claimed = _claimed(await office.claim([a_command(name) for name in names]))
    batch = [
        a_sent(claimed[0]),
        a_sent(claimed[1], Rejected(reason="TOO_LONG", message="m")),
        a_sent(claimed[2], AuthRefused(message="m")),
    ]
    await office.settle(batch)
    everything = "select * from post_job order by id", "select * from attempt order by post_job_id"
    before = [await office.rows(statement) for statement in everything]
    events = await office.rows("select count(*) as count from outbox")
    await office.settle(batch)
    assert [await office.rows(statement) for statement in everything] == before
    assert await office.rows("select count(*) as count from outbox") == events


async def test_drafts_slots_claims_and_withdrawals_in_any_order_end_without_a_deadlock(
    office: Office, another: Office
) -> None:
    names = await office.posts(40)

    async def churn(mine: Office, version: int) -> None:
        order = random.sample(names, len(names))
        await mine.save(*(a_draft(name, f"page-{name}", version=version) for name in order))
        for name in order[:10]:
            await mine.withdraw("acme", name, 1)
        answers = await mine.claim([a_command(name) for name in order])
        await mine.settle([a_sent(each) for each in _claimed(answers)])
        await mine.recover()

    async with asyncio.TaskGroup() as group:
        for version in range(2, 10):
            group.create_task(churn(office if version % 2 else another, version))
    assert await office.rows("select 1 from account_gate where open_job_id is not null") == []
    assert set(await office.states()) <= {"PUBLISHED", "PENDING", "READY"}


def _due(office: Office) -> Callable[[], Awaitable[list[Command]]]:
    async def due() -> list[Command]:
        return list((await office.recover()).due)

    return due


def _claimed(answers: Sequence[Claim]) -> list[Claimed]:
    return [answer for answer in answers if isinstance(answer, Claimed)]


def _nothing() -> None:
    pass


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


def a_draft(draft: str, account: str, *, approved: bool = True, version: int = 1) -> SavedDraft:
    return SavedDraft(
        organization_id="acme",
        draft_id=draft,
        version=version,
        revision=1,
        content=b"",
        content_digest="",
        approved=approved,
        targets=(Target(social_account_id=account, channel="facebook"),),
    )


def an_account(name: str) -> SocialAccount:
    return SocialAccount(
        organization_id="acme",
        id=name,
        provider="sandbox",
        external_account_id="ext",
        display_name="",
        channels=CHANNELS,
        state=AccountState.CONNECTED,
        version=1,
        create_time=DUE,
        update_time=DUE,
    )


def a_sent(claimed: Claimed, outcome: Outcome | None = None) -> Sent:
    out = Accepted(external_id=f"out-{claimed.job.draft_id}", external_url="")
    return Sent(claimed=claimed, outcome=outcome or out, time=claimed.job.update_time)
