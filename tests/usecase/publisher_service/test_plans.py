"""No statement costs more because of other rows: 20,000 jobs of one organization and one account.

Each is explained as the service runs it: its own text, prepared, with the generic plan that the session asks for.
"""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from publisher_service.adapters.postgres import counts
from publisher_service.adapters.postgres.accounts import (
    credentials_of,
    get_account,
    insert_account,
    list_accounts,
    lock_account,
    save_account,
)
from publisher_service.adapters.postgres.attempts import (
    abandon_attempts,
    close_attempts,
    doubtful_attempt,
    list_attempts,
)
from publisher_service.adapters.postgres.claim import claim
from publisher_service.adapters.postgres.contents import lock_contents, save_contents, withdraw_below
from publisher_service.adapters.postgres.gates import set_connection
from publisher_service.adapters.postgres.jobs import (
    get_job,
    insert_jobs,
    list_jobs,
    lock_due_jobs,
    lock_jobs,
    lock_jobs_of_drafts,
    save_jobs,
)
from publisher_service.adapters.postgres.kept_contents import keep_current_contents, sent_content
from publisher_service.adapters.postgres.lines import first_in_lines, lock_due_lines, mark_lines_empty, next_wake_time
from publisher_service.adapters.postgres.open_claims import drop_ended_claims, lock_expired_jobs
from publisher_service.adapters.postgres.relabeling import (
    Relabeled,
    end_relabeling,
    find_relabeled,
    is_one_relabeled,
    lock_mislabeled_jobs,
)
from publisher_service.adapters.postgres.rivals import rivals_of
from publisher_service.adapters.postgres.settle import SettleRow, record_settlements
from publisher_service.adapters.postgres.stranded_lines import list_lines, wake_stranded_lines
from publisher_service.domain.account import AccountFilter, AccountState, SocialAccount
from publisher_service.domain.claim import Command, Lane, Verdict
from publisher_service.domain.outcome import Accepted, Ambiguous, Found
from publisher_service.domain.plan import SavedDraft
from publisher_service.domain.policy import Policy
from publisher_service.domain.post_job import JobFilter, JobState, PostJob, Target, job_id
from publisher_service.domain.settlement import evidence, settle
from servicekit.pg.database import Database
from testkit.databases import Databases
from testkit.plans import READ_PER_ROW, Explaining, nodes_of

ROWS = 20_000
BATCH = 50
NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
LANES = [Lane(provider="sandbox", room=BATCH, lease=timedelta(seconds=15))]
GROWING = {"post_job", "attempt", "content", "kept_content", "account_gate", "social_account", "activity"}

FILL = (
    "insert into content select 'acme', 'b' || n, 1, 1, '', '', true, 0, '{}' from generate_series(1, :rows) n",
    "insert into account_gate select 'acme', 'b' || n, true from generate_series(1, :rows) n",
    """
    insert into social_account select 'acme', 'b' || n, 'sandbox', 'e', '', '{facebook}', 'CONNECTED', '', 1,
        cast(:now as timestamptz), :now
    from generate_series(1, :rows) n
    """,
    """
    insert into post_job
    select 'acme', 'b' || n, 'b' || n, 'page', 'facebook', '', state, '', 1, 1, 's', 1, cast(:later as timestamptz),
        :later, case when state = 'BLOCKED' then cast(:later as timestamptz) end, 5, 0, 1, 1, 0,
        case when state = 'PUBLISHED' then cast(:now as timestamptz) end, '', '',
        case when state = 'PUBLISHED' then 'PROVIDER_ID' else '' end, 'E', '', null, '', '',
        cast(:now as timestamptz) + n * interval '1 second', :now
    from generate_series(1, :rows) n,
        lateral (select (array['SCHEDULED', 'PUBLISHED', 'BLOCKED', 'FAILED', 'PUBLISHED'])[1 + n % 5] as state) s
    """,
    "update post_job set state_reason = 'ACCOUNT_NOT_CONNECTED' where state = 'BLOCKED'",
    "update account_gate set lined = true, provider = 'sandbox', wake_time = cast(:later as timestamptz)",
    """
    insert into open_claim select 'claim-' || n, cast(:later as timestamptz), 1, '{acme}', array['b' || n]
    from generate_series(1, :rows / 10) n
    """,
    """
    insert into attempt
    select 'acme', 'b' || n, 1, 1, 1, case when n % 5 in (1, 4) then 'ACCEPTED' else 'REJECTED' end, '', 1, '',
        cast(:now as timestamptz), :now, '', '', '' from generate_series(1, :rows) n
    """,
)


@pytest.fixture(scope="module", params=["never analyzed", "analyzed"])
async def full(databases: Databases, request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    url = await databases.migrated("publisher")
    database = Database(url, application="test", pool_size=1)
    async with database.transaction() as tx:
        for statement in FILL:
            names = {"rows": ROWS, "now": NOW, "later": NOW + timedelta(days=1)}
            used = {name: value for name, value in names.items() if f":{name}" in statement}
            await tx.connection.execute(text(statement), used)
        await insert_jobs(tx.connection, [_job(number) for number in range(BATCH)])
        await tx.connection.execute(text("update account_gate set connected = true, provider = 'sandbox'"))
        drafts = [_draft(number) for number in range(BATCH)]
        await lock_contents(tx.connection, [(draft.organization_id, draft.draft_id) for draft in drafts])
        await save_contents(tx.connection, drafts)
        for number in range(BATCH):
            await insert_account(tx.connection, _account(number), b"sealed")
    if request.param == "analyzed":
        async with database.statement() as connection:
            await connection.execute(text("vacuum analyze"))
    yield database
    await database.dispose()
    await databases.drop(url)


@pytest.fixture
async def explaining(full: Database) -> AsyncIterator[Explaining]:
    """A connection that explains statements and rolls back what a test writes."""
    async with full.engine.connect() as connection:
        yield Explaining(connection, growing=GROWING)


async def test_a_claim_and_its_settlement_read_only_their_batch(explaining: Explaining) -> None:
    connection: Any = explaining
    judged = await claim(connection, [_command(number) for number in range(BATCH)], LANES, now=NOW, sender="test/1")
    assert [each.verdict for each in judged.values()] == [Verdict.CLAIMED] * BATCH
    rows = [
        SettleRow(
            settlement=settle(
                each.claimed.job, Accepted(external_id="x", external_url=""), policy=Policy(), now=NOW, draw=0.5
            ),
            activity_id=f"activity-{number}",
            outcome="SUCCESS",
        )
        for number, each in judged.items()
        if each.claimed
    ]
    assert len((await record_settlements(connection, rows, now=NOW)).activity_ids) == BATCH
    explaining.check(BATCH)


async def test_a_sweep_reads_only_jobs_that_are_due(explaining: Explaining) -> None:
    connection: Any = explaining
    assert await lock_due_jobs(connection, before=NOW, patience=NOW, limit=BATCH) == []
    assert await lock_expired_jobs(connection, before=NOW, limit=BATCH) == []
    await drop_ended_claims(connection, before=NOW)
    explaining.check(1)


async def test_the_ends_of_leases_are_found_by_their_claim(explaining: Explaining) -> None:
    connection: Any = explaining
    await claim(connection, [_command(number) for number in range(BATCH)], LANES, now=NOW, sender="test/1")
    assert len(await lock_expired_jobs(connection, before=NOW + LANES[0].lease, limit=ROWS)) == BATCH
    await drop_ended_claims(connection, before=NOW + LANES[0].lease)
    explaining.check(BATCH)


async def test_a_sweep_reads_no_more_than_its_limit(explaining: Explaining) -> None:
    connection: Any = explaining
    late = NOW + timedelta(days=2)
    assert len(await lock_due_jobs(connection, before=late, patience=late, limit=BATCH)) == BATCH
    explaining.check(BATCH)


async def test_events_and_answers_read_only_their_batch(explaining: Explaining) -> None:
    connection: Any = explaining
    jobs = [_job(number) for number in range(BATCH)]
    keys = [(job.organization_id, job.id) for job in jobs]
    drafts = [(job.organization_id, job.draft_id) for job in jobs]
    await claim(connection, [_command(number) for number in range(BATCH)], LANES, now=NOW, sender="test/1")
    assert len(await lock_contents(connection, drafts)) == BATCH
    await save_contents(connection, [_draft(number, version=2) for number in range(BATCH)])
    assert len(await lock_jobs_of_drafts(connection, drafts)) == BATCH
    sending = await lock_jobs(connection, keys)
    lost = [settle(job, Ambiguous(reason="LOST", message=""), policy=Policy(), now=NOW, draw=0.5) for job in sending]
    await close_attempts(connection, lost, now=NOW)
    await save_jobs(connection, [each.job for each in lost])
    assert await doubtful_attempt(connection, jobs[0])
    await keep_current_contents(connection, keys)
    await rivals_of(connection, lost[0].job, limit=BATCH)
    assert await sent_content(connection, "acme", jobs[0].id) is not None
    proven = [evidence(each.job, Found(external_id="x", external_url=""), now=NOW) for each in lost]
    await abandon_attempts(connection, proven, now=NOW)
    more = [_job(number, draft=f"more-{number}") for number in range(BATCH)]
    await insert_jobs(connection, more)
    explaining.check(BATCH)


async def test_reading_one_row_reads_one_row(explaining: Explaining) -> None:
    connection: Any = explaining
    job = _job(1)
    assert await get_job(connection, "acme", job.id)
    assert len(await list_attempts(connection, "acme", "b7")) == 1
    assert await lock_account(connection, "acme", "b7")
    await credentials_of(connection, "acme", "b7")
    await set_connection(connection, "acme", "b7", provider="sandbox", connected=False, now=NOW)
    await save_account(connection, _account(1), b"sealed")
    await insert_account(connection, _account(1), b"sealed")
    await get_account(connection, "acme", "b7")
    await withdraw_below(connection, "acme", job.draft_id, 2)
    explaining.check(1)


async def test_a_page_of_accounts_reads_only_that_page(explaining: Explaining) -> None:
    connection: Any = explaining
    wanted = AccountFilter(organization_id="acme")
    assert len(await list_accounts(connection, wanted, after="b7", limit=BATCH)) == BATCH
    explaining.check(BATCH)


async def test_the_first_post_of_a_long_line_costs_one_row(explaining: Explaining) -> None:
    connection: Any = explaining
    keys = [("acme", "page"), *(("acme", f"b{number}") for number in range(1, BATCH))]
    (head,) = await first_in_lines(connection, keys)
    assert head.state_reason == "ACCOUNT_NOT_CONNECTED"
    await mark_lines_empty(connection, keys)
    explaining.check(BATCH)


async def test_lines_without_a_turn_are_not_read(explaining: Explaining) -> None:
    connection: Any = explaining
    assert (await next_wake_time(connection, ["sandbox"]))[1] == NOW + timedelta(days=1)
    assert await lock_due_lines(connection, LANES, now=NOW, most=BATCH) == []
    assert not await is_one_relabeled(connection)
    assert await find_relabeled(connection) is None
    explaining.check(1)


async def test_turns_read_no_more_lines_than_there_is_room(explaining: Explaining) -> None:
    connection: Any = explaining
    due = await lock_due_lines(connection, LANES, now=NOW + timedelta(days=2), most=BATCH)
    assert len(due) == BATCH
    explaining.check(BATCH)


async def test_a_page_of_a_long_line_reads_only_that_page(explaining: Explaining) -> None:
    connection: Any = explaining
    page = Relabeled(organization_id="acme", account_id="page", connected=True)
    jobs = await lock_mislabeled_jobs(connection, page, limit=BATCH)
    assert len(jobs) == BATCH
    explaining.check(BATCH)


async def test_the_search_for_stranded_lines_reads_the_first_post_of_each(explaining: Explaining) -> None:
    connection: Any = explaining
    assert await list_lines(connection, ("", ""), limit=BATCH) == ([("acme", "page")], [])
    keys = [("acme", f"b{number}") for number in range(1, BATCH + 1)]
    await wake_stranded_lines(connection, keys, now=NOW)
    explaining.check(BATCH)


async def test_posts_with_the_right_label_are_not_read(explaining: Explaining) -> None:
    connection: Any = explaining
    page = Relabeled(organization_id="acme", account_id="page", connected=False)
    assert await lock_mislabeled_jobs(connection, page, limit=BATCH) == []
    await end_relabeling(connection, page)
    explaining.check(1)


@pytest.mark.parametrize(
    "wanted",
    [
        JobFilter(organization_id="acme"),
        JobFilter(organization_id="acme", social_account_id="page"),
        JobFilter(organization_id="acme", states=(JobState.SCHEDULED,)),
        JobFilter(organization_id="acme", states=(JobState.PENDING, JobState.NEEDS_ATTENTION)),
        JobFilter(organization_id="acme", social_account_id="page", states=(JobState.UNKNOWN,)),
        JobFilter(organization_id="acme", draft_id="b7"),
        JobFilter(organization_id="acme", draft_id="b7", social_account_id="page", states=(JobState.FAILED,)),
        JobFilter(organization_id="another"),
    ],
    ids=["all", "account", "state", "rare states", "account and state", "draft", "draft and more", "empty"],
)
@pytest.mark.parametrize("before", [None, (NOW + timedelta(seconds=ROWS // 2), "b")], ids=["first page", "next page"])
async def test_a_page_of_jobs_reads_at_most_a_page_of_each_state(
    explaining: Explaining, wanted: JobFilter, before: tuple[datetime, str] | None
) -> None:
    connection: Any = explaining
    page = await list_jobs(connection, wanted, before=before, limit=51)
    assert page == sorted(page, key=lambda job: (job.create_time, job.id), reverse=True)
    explaining.check(51 * (len(wanted.states) or len(JobState)) // READ_PER_ROW + 51)


async def test_a_page_of_what_is_being_sent_reads_no_other_jobs(explaining: Explaining) -> None:
    connection: Any = explaining
    await claim(connection, [_command(number) for number in range(BATCH)], LANES, now=NOW, sender="test/1")
    wanted = JobFilter(organization_id="acme", states=(JobState.SENDING,))
    assert len(await list_jobs(connection, wanted, before=None, limit=ROWS)) == BATCH
    # It reads the gates of the organization, too: a narrow row for each account, found by key.
    nodes = list(nodes_of(explaining.read[-1][1]))
    of_jobs = [node for node in nodes if node.get("Relation Name") == "post_job"]
    assert sum(node["Actual Loops"] * node["Actual Rows"] for node in of_jobs) == BATCH
    assert "Seq Scan" not in {node["Node Type"] for node in nodes}


async def test_counting_moving_jobs_does_not_read_ended_ones(explaining: Explaining) -> None:
    connection: Any = explaining
    assert (await counts.moving(connection)).by_state == {"BLOCKED": ROWS // 5}
    explaining.check(ROWS // 5)


async def test_counting_overdue_jobs_reads_neither_future_nor_ended_ones(explaining: Explaining) -> None:
    connection: Any = explaining
    overdue = await counts.overdue_by_state(connection, before=NOW)
    assert [each.jobs for each in overdue.values()] == [0, 0]
    assert await counts.needing_attention(connection) == 0
    explaining.check(1)


async def test_counts_of_overdue_jobs_are_bounded(explaining: Explaining) -> None:
    connection: Any = explaining
    overdue = await counts.overdue_by_state(connection, before=NOW + timedelta(days=2), most=BATCH)
    assert overdue["SCHEDULED"] == counts.Overdue(jobs=BATCH, oldest=NOW + timedelta(days=1))
    explaining.check(BATCH)


async def test_counting_lines_reads_the_first_post_of_each(explaining: Explaining) -> None:
    """One account has all waiting posts."""
    connection: Any = explaining
    assert await counts.lines_by_reason(connection) == {"ACCOUNT_NOT_CONNECTED": 1}
    explaining.check(1)


def _job(number: int, *, draft: str = "") -> PostJob:
    target = Target(social_account_id=f"account-{number}", channel="facebook")
    draft = draft or f"draft-{number}"
    return PostJob(
        organization_id="acme",
        id=job_id("acme", draft, target),
        draft_id=draft,
        target=target,
        state=JobState.PENDING,
        create_time=NOW,
        update_time=NOW,
    )


def _command(number: int) -> Command:
    job = _job(number)
    return Command(
        organization_id="acme",
        draft_id=job.draft_id,
        target=job.target,
        slot_id="slot",
        slot_revision=1,
        emission=1,
        schedule_time=NOW,
        not_after=NOW + timedelta(hours=1),
        content_revision=1,
        max_attempts=5,
        traceparent="",
    )


def _draft(number: int, *, version: int = 1) -> SavedDraft:
    return SavedDraft(
        organization_id="acme",
        draft_id=f"draft-{number}",
        version=version,
        revision=1,
        content=b"",
        content_digest="",
        approved=True,
        targets=(_job(number).target,),
    )


def _account(number: int) -> SocialAccount:
    return SocialAccount(
        organization_id="acme",
        id=f"account-{number}",
        provider="sandbox",
        external_account_id="e",
        display_name="",
        channels=("facebook",),
        state=AccountState.CONNECTED,
        version=1,
        create_time=NOW,
        update_time=NOW,
    )
