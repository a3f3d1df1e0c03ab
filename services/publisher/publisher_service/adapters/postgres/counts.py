"""Counts for operators. No statement reads jobs that have ended or are not due yet."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.adapters.postgres.jobs import STANDS_IN_LINE

# Counting stops here: the alarm has long gone off, and a count reads one index entry for each.
COUNTED_AT_MOST = 10_000

# What is being sent is found by its claim; one that is claimed again may stand in its former claim, too.
_MOVING = text("""
    select state, state_reason, cast(sum(jobs) as bigint) as jobs
    from (
        select state, state_reason, count(*) as jobs from post_job
        where next_action_time is not null group by state, state_reason
        union all
        select 'SENDING', '', count(*) from (
            select distinct of_organization, job_id from open_claim c
            cross join lateral unnest(c.organization_ids, c.post_job_ids) as one (of_organization, job_id)
        ) as claimed
        cross join lateral (
            select from post_job
            where organization_id = of_organization and id = job_id and state = 'SENDING' and next_action_time is null
            limit 1
        ) as sending
    ) as found
    group by state, state_reason having sum(jobs) > 0
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
# Steps from one line to the next; the posts behind the first of a line are not read. A line whose posts
# do not all show the same yet counts as what sorts first.
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

_PARKED = text("""
    select p.state_reason, count(*) as jobs from (
        select state_reason from post_job where parked_on <> ''
        order by organization_id, social_account_id, parked_on, schedule_time, id limit :most
    ) as p
    group by p.state_reason
""")


_HOLDS = text("""
    select scope, count(*) as holds from (
        (
            select scope from hold
            where in_force and scope in ('ORGANIZATION', 'PROVIDER', 'BRAND', 'CAMPAIGN') limit :most
        )
        union all
        (select scope from hold where in_force and scope = 'ACCOUNT' limit :most)
    ) as found
    group by scope
""")
_NEXT_RELEASE = text("select min(next_time) from hold_release")


@dataclass(frozen=True, slots=True, kw_only=True)
class Moving:
    """The posts that still have to move, by what they show."""

    by_state: Mapping[str, int]
    by_reason: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overdue:
    jobs: int
    oldest: datetime | None


async def moving(connection: AsyncConnection) -> Moving:
    by_state: Counter[str] = Counter()
    by_reason: Counter[str] = Counter()
    for state, reason, jobs in await connection.execute(_MOVING):
        by_state[state] += jobs
        by_reason[reason] += jobs
    return Moving(by_state=by_state, by_reason=by_reason)


async def holds_by_scope(connection: AsyncConnection, *, most: int = COUNTED_AT_MOST) -> dict[str, int]:
    """Counts the holds that are in force, those of accounts apart: each paused queue has one."""
    return {row.scope: row.holds for row in await connection.execute(_HOLDS, {"most": most})}


async def next_release(connection: AsyncConnection) -> datetime | None:
    """Returns when the next posts of holds that have ended are to be freed; None if all are free."""
    next_time: datetime | None = (await connection.execute(_NEXT_RELEASE)).scalar_one()
    return next_time


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


async def parked_by_reason(connection: AsyncConnection, *, most: int = COUNTED_AT_MOST) -> dict[str, int]:
    """Counts the posts that are parked on a limit of their account, by the kind of the limit."""
    return {row.state_reason: row.jobs for row in await connection.execute(_PARKED, {"most": most})}
