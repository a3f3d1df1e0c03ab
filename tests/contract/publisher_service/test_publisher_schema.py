"""Publisher's tables: the migrations make what the code declares, and constraints refuse impossible rows."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

import channels
from publisher_service.adapters.postgres.accounts import insert_account
from publisher_service.adapters.postgres.claim import claim
from publisher_service.adapters.postgres.contents import lock_contents, save_contents
from publisher_service.adapters.postgres.jobs import lock_jobs
from publisher_service.adapters.postgres.tables import metadata
from publisher_service.adapters.providers.adapter import Adapter, Limits
from publisher_service.adapters.providers.http_origin import HttpOrigin
from publisher_service.adapters.providers.sandbox import SandboxAdapter
from publisher_service.domain.account import AccountState, SocialAccount
from publisher_service.domain.claim import Command, Lane, Verdict
from publisher_service.domain.plan import SavedDraft
from publisher_service.domain.post_job import TRANSITIONS, WITH_NEXT_ACTION, JobState, Target, job_id
from publisher_service.domain.settlement import AttemptState
from publisher_service.main import MIGRATIONS
from servicekit.pg import migrations
from servicekit.pg.database import Database
from servicekit.pg.migrations.alembic_run import drift

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
LANE = Lane(provider="sandbox", room=10, lease=timedelta(seconds=15))
PAGE = Target(social_account_id="page", channel="facebook")

ATTEMPT = {
    "organization_id": "'acme'",
    "post_job_id": "'job'",
    "run": "1",
    "number": "1",
    "fence": "1",
    "state": "'SENDING'",
    "idempotency_key": "'job-1'",
    "content_revision": "1",
    "content_digest": "''",
    "start_time": "now()",
    "end_time": "null",
    "external_id": "''",
    "error_reason": "''",
    "error_message": "''",
}
ACCOUNT = {
    "organization_id": "'acme'",
    "id": "'page'",
    "provider": "'sandbox'",
    "external_account_id": "''",
    "display_name": "''",
    "channels": "'{facebook}'",
    "state": "'CONNECTED'",
    "credentials": "''",
    "version": "1",
    "create_time": "now()",
    "update_time": "now()",
}
ACTIVITY = {
    "organization_id": "'acme'",
    "social_account_id": "'page'",
    "id": "'activity'",
    "post_job_id": "'job'",
    "action": "'POST'",
    "outcome": "'SUCCESS'",
    "create_time": "now()",
}


async def insert(database: Database, table: str, row: Mapping[str, str]) -> None:
    async with database.statement() as connection:
        await connection.execute(
            text(f"insert into {table} ({', '.join(row)}) values ({', '.join(row.values())})")  # noqa: S608
        )


async def test_the_migrations_make_what_the_code_declares(empty_database: str) -> None:
    await migrations.upgrade(empty_database, MIGRATIONS)
    assert not await migrations.pending(empty_database, MIGRATIONS)
    assert await drift(empty_database, metadata) == []


def a_job(state: JobState, /, **changes: object) -> dict[str, str]:
    """Returns a valid row in that state."""
    row: dict[str, str] = {
        "organization_id": "'acme'",
        "id": f"'{job_id('acme', 'draft', PAGE)}'",
        "draft_id": "'draft'",
        "social_account_id": "'page'",
        "channel": "'facebook'",
        "destination": "''",
        "state": f"'{state}'",
        "state_reason": "''",
        "version": "1",
        "run": "1",
        "slot_id": "'slot-1'",
        "slot_revision": "1",
        "schedule_time": "now()",
        "not_after": "now()",
        "next_action_time": "'2026-03-01'" if state in WITH_NEXT_ACTION else "null",
        "max_attempts": "5",
        "attempts": "1",
        "fence": "1",
        "content_revision": "1",
        "withdrawn_below": "0",
        "publish_time": "now()" if state is JobState.PUBLISHED else "null",
        "external_id": "''",
        "external_url": "''",
        "evidence_kind": "'PROVIDER_ID'" if state is JobState.PUBLISHED else "''",
        "error_reason": "'ERROR'" if state is JobState.FAILED else "''",
        "error_message": "''",
        "last_attempt_time": "null",
        "target_month": "''",
        "traceparent": "''",
        "create_time": "now()",
        "update_time": "now()",
    }
    return row | {name: str(value) for name, value in changes.items()}


@pytest.mark.parametrize("state", JobState)
async def test_each_state_is_stored_only_with_its_next_action(database: Database, state: JobState) -> None:
    wrong = "null" if state in WITH_NEXT_ACTION else "now()"
    with pytest.raises(IntegrityError, match="post_job_moves"):
        await insert(database, "post_job", a_job(state, next_action_time=wrong))
    await insert(database, "post_job", a_job(state))
    with pytest.raises(IntegrityError, match="post_job_target"):
        await insert(database, "post_job", a_job(state, id="'another'"))


@pytest.mark.parametrize(
    ("state", "changes", "constraint"),
    [
        (JobState.PUBLISHED, {"evidence_kind": "''"}, "post_job_evidence"),
        (JobState.PUBLISHED, {"publish_time": "null"}, "post_job_evidence"),
        (JobState.FAILED, {"evidence_kind": "'PROVIDER_ID'", "publish_time": "now()"}, "post_job_evidence"),
        (JobState.FAILED, {"error_reason": "''"}, "post_job_error"),
        (JobState.PENDING, {"state": "'LOST'"}, "check"),
    ],
)
async def test_the_database_refuses_an_impossible_job(
    database: Database, state: JobState, changes: dict[str, str], constraint: str
) -> None:
    with pytest.raises(IntegrityError, match=constraint):
        await insert(database, "post_job", a_job(state, **changes))


@pytest.mark.parametrize("state", AttemptState)
async def test_each_state_of_an_attempt_can_be_stored(database: Database, state: AttemptState) -> None:
    await insert(database, "attempt", ATTEMPT | {"state": f"'{state}'"})


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("SENDING", "SENDING"),
        ("SENDING", "UNKNOWN"),
        ("UNKNOWN", "SENDING"),
        ("SENDING", "ACCEPTED"),
        ("ACCEPTED", "UNKNOWN"),
        ("ACCEPTED", "ACCEPTED"),
    ],
)
async def test_two_attempts_that_are_open_or_accepted_cannot_be_stored(
    database: Database, first: str, second: str
) -> None:
    await insert(database, "attempt", ATTEMPT | {"state": f"'{first}'"})
    again = ATTEMPT | {"fence": "2", "state": f"'{second}'"}
    with pytest.raises(IntegrityError, match="attempt_out"):
        await insert(database, "attempt", again)
    await insert(database, "attempt", again | {"post_job_id": "'other'"})
    await insert(database, "attempt", again | {"organization_id": "'other'"})
    await insert(database, "attempt", again | {"state": "'ABSENT'"})


async def test_an_attempt_may_be_accepted_before_the_later_one_is_abandoned(database: Database) -> None:
    """The previous release records a late proof in this order."""
    await insert(database, "attempt", ATTEMPT | {"state": "'ABSENT'"})
    await insert(database, "attempt", ATTEMPT | {"fence": "2"})
    async with database.transaction() as tx:
        for state, fence in (("ACCEPTED", 1), ("ABANDONED", 2)):
            ended = {"state": state, "fence": fence}
            await tx.connection.execute(text("update attempt set state = :state where fence = :fence"), ended)


async def test_a_fence_is_used_once(database: Database) -> None:
    await insert(database, "attempt", ATTEMPT | {"state": "'ABSENT'"})
    with pytest.raises(IntegrityError, match="attempt_pkey"):
        await insert(database, "attempt", ATTEMPT)


@pytest.mark.parametrize(
    ("table", "row"),
    [
        ("attempt", ATTEMPT | {"state": "'PENDING'"}),
        ("social_account", ACCOUNT | {"state": "'LOST'"}),
        ("activity", ACTIVITY | {"outcome": "'ODD'"}),
    ],
)
async def test_the_database_refuses_unknown_states(database: Database, table: str, row: dict[str, str]) -> None:
    with pytest.raises(IntegrityError):
        await insert(database, table, row)


@pytest.mark.parametrize("state", JobState)
async def test_the_claim_takes_exactly_what_may_be_sent(database: Database, state: JobState) -> None:
    """The claim is the one change of state made in SQL: it must follow the same table of transitions."""
    await insert(database, "post_job", a_job(state))
    draft = SavedDraft(
        organization_id="acme",
        draft_id="draft",
        version=1,
        revision=1,
        content=b"",
        content_digest="digest",
        approved=True,
        targets=(PAGE,),
    )
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
    command = Command(
        organization_id="acme",
        draft_id="draft",
        target=PAGE,
        slot_id="slot-2",
        slot_revision=1,
        emission=1,
        schedule_time=NOW,
        not_after=NOW + timedelta(hours=1),
        content_revision=1,
        max_attempts=5,
        traceparent="",
    )
    async with database.transaction() as tx:
        await lock_contents(tx.connection, [("acme", "draft")])
        await save_contents(tx.connection, [draft])
        await insert_account(tx.connection, account, b"sealed")
        await tx.connection.execute(text("insert into account_gate values ('acme', 'page', true, null, 'sandbox')"))
        judged = await claim(tx, [command], [LANE], now=NOW, sender="test/1")
        (after,) = await lock_jobs(tx.connection, [("acme", command.post_job_id)])
    may = JobState.SENDING in TRANSITIONS[state]
    assert (judged[0].verdict is Verdict.CLAIMED) == may
    assert after.state is (JobState.SENDING if may else state)
    if may:
        claimed = judged[0].claimed
        assert claimed is not None
        # The process goes on with what is stored.
        assert claimed.job == after


async def test_every_provider_offers_only_known_channels() -> None:
    limits = Limits(request_timeout=timedelta(seconds=1))
    providers: list[Adapter] = [SandboxAdapter(HttpOrigin("http://127.0.0.1:1", connections=1), limits)]
    for provider in providers:
        assert provider.rules
        assert set(provider.rules) <= set(channels.KNOWN), provider.name
        assert [channels.normalise(name) for name in provider.rules] == list(provider.rules)
