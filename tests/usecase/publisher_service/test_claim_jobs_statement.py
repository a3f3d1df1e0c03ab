"""The claim's statement returns what it has written."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from publisher_service.adapters.postgres.accounts import insert_account
from publisher_service.adapters.postgres.claim import _CLAIM, claim
from publisher_service.adapters.postgres.contents import lock_contents, save_contents
from publisher_service.adapters.postgres.gates import set_connection
from publisher_service.adapters.postgres.jobs import insert_jobs, lock_jobs
from publisher_service.domain.claim import Command, Judged, Lane, Verdict
from publisher_service.domain.post_job import JobState, PostJob, Target, job_id
from servicekit.pg.database import Database
from testkit.plans import planned
from tests.usecase.publisher_service.replica import a_command, a_draft, an_account

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
LATE = NOW + timedelta(hours=1)
PAGE = Target(social_account_id="page", channel="facebook")
COMMAND = replace(a_command("draft", "page"), schedule_time=NOW, not_after=LATE, target_month="2026-03-01")
JOB = PostJob(
    organization_id="acme",
    id=job_id("acme", "draft", PAGE),
    draft_id="draft",
    target=PAGE,
    state=JobState.PENDING,
    create_time=NOW,
    update_time=NOW,
)
FAILED = replace(
    JOB,
    state=JobState.FAILED,
    version=7,
    run=3,
    attempts=5,
    fence=9,
    slot_id="before",
    target_month="2026-02-01",
    error_reason="HTTP_400",
    error_message="too long",
)


@pytest.fixture
async def database(database: Database) -> Database:
    """Has an approved draft and its connected account."""
    async with database.transaction() as tx:
        await lock_contents(tx.connection, [("acme", "draft")])
        await save_contents(tx.connection, [a_draft("draft", "page")])
        await insert_account(tx.connection, an_account("page"), b"sealed")
        await set_connection(tx.connection, "acme", "page", provider="sandbox", connected=True, now=NOW)
        await tx.connection.execute(text("update account_gate set lined = false"))
    return database


async def claimed(database: Database, job: PostJob, command: Command, *, room: int = 1) -> tuple[Judged, PostJob]:
    """Returns the verdict on the stored job, and the job as it stands afterwards."""
    async with database.transaction() as tx:
        await tx.connection.execute(text("delete from post_job"))
        await insert_jobs(tx.connection, [job])
        return await judged(database, command, room=room, tx=tx)


async def judged(database: Database, command: Command, *, room: int, tx: Any) -> tuple[Judged, PostJob]:
    lane = Lane(provider="sandbox", room=room, lease=timedelta(seconds=15))
    verdicts = await claim(tx, [command], [lane], now=NOW, sender="test/1")
    (after,) = await lock_jobs(tx.connection, [("acme", command.post_job_id)])
    return verdicts[0], after


@pytest.mark.parametrize("job", [JOB, FAILED], ids=["first run", "next run"])
async def test_a_claimed_job_is_the_stored_job(database: Database, job: PostJob) -> None:
    verdict, after = await claimed(database, job, COMMAND)
    assert verdict.claimed is not None
    assert verdict.claimed.job == after
    assert verdict.version == after.version == job.version + 1


@pytest.mark.parametrize("room", [1, 0], ids=["claimed", "in line"])
async def test_a_run_that_a_command_begins_keeps_nothing_of_the_last_run(database: Database, room: int) -> None:
    verdict, after = await claimed(database, FAILED, COMMAND, room=room)
    assert verdict.version == after.version
    assert (after.run, after.attempts) == (4, room)
    assert (after.error_reason, after.error_message) == ("", "")
    assert after.target_month == "2026-03-01"


async def test_a_command_without_a_month_keeps_the_slots_month(database: Database) -> None:
    verdict, after = await claimed(database, replace(JOB, target_month="2026-02-01"), replace(COMMAND, target_month=""))
    assert verdict.claimed is not None
    assert verdict.claimed.job.target_month == after.target_month == "2026-02-01"


async def test_a_copy_for_a_job_in_line_answers_with_the_stored_version(database: Database) -> None:
    """The sweep may have postponed its next action; that does not put it in line again."""
    first, lined = await claimed(database, JOB, COMMAND, room=0)
    assert (first.verdict, first.is_lined, first.version) == (Verdict.PROVIDER_BUSY, True, lined.version)
    async with database.transaction() as tx:
        put_off = text("update post_job set next_action_time = next_action_time + interval '1 minute'")
        await tx.connection.execute(put_off)
        again, after = await judged(database, replace(COMMAND, emission=2), room=0, tx=tx)
    assert after.version == lined.version
    assert (again.is_lined, again.version) == (False, after.version)


async def test_of_a_crowded_organization_nothing_is_claimed(database: Database) -> None:
    """Its commands go into lines, and take no place from those behind them."""
    other = replace(COMMAND, organization_id="other")
    async with database.transaction() as tx:
        await lock_contents(tx.connection, [("other", "draft")])
        await save_contents(tx.connection, [replace(a_draft("draft", "page"), organization_id="other")])
        await insert_account(tx.connection, replace(an_account("page"), organization_id="other"), b"sealed")
        await set_connection(tx.connection, "other", "page", provider="sandbox", connected=True, now=NOW)
        await tx.connection.execute(text("update account_gate set lined = false"))
        await insert_jobs(tx.connection, [JOB, replace(JOB, organization_id="other", id=other.post_job_id)])
        lane = Lane(provider="sandbox", room=1, lease=timedelta(seconds=15), crowded=("acme",))
        verdicts = await claim(tx, [COMMAND, other], [lane], now=NOW, sender="test/1")
    assert [verdicts[index].verdict for index in (0, 1)] == [Verdict.PROVIDER_BUSY, Verdict.CLAIMED]
    assert verdicts[0].is_lined


async def test_a_claim_writes_no_index_entry_of_post_job(database: Database) -> None:
    scheduled = replace(JOB, state=JobState.SCHEDULED, schedule_time=NOW, not_after=LATE, slot_id="slot")
    hot = text("select pg_stat_get_xact_tuples_hot_updated(cast('post_job' as regclass))")
    async with database.transaction() as tx:
        await insert_jobs(tx.connection, [scheduled])
        verdict, after = await judged(database, COMMAND, room=1, tx=tx)
        assert (await tx.connection.execute(hot)).scalar_one() == 1
    assert verdict.verdict is Verdict.CLAIMED
    # Its lease is no less visible for that.
    assert after.next_action_time == NOW + timedelta(seconds=15)


async def test_two_looks_of_a_claim_share_a_row(database: Database) -> None:
    async with database.transaction() as tx:
        for draft, lease in (("draft", 15), ("other", 10)):
            job = replace(JOB, id=job_id("acme", draft, PAGE), draft_id=draft)
            await insert_jobs(tx.connection, [job])
            await lock_contents(tx.connection, [("acme", draft)])
            await save_contents(tx.connection, [a_draft(draft, "page")])
            await tx.connection.execute(text("update account_gate set open_job_id = null"))
            lane = Lane(provider="sandbox", room=1, lease=timedelta(seconds=lease))
            await claim(tx, [replace(COMMAND, draft_id=draft)], [lane], now=NOW, sender="test/1")
        (row,) = await tx.connection.execute(text("select * from open_claim"))
    assert (row.sender, row.unsettled, row.lease_end) == ("test/1", 2, NOW + timedelta(seconds=10))
    assert row.organization_ids == ["acme", "acme"]
    assert row.post_job_ids == [job_id("acme", draft, PAGE) for draft in ("draft", "other")]


async def test_kept_bytes_are_found_by_key_though_there_were_none_when_planned(database: Database) -> None:
    """A connection keeps its plan while the table grows: in an outage it gets a row per post."""
    async with database.statement() as connection:
        await connection.execute(text("vacuum analyze"))
    (node,) = [each for each in await planned(database, _CLAIM) if each.get("Relation Name") == "kept_content"]
    for column in ("organization_id", "post_job_id", "revision"):
        assert f"({column} = " in node.get("Index Cond", "")
