"""Follow-ups that are due: `follow_up_due` has a row for each job whose next part is to be looked at."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.adapters.postgres.jobs import READ_JOB, job_from
from publisher_service.adapters.postgres.keys import Key, key_arrays
from publisher_service.domain.post_job import PostJob
from servicekit.pg.session import Session, Statement

# A look considers at most this many organizations.
_POOL = 500

# The second condition is that of the index.
IS_ONE_DUE: Final = "exists (select from follow_up_due where next_time <= :now and organization_id <> '')"
_IS_ONE_DUE = Statement(f"select {IS_ONE_DUE}")
# Walks the organizations from the one behind `after` on, and takes a share of each: none can keep the others waiting.
# Nothing is locked: the lock of the next part decides which process makes it due.
_DUE = text(f"""
    with recursive organization as (
        (
            select organization_id, 1 as number from follow_up_due
            where organization_id > :after order by organization_id limit 1
        )
        union all
        select next.organization_id, o.number + 1 from organization o cross join lateral (
            select organization_id from follow_up_due
            where organization_id > o.organization_id order by organization_id limit 1
        ) as next
        where o.number < :pool
    ),
    due as materialized (
        select first.organization_id as of_organization, first.post_job_id, first.next_time
        from (
            select organization_id, ceil(cast(:limit as numeric) / count(*) over ()) as share from organization
        ) as o
        cross join lateral (
            select d.organization_id, d.post_job_id, d.next_time from follow_up_due d
            where d.organization_id = o.organization_id and d.next_time <= :now
            order by d.next_time limit cast(o.share as bigint)
        ) as first
    )
    select job.* from due cross join lateral (
        select {READ_JOB} from post_job where organization_id = of_organization and id = post_job_id offset 0
    ) as job
""")
# Waits for nobody: a part that is locked is found again.
_LOCK_FREE = text(f"""
    select job.*
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as wanted (of_organization, wanted_id)
    cross join lateral (
        select {READ_JOB} from post_job
        where organization_id = wanted.of_organization and id = wanted.wanted_id for update skip locked
    ) as job
""")
_DROP = text("""
    delete from follow_up_due d
    using unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as done (organization_id, id)
    where d.organization_id = done.organization_id and d.post_job_id = done.id
""")
_PUT_OFF = text("""
    update follow_up_due d set next_time = :next_time
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as later (organization_id, id)
    where d.organization_id = later.organization_id and d.post_job_id = later.id
""")
# A claim names its attempt; those that stand for attempts of a lost database have no name. In a safe mode nothing is
# claimed: what was tried before its end was tried before the copy.
_TRIED_BEFORE = text("""
    select organization_id, id
    from unnest(
        cast(:organization_ids as text[]), cast(:ids as text[]), cast(:are_copied as boolean[])
    ) as wanted (organization_id, id, is_copied)
    where exists (
        select from attempt a
        where a.organization_id = wanted.organization_id and a.post_job_id = wanted.id
            and (a.sender = '' or (wanted.is_copied and a.start_time < :end_time))
    )
""")


async def is_one_due(session: Session, *, now: datetime) -> bool:
    found: bool = await session.fetch_value(_IS_ONE_DUE, {"now": now})
    return found


async def jobs_with_due_part(connection: AsyncConnection, *, after: str, now: datetime, limit: int) -> list[PostJob]:
    """Returns jobs whose next part is to be looked at, in turn over the organizations behind `after`."""
    rows = await connection.execute(_DUE, {"after": after, "now": now, "limit": limit, "pool": _POOL})
    return [job_from(row) for row in rows]


async def lock_free_jobs(connection: AsyncConnection, jobs: Iterable[Key]) -> list[PostJob]:
    """Locks those of the jobs that no other transaction has locked."""
    return [job_from(row) for row in await connection.execute(_LOCK_FREE, key_arrays(jobs, "ids"))]


async def drop_due(connection: AsyncConnection, jobs: Iterable[Key]) -> None:
    """Forgets that the next parts of these jobs are to be looked at."""
    await connection.execute(_DROP, key_arrays(jobs, "ids"))


async def put_off_due(connection: AsyncConnection, jobs: Iterable[Key], *, until: datetime) -> None:
    await connection.execute(_PUT_OFF, key_arrays(jobs, "ids") | {"next_time": until})


async def tried_before(connection: AsyncConnection, jobs: Mapping[Key, bool], *, end_time: datetime) -> set[Key]:
    """Returns which of the jobs may have been out on a database that is lost.

    Those that map to True also if the copy shows an attempt. `end_time` is that of the safe mode.
    """
    are_copied = [is_copied for _, is_copied in sorted(jobs.items())]
    names = key_arrays(jobs, "ids") | {"are_copied": are_copied, "end_time": end_time}
    return {(row.organization_id, row.id) for row in await connection.execute(_TRIED_BEFORE, names)}
