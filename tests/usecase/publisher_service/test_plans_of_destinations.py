"""Destinations cost a post to the feed of its account nothing, and any other a few rows beside 20,000."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from publisher_service.adapters.postgres.claim import claim
from publisher_service.adapters.postgres.destinations import (
    end_releasing,
    find_releasing,
    is_one_releasing,
    list_destinations,
    lock_destination,
    lock_waiting_jobs,
    note_successes,
    save_destination,
    share_destinations,
)
from publisher_service.adapters.postgres.settle import SettleRow, record_settlements
from publisher_service.domain.claim import Command, Lane, Verdict
from publisher_service.domain.destination import DestinationFilter, DestinationState
from publisher_service.domain.outcome import Found, Outcome, Rejected
from publisher_service.domain.policy import Policy
from publisher_service.domain.post_job import JobState, Target, job_id
from publisher_service.domain.settlement import evidence, settle
from servicekit.pg.database import Database
from testkit.databases import Databases
from testkit.plans import Explaining, nodes_of
from tests.unit.publisher_service.post_jobs import sending

ROWS, BATCH = 20_000, 50
NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
LANE = Lane(provider="sandbox", room=BATCH, lease=timedelta(seconds=15))
CHAT, FEED = (Target(social_account_id="bot", channel="facebook", destination=name) for name in ("7", ""))
JOB, FEED_JOB = (job_id("acme", "d", target) for target in (CHAT, FEED))
FILL = (
    """
    insert into destination (organization_id, social_account_id, channel, destination, state, state_reason, failures,
        error_message, deactivate_time, version, releasing)
    select 'acme', 'bot', 'facebook', n, case when n % 100 = 7 then 'INACTIVE' else 'ACTIVE' end, '', 0, '',
        case when n % 100 = 7 then cast(:now as timestamptz) end, 1, n = 8
    from generate_series(1, :rows) n
    """,
    """
    insert into account_gate (organization_id, social_account_id, provider, connected)
    values ('acme', 'bot', 'sandbox', true)
    """,
    "insert into content select 'acme', 'd', 1, 1, '', '', true, 0, array[:job, :feed]",
    """
    insert into social_account select 'acme', 'bot', 'sandbox', 'e', '', '{facebook}', 'CONNECTED', '', 1,
        cast(:now as timestamptz), :now
    """,
    # Half of the posts wait for one destination.
    """
    insert into post_job (organization_id, id, draft_id, social_account_id, channel, destination, state, state_reason,
        version, run, slot_id, slot_revision, schedule_time, not_after, next_action_time, max_attempts, attempts, fence,
        content_revision, withdrawn_below, external_id, external_url, evidence_kind, error_reason, error_message,
        target_month, traceparent, create_time, update_time)
    select 'acme', case n when 0 then :job when 1 then :feed else 'b' || n end,
        case when n < 2 then 'd' else 'b' || n end,
        'bot', 'facebook', case n when 0 then '7' when 1 then '' else text '8' end, s.state,
        case s.state when 'BLOCKED' then 'DESTINATION_INACTIVE' else '' end, 1, 1, '', 0, cast(:now as timestamptz),
        :now, case s.state when 'BLOCKED' then cast(:now as timestamptz) end, 5, 0, 1, 1, 0, '', '', '', '', '', '', '',
        cast(:now as timestamptz) + n * interval '1 second', :now
    from generate_series(0, :rows) n,
        lateral (select case when n < 2 or n % 2 = 0 then 'PENDING' else 'BLOCKED' end as state) s
    """,
)


@pytest.fixture(scope="module", params=["never analyzed", "analyzed"])
async def full(databases: Databases, request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    url = await databases.migrated("publisher")
    database = Database(url, application="test", pool_size=1)
    async with database.transaction() as tx:
        for statement in FILL:
            names = {"rows": ROWS, "now": NOW, "job": JOB, "feed": FEED_JOB}
            used = {name: value for name, value in names.items() if f":{name}" in statement}
            await tx.connection.execute(text(statement), used)
    if request.param == "analyzed":
        async with database.statement() as connection:
            await connection.execute(text("vacuum analyze"))
    yield database
    await database.dispose()
    await databases.drop(url)


@pytest.fixture
async def explaining(full: Database) -> AsyncIterator[Explaining]:
    async with full.engine.connect() as connection:
        yield Explaining(connection, growing={"destination", "post_job"})


def looked_up(explaining: Explaining) -> int:
    """Returns how often the statements have looked at destinations."""
    nodes = [node for _, plan in explaining.read for node in nodes_of(plan)]
    return sum(node["Actual Loops"] for node in nodes if node.get("Relation Name") == "destination")


@pytest.mark.parametrize(
    ("target", "verdict", "looks"), [(CHAT, Verdict.DESTINATION_INACTIVE, 1), (FEED, Verdict.CLAIMED, 0)]
)
async def test_a_claim_looks_at_the_destination_of_a_post_that_has_one(
    explaining: Explaining, target: Target, verdict: Verdict, looks: int
) -> None:
    session: Any = explaining
    command = Command(
        organization_id="acme",
        draft_id="d",
        target=target,
        slot_id="slot",
        slot_revision=1,
        emission=1,
        schedule_time=NOW,
        not_after=NOW + timedelta(hours=1),
        content_revision=1,
        max_attempts=5,
        traceparent="",
    )
    judged = await claim(session, [command], [LANE], now=NOW, sender="s")
    assert judged[0].verdict is verdict
    assert looked_up(explaining) == looks
    explaining.check(1)


@pytest.mark.parametrize("destination", ["7", "new", ""])
async def test_a_settlement_writes_one_row_for_a_destination_and_none_for_a_feed(
    explaining: Explaining, destination: str
) -> None:
    session: Any = explaining
    outcome: Outcome = Rejected(reason="GONE", message="")
    job = replace(sending(JobState.SENDING), target=replace(CHAT, destination=destination))
    row = SettleRow(
        settlement=settle(job, outcome, policy=Policy(), now=NOW, draw=0.5), activity_id="a", outcome="FAILED"
    )
    await record_settlements(session, [row], now=NOW)
    explaining.check(1)


async def test_proof_of_a_look_writes_one_row(explaining: Explaining) -> None:
    connection: Any = explaining
    found = Found(external_id="x", external_url="")
    proven = evidence(replace(sending(JobState.UNKNOWN), organization_id="acme", target=CHAT), found, now=NOW)
    await note_successes(connection, [proven], now=NOW)
    explaining.check(1)


async def test_a_change_locks_and_writes_one_row(explaining: Explaining) -> None:
    connection: Any = explaining
    known = await lock_destination(connection, "acme", CHAT)
    assert known is not None
    await save_destination(connection, known, releasing=True)
    assert await share_destinations(connection, [("acme", CHAT), ("acme", FEED)]) == {("acme", CHAT)}
    explaining.check(1)


async def test_a_release_reads_a_page_of_the_waiting_posts(explaining: Explaining) -> None:
    connection: Any = explaining
    assert await is_one_releasing(connection)
    released = await find_releasing(connection)
    assert released is not None
    assert len(await lock_waiting_jobs(connection, released, limit=BATCH)) == BATCH
    assert not await end_releasing(connection, released)
    explaining.check(BATCH)


@pytest.mark.parametrize("states", [(), (DestinationState.INACTIVE,)], ids=["all", "inactive"])
@pytest.mark.parametrize("account", ["", "bot"])
@pytest.mark.parametrize("after", [None, ("bot", "facebook", "2")], ids=["first page", "next page"])
async def test_a_page_reads_only_that_page(
    explaining: Explaining, states: tuple[DestinationState, ...], account: str, after: tuple[str, ...] | None
) -> None:
    connection: Any = explaining
    wanted = DestinationFilter(organization_id="acme", social_account_id=account, states=states)
    assert len(await list_destinations(connection, wanted, after=after, limit=BATCH)) == BATCH
    explaining.check(BATCH)
