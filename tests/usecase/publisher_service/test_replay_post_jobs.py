"""Replays of post jobs: bounded transactions, a bounded look, and no change."""

import asyncio
from typing import Any

import pytest

from publisher_service.adapters.postgres.replays import next_jobs
from publisher_service.application.replay_post_jobs import Replayed, ReplayPostJobs
from publisher_service.domain.post_job import JobState
from publisher_service.domain.replay import Replay
from servicekit.ids import Uuid7Source
from servicekit.pg.outbox import Outbox
from testkit.plans import Explaining
from tests.usecase.publisher_service.replica import Replica, a_command, claims_in

MANY = """
    insert into post_job (organization_id, id, draft_id, social_account_id, channel, destination, state, state_reason,
        version, run, slot_id, slot_revision, max_attempts, attempts, fence, content_revision, withdrawn_below,
        external_id, external_url, evidence_kind, error_reason, error_message, target_month, traceparent, create_time,
        update_time)
    select 'acme', 'j' || n, 'd' || n, 'page', 'facebook', '', 'PENDING', '', 1, 1, '', 0, 5, 0, 0, 0, 0, '', '', '',
        '', '', '', '', clock_timestamp(), clock_timestamp()
    from generate_series(1, 25000) as n
"""


@pytest.fixture
def replay(replica: Replica) -> ReplayPostJobs:
    outbox = Outbox(Uuid7Source(), lambda rows: None)
    return ReplayPostJobs(database=replica.database, clock=replica.clock, outbox=outbox)


async def test_a_replay_changes_no_job_and_waits_for_none(replica: Replica, replay: ReplayPostJobs) -> None:
    names = await replica.posts(700)
    claims_in(await replica.claim([a_command(name) for name in names[:50]]))
    before = await replica.rows("select * from post_job order by id")
    async with replica.database.transaction() as tx:
        await tx.connection.exec_driver_sql("select 1 from post_job for update")
        async with asyncio.timeout(5):
            assert await replay(Replay(), after=None, most=1000) == Replayed(announced=700, after=None)
    assert await replica.rows("select * from post_job order by id") == before


async def test_a_call_looks_at_a_bounded_number_of_jobs(replica: Replica, replay: ReplayPostJobs) -> None:
    await replica.write(MANY)
    wanted = Replay(organization_id="acme", states=(JobState.FAILED,))
    first = await replay(wanted, after=None, most=1000)
    assert first.announced == 0
    assert first.after is not None
    assert await replay(wanted, after=first.after, most=1000) == Replayed(announced=0, after=None)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (Replay(), 50),
        (Replay(organization_id="acme"), 50),
        (Replay(organization_id="acme", draft_id="d7"), 1),
    ],
)
async def test_a_page_reads_no_other_jobs(replica: Replica, wanted: Replay, found: int) -> None:
    await replica.write(MANY)
    await replica.write("analyze post_job")
    async with replica.database.engine.connect() as connection:
        explaining = Explaining(connection, growing={"post_job"})
        mine: Any = explaining
        assert len(await next_jobs(mine, wanted, after=("acme", "j1"), limit=50)) == found
        explaining.check(found)
