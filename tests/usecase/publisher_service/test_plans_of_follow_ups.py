"""No statement about follow-ups costs more because of other posts: 20,000 with follow-ups, all of them due."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from publisher_service.adapters.postgres.contents import set_parts_of_jobs
from publisher_service.adapters.postgres.follow_ups import (
    drop_due,
    is_one_due,
    jobs_with_due_part,
    lock_free_jobs,
    put_off_due,
    tried_before,
)
from publisher_service.adapters.postgres.follow_ups_due import note_due
from publisher_service.adapters.postgres.jobs import list_jobs, save_jobs
from publisher_service.domain.post_job import JobFilter, JobState, Reason
from servicekit.pg.database import Database
from testkit.databases import Databases
from testkit.plans import Explaining

ROWS = 20_000
PAGE = 50
ORGANIZATIONS = 40
NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
GROWING = {"post_job", "attempt", "follow_up_due"}
# Each draft has a post that is out, and a comment.
FILL = (
    """
    insert into post_job
    select 'org-' || n % :organizations, 'b' || n || '-' || part, 'b' || n, 'page', 'facebook', '',
        case part when 0 then 'PUBLISHED' else 'PENDING' end, '', 1, 1, '', 0, null, null, null, 5, 0, 1, 1, 0,
        case part when 0 then cast(:now as timestamptz) end, '', '', case part when 0 then 'PROVIDER_ID' else '' end,
        '', '', null, '', '', cast(:now as timestamptz), :now
    from generate_series(1, :rows) n, generate_series(0, 1) part
    """,
    """
    insert into follow_up_due select 'org-' || n % :organizations, 'b' || n || '-0', cast(:now as timestamptz)
    from generate_series(1, :rows) n
    """,
    """
    insert into attempt
    select 'org-' || n % :organizations, 'b' || n || '-0', 1, 1, 1, 'ACCEPTED', '', 1, '', cast(:now as timestamptz),
        :now, '', '', '', 'sender' from generate_series(1, :rows) n
    """,
)
# The rows above are written without the columns that came later, so that they have their defaults.
PARTS = "update post_job set part = 1, external_id = '' where id like '%-1'"


def used(statement: str) -> dict[str, object]:
    names = {"rows": ROWS, "now": NOW, "organizations": ORGANIZATIONS}
    return {name: value for name, value in names.items() if f":{name}" in statement}


@pytest.fixture(scope="module", params=["never analyzed", "analyzed"])
async def full(databases: Databases, request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    url = await databases.migrated("publisher")
    database = Database(url, application="test", pool_size=1)
    async with database.transaction() as tx:
        await tx.connection.execute(text("alter table post_job drop constraint post_job_target"))
        for statement in FILL:
            await tx.connection.execute(text(statement), used(statement))
        await tx.connection.execute(text(PARTS))
        await tx.connection.execute(text("update post_job set parts = 1 where part = 0"))
        await tx.connection.execute(
            text(
                "alter table post_job add constraint post_job_target"
                " unique (organization_id, draft_id, social_account_id, channel, destination, part)"
            )
        )
    if request.param == "analyzed":
        async with database.statement() as connection:
            await connection.execute(text("vacuum analyze"))
    yield database
    await database.dispose()
    await databases.drop(url)


@pytest.fixture
async def explaining(full: Database) -> AsyncIterator[Explaining]:
    async with full.engine.connect() as connection:
        yield Explaining(connection, growing=GROWING)


def keys(part: int) -> list[tuple[str, str]]:
    return [(f"org-{number % ORGANIZATIONS}", f"b{number}-{part}") for number in range(1, PAGE + 1)]


async def test_a_page_reads_its_own_posts_and_one_of_each_organization(explaining: Explaining) -> None:
    connection: Any = explaining
    assert await is_one_due(connection, now=NOW)
    found = await jobs_with_due_part(connection, after="", now=NOW, limit=PAGE)
    assert len(found) >= PAGE
    assert len({job.organization_id for job in found}) == ORGANIZATIONS
    # A share is rounded up.
    explaining.check(2 * ORGANIZATIONS)


async def test_follow_ups_that_begin_read_only_their_page(explaining: Explaining) -> None:
    connection: Any = explaining
    locked = await lock_free_jobs(connection, keys(1))
    assert [job.part for job in locked] == [1] * PAGE
    assert await tried_before(connection, dict.fromkeys(keys(0), False), end_time=NOW) == set()
    later = NOW + timedelta(minutes=1)
    assert await tried_before(connection, dict.fromkeys(keys(0), True), end_time=later) == set(keys(0))
    await put_off_due(connection, keys(0), until=NOW + timedelta(minutes=1))
    await drop_due(connection, keys(0))
    explaining.check(PAGE)


async def test_a_part_that_is_out_is_noted_by_reading_its_own_row(explaining: Explaining) -> None:
    connection: Any = explaining
    await note_due(connection, keys(0), now=NOW)
    (one, *_) = await lock_free_jobs(connection, keys(0))
    await save_jobs(connection, [replace(one, state=JobState.PUBLISHED, state_reason=Reason.NONE)])
    await set_parts_of_jobs(connection, dict.fromkeys(keys(0), 2))
    explaining.check(PAGE)


async def test_the_parts_of_a_draft_are_listed_by_reading_no_others(explaining: Explaining) -> None:
    connection: Any = explaining
    wanted = JobFilter(organization_id="org-7", draft_id="b7")
    found = await list_jobs(connection, wanted, before=None, limit=50)
    assert [job.part for job in found] == [0, 1]
    behind = await list_jobs(connection, wanted, before=(NOW, "b7-0"), limit=50)
    assert [job.part for job in behind] == [1]
    explaining.check(2)
