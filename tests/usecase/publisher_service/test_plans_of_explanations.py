"""An explanation costs no more because of 20,000 other posts, in the line of the account or elsewhere."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text

from publisher_service.adapters.postgres.explanations import MOST_COUNTED, check_job, count_posts_before
from publisher_service.adapters.postgres.jobs import get_job
from publisher_service.domain.claim import command_of
from publisher_service.domain.limits import DEFAULTS
from publisher_service.domain.post_job import PostJob
from testkit.database_clocks import FrozenDatabaseClock
from testkit.plans import Explaining
from tests.usecase.publisher_service.replica import FAR, Replica
from tests.usecase.publisher_service.situations import FACTS, NOW, Situation

ROWS = 20_000
GROWING = {"post_job", "account_gate", "content", "kept_content", "social_account", "hold"}
_FILL = (
    """
    insert into post_job (organization_id, id, draft_id, social_account_id, channel, destination, state, state_reason,
        version, run, slot_id, slot_revision, schedule_time, not_after, next_action_time, max_attempts, attempts, fence,
        content_revision, withdrawn_below, external_id, external_url, evidence_kind, error_reason, error_message,
        target_month, traceparent, create_time, update_time)
    select 'acme', 'b' || n, 'b' || n, 'page-d0', 'facebook', '', 'READY', 'IN_LINE', 1, 1, 's', 1,
        cast(:now as timestamptz) + n * interval '1 second', :now, :now, 5, 0, 1, 1, 0, '', '', '', '', '', '', '',
        :now, :now
    from generate_series(1, :rows) n
    """,
    """
    insert into content (organization_id, draft_id, version, revision, content, content_digest, approved,
        withdrawn_below, post_job_ids)
    select 'acme', 'b' || n, 1, 1, '', '', true, 0, '{}' from generate_series(1, :rows) n
    """,
    """
    insert into hold (organization_id, id, scope, scope_id, revision, reason, holder, in_force, create_time,
        update_time)
    select 'acme', 'b' || n, 'BRAND', 'b' || n, 1, '', '', true, cast(:now as timestamptz), :now
    from generate_series(1, :rows) n
    """,
)


@pytest.fixture(params=["never analyzed", "analyzed"])
async def job(database_url: str, request: pytest.FixtureRequest) -> AsyncIterator[tuple[Replica, PostJob]]:
    """A job that all facts keep back, beside many others."""
    replica = Replica(database_url, clock=FrozenDatabaseClock(NOW))
    await Situation("first in line", frozenset(FACTS) - {"no content", "no account"}).arrange(replica)
    ((job_id,),) = await replica.rows("select id from post_job where draft_id = 'd0'")
    async with replica.database.transaction() as tx:
        for statement in _FILL:
            names = {"rows": ROWS, "now": NOW}
            given = {name: value for name, value in names.items() if f":{name}" in statement}
            await tx.connection.execute(text(statement), given)
        found = await get_job(tx.connection, "acme", job_id)
    assert found is not None
    if request.param == "analyzed":
        async with replica.database.statement() as connection:
            await connection.execute(text("vacuum analyze"))
    yield replica, found
    await replica.database.dispose()


async def test_an_explanation_finds_its_rows_by_key(job: tuple[Replica, PostJob]) -> None:
    replica, found = job
    async with replica.database.engine.connect() as connection:
        explaining: Any = Explaining(connection, growing=GROWING)
        checks, _ = await check_job(
            explaining,
            command_of(found),
            replica.lanes,
            now=NOW,
            from_line=True,
            posts_before=0,
            marks={},
            limits=DEFAULTS,
        )
        assert checks
        assert await count_posts_before(explaining, found) == 2
        explaining.check(10)


async def test_the_posts_before_another_are_not_counted_without_end(job: tuple[Replica, PostJob]) -> None:
    replica, found = job
    async with replica.database.engine.connect() as connection:
        explaining: Any = Explaining(connection, growing=GROWING)
        assert await count_posts_before(explaining, replace(found, schedule_time=FAR)) == MOST_COUNTED
        explaining.check(MOST_COUNTED)
