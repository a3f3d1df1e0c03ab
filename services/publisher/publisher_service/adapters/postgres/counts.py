"""Counts for operators. No statement reads jobs that have ended or are not due yet."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.adapters.postgres.jobs import STANDS_IN_LINE

# Counting stops here: the alarm has long gone off, and a count reads one index entry for each.
COUNTED_AT_MOST = 10_000

# What is being sent is found by its claim; one that is claimed again may stand in its former claim, too.
_MOVING = text("""
    select state, cast(sum(jobs) as bigint) as jobs
    from (
        select state, count(*) as jobs from post_job where next_action_time is not null group by state
        union all
        select 'SENDING', count(*) from (
            select distinct of_organization, job_id from open_claim c
            cross join lateral unnest(c.organization_ids, c.post_job_ids) as one (of_organization, job_id)
        ) as claimed
        cross join lateral (
            select from post_job
            where organization_id = of_organization and id = job_id and state = 'SENDING' and next_action_time is null
            limit 1
        ) as sending
    ) as found
    group by state having sum(jobs) > 0
""")
_NEEDS_ATTENTION = text("""
    select count(*) from (
        select 1 from post_job
        where list_state = 'NEEDS_ATTENTION' and list_state in ('SCHEDULED', 'READY', 'NEEDS_ATTENTION')
        limit :most
    ) as found
""")
# Reads the oldest first, so the bound does not change which one is the oldest.
_OVERDUE = text("""
    select wanted.state, overdue.jobs, overdue.oldest
    from (values ('SCHEDULED'), ('READY')) as wanted (state) cross join lateral (
        select count(*) as jobs, min(found.schedule_time) as oldest from (
            select schedule_time from post_job
            where list_state = wanted.state and list_state in ('SCHEDULED', 'READY', 'NEEDS_ATTENTION')
                and state = wanted.state and schedule_time < :before
            order by list_state, schedule_time limit :most
        ) as found
    ) as overdue
""")
# Steps from one line to the next; the posts behind the first of a line are not read. A line with posts that wait for a
# connection counts as ACCOUNT_NOT_CONNECTED, which sorts first, and any other with held posts as ACCOUNT_ON_HOLD.
_LINES = text(f"""
    with recursive head as (
        (
            select organization_id, social_account_id, state_reason, 1 as line from post_job
            where {STANDS_IN_LINE}
            order by organization_id, social_account_id, state_reason, schedule_time, id limit 1
        )
        union all
        select next.organization_id, next.social_account_id, next.state_reason, head.line + 1
        from head cross join lateral (
            select organization_id, social_account_id, state_reason from post_job
            where {STANDS_IN_LINE}
                and (organization_id, social_account_id) > (head.organization_id, head.social_account_id)
            order by organization_id, social_account_id, state_reason, schedule_time, id limit 1
        ) as next
        where head.line < :most
    )
    select state_reason, count(*) as lines from head group by state_reason
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Overdue:
    jobs: int
    oldest: datetime | None


async def moving_by_state(connection: AsyncConnection) -> dict[str, int]:
    return {row.state: row.jobs for row in await connection.execute(_MOVING)}


async def needing_attention(connection: AsyncConnection, *, most: int = COUNTED_AT_MOST) -> int:
    counted: int = (await connection.execute(_NEEDS_ATTENTION, {"most": most})).scalar_one()
    return counted


async def overdue_by_state(
    connection: AsyncConnection, *, before: datetime, most: int = COUNTED_AT_MOST
) -> dict[str, Overdue]:
    """Counts the SCHEDULED and READY posts that should have started before `before`, with the oldest time."""
    rows = await connection.execute(_OVERDUE, {"before": before, "most": most})
    return {row.state: Overdue(jobs=row.jobs, oldest=row.oldest) for row in rows}


async def lines_by_reason(connection: AsyncConnection, *, most: int = COUNTED_AT_MOST) -> dict[str, int]:
    """Counts the accounts that have a line, by what its posts wait for."""
    return {row.state_reason: row.lines for row in await connection.execute(_LINES, {"most": most})}
