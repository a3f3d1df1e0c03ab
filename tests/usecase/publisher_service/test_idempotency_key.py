"""The idempotency key has one formula: what is sent is what was stored, and what is looked up is that too."""

import base64
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from publisher_service.adapters.postgres.accounts import insert_account
from publisher_service.adapters.postgres.contents import lock_contents, save_contents
from publisher_service.adapters.postgres.gates import set_connection
from publisher_service.adapters.postgres.jobs import insert_jobs, lock_jobs
from publisher_service.adapters.providers.adapter import Limits, Post
from publisher_service.adapters.providers.provider import Providers
from publisher_service.adapters.vault import Vault
from publisher_service.application.claim_jobs import ClaimJobs
from publisher_service.application.late_evidence import LateEvidence
from publisher_service.application.resolve_unknown import ResolveUnknown
from publisher_service.application.send_post import SendPost
from publisher_service.application.settle_posts import SettlePosts
from publisher_service.domain.account import AccountState, SocialAccount
from publisher_service.domain.claim import Claimed, Command, Lane
from publisher_service.domain.outcome import Ambiguous, Finding, Found, Outcome
from publisher_service.domain.plan import SavedDraft
from publisher_service.domain.policy import Policy
from publisher_service.domain.post_job import JobState, PostJob, Target, job_id
from servicekit.clock import SystemClock
from servicekit.ids import Uuid7Source
from servicekit.pg.clock import DatabaseClock, SteadyClock
from servicekit.pg.database import Database
from servicekit.pg.outbox import Outbox
from servicekit.run.settings import Secret

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
FAR = datetime(2126, 3, 2, 9, 0, tzinfo=UTC)
PAGE = Target(social_account_id="page", channel="facebook")
TIMEOUT = timedelta(seconds=5)
MARGIN = timedelta(seconds=10)
JOB = PostJob(
    organization_id="acme",
    id=job_id("acme", "draft", PAGE),
    draft_id="draft",
    target=PAGE,
    state=JobState.PENDING,
    create_time=NOW,
    update_time=NOW,
)
COMMAND = Command(
    organization_id="acme",
    draft_id="draft",
    target=PAGE,
    slot_id="slot",
    slot_revision=1,
    emission=1,
    schedule_time=NOW,
    not_after=FAR,
    content_revision=1,
    max_attempts=5,
    traceparent="",
)


class RecordingAdapter:
    """Loses each answer, and finds each post."""

    name = "sandbox"
    channels = ("facebook",)
    limits = Limits(request_timeout=TIMEOUT)

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.looked_up: list[str] = []

    async def verify(self, external_account_id: str, access_token: str) -> None:
        raise AssertionError("nothing is connected here")

    async def send(self, post: Post) -> Outcome:
        self.sent.append(post.idempotency_key)
        return Ambiguous(reason="LOST", message="the answer was lost")

    async def look(self, post: Post) -> Finding:
        self.looked_up.append(post.idempotency_key)
        return Found(external_id="x", external_url="")


@pytest.mark.parametrize(
    ("job", "key"),
    [
        (JOB, f"{JOB.id}-1"),
        (replace(JOB, state=JobState.FAILED, run=3, attempts=5, fence=9, error_reason="E"), f"{JOB.id}-4"),
    ],
    ids=["first run", "next run"],
)
async def test_the_key_that_is_sent_is_stored_and_looked_up(database: Database, job: PostJob, key: str) -> None:
    adapter, vault = RecordingAdapter(), Vault([("test", Secret(base64.b64encode(bytes(32)).decode()))])
    await _prepare(database, job, vault)
    clock, ids, system = DatabaseClock(), Uuid7Source(), SystemClock()
    steady, outbox = SteadyClock(system), Outbox(ids, lambda rows: None)
    providers, late = Providers([adapter], system), LateEvidence(outbox)
    claim = ClaimJobs(database=database, clock=clock, steady=steady, outbox=outbox, instance="test")
    send = SendPost(providers=providers, vault=vault, clock=system, steady=steady, lease_margin=MARGIN)
    settle = SettlePosts(
        database=database,
        clock=clock,
        ids=ids,
        outbox=outbox,
        policies=lambda name: Policy(),
        late=late,
        wake_lines=lambda: None,
    )
    look = ResolveUnknown(
        database=database,
        clock=clock,
        outbox=outbox,
        providers=providers,
        vault=vault,
        policies=lambda name: Policy(),
        late=late,
    )

    (claimed,) = await claim([COMMAND], [Lane(provider="sandbox", room=1, lease=TIMEOUT + MARGIN)])
    assert isinstance(claimed, Claimed)
    await settle([await send(claimed, claim_started=system.monotonic())])
    async with database.transaction() as tx:
        (unknown,) = await lock_jobs(tx.connection, [("acme", job.id)])
    assert unknown.state is JobState.UNKNOWN
    await look(unknown)

    async with database.read() as connection:
        stored = (await connection.execute(text("select idempotency_key from attempt"))).scalars().all()
    assert adapter.sent == adapter.looked_up == stored == [key]


async def _prepare(database: Database, job: PostJob, vault: Vault) -> None:
    account = SocialAccount(
        organization_id="acme",
        id="page",
        provider="sandbox",
        external_account_id="ext",
        display_name="",
        channels=("facebook",),
        state=AccountState.CONNECTED,
        version=1,
        create_time=NOW,
        update_time=NOW,
    )
    draft = SavedDraft(
        organization_id="acme",
        draft_id="draft",
        version=1,
        revision=1,
        content=b"",
        content_digest="",
        approved=True,
        targets=(PAGE,),
    )
    async with database.transaction() as tx:
        await insert_jobs(tx.connection, [job])
        await lock_contents(tx.connection, [("acme", "draft")])
        await save_contents(tx.connection, [draft])
        sealed = vault.seal("token", organization_id="acme", account_id="page")
        await insert_account(tx.connection, account, sealed)
        await set_connection(tx.connection, "acme", "page", provider="sandbox", connected=True, now=NOW)
        await tx.connection.execute(text("update account_gate set lined = false"))
