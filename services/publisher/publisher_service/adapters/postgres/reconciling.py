"""The statements of a reconciliation after a restore: rare, so that they may read whole tables."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.adapters.postgres.jobs import READ_JOB, job_from
from publisher_service.adapters.postgres.keys import Key, key_arrays
from publisher_service.domain.post_job import PostJob
from publisher_service.domain.safe_mode import Kind, SafeMode, Summary

_ADD_ATTEMPTS = text("""
    insert into attempt (organization_id, post_job_id, run, number, fence, state, idempotency_key, content_revision,
        content_digest, start_time, external_id, error_reason, error_message)
    select organization_id, id, run, number, fence, 'UNKNOWN', id || '-' || run, revision, '', start_time, '', reason,
        message
    from unnest(
        cast(:organization_ids as text[]), cast(:ids as text[]), cast(:runs as integer[]), cast(:numbers as integer[]),
        cast(:fences as bigint[]), cast(:revisions as bigint[]), cast(:start_times as timestamptz[]),
        cast(:reasons as text[]), cast(:messages as text[])
    ) as a (organization_id, id, run, number, fence, revision, start_time, reason, message)
""")

# In parts, so that no lock is held for long. What stands in `reconciled_job` has had its turn. A follow-up that is due
# after the mark has begun on the copy, before anybody noticed that it is one.
_MAYBE_SENT = text(f"""
    select {READ_JOB} from post_job
    where list_state in ('SCHEDULED', 'READY', 'WAITING', 'BLOCKED') and state <> 'SENDING'
        and (schedule_time <= :until or part > 0)
        and not exists (
            select from reconciled_job r
            where r.number = :number and r.organization_id = post_job.organization_id and r.post_job_id = post_job.id
                and r.kind = 'DOUBT'
        )
    order by organization_id, id limit :limit for update skip locked
""")
_SENDING = text("""
    insert into reconciled_job (number, organization_id, post_job_id, kind)
    select :number, organization_id, id, 'DOUBT' from post_job where state in ('SENDING', 'UNKNOWN')
    on conflict (number, organization_id, post_job_id) do update set kind = excluded.kind
""")
_NOTE = text("""
    insert into reconciled_job (number, organization_id, post_job_id, kind)
    select :number, organization_id, id, :kind
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as j (organization_id, id)
    order by organization_id, id
    on conflict (number, organization_id, post_job_id) do update
        set kind = case when reconciled_job.kind = 'RECREATED' then 'RECREATED' else excluded.kind end
""")
_NOTED = text("""
    select organization_id, post_job_id, kind from reconciled_job
    where number = :number and (organization_id, post_job_id) in (
        select organization_id, id
        from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as j (organization_id, id)
    )
""")
_LEAP_JOBS = text("""
    with page as materialized (
        select organization_id, id from post_job
        where (organization_id, id) > (:organization_id, :id) order by organization_id, id limit :limit for update
    ),
    raised as (
        update post_job j set version = j.version + :leap from page
        where j.organization_id = page.organization_id and j.id = page.id and j.state <> 'PUBLISHED'
    )
    select organization_id, id from page order by organization_id desc, id desc limit 1
""")
_LEAP_ACCOUNTS = text("update social_account set version = version + :leap")
# Drafts and slots announced since the copy make jobs as at any time: those are younger than the safe mode.
_MADE_SINCE = text("""
    insert into reconciled_job (number, organization_id, post_job_id, kind)
    select :number, organization_id, id, 'RECREATED' from post_job where create_time >= :since
    on conflict (number, organization_id, post_job_id) do nothing
""")
_UNTOUCHED = text("""
    select count(*) from post_job where list_state in ('SCHEDULED', 'READY', 'WAITING', 'BLOCKED') and not exists (
        select from reconciled_job r
        where r.number = :number and r.organization_id = post_job.organization_id and r.post_job_id = post_job.id
    )
""")
_REVISIONS = text("""
    select organization_id, draft_id, revision from content where (organization_id, draft_id) in (
        select organization_id, draft_id
        from unnest(cast(:organization_ids as text[]), cast(:draft_ids as text[])) as w (organization_id, draft_id)
    )
""")
_SUMMARY = text("""
    select
        count(*) filter (where j.state in ('UNKNOWN', 'SENDING')) as open,
        count(*) filter (where j.state = 'PUBLISHED') as published,
        count(*) filter (where j.state = 'NEEDS_ATTENTION') as needs_attention,
        count(*) filter (
            where r.kind = 'DOUBT' and j.state not in ('UNKNOWN', 'SENDING', 'PUBLISHED', 'NEEDS_ATTENTION')
        ) as absent,
        count(*) filter (where r.kind = 'RECREATED' or j.create_time >= :since) as recreated
    from reconciled_job r
    join post_job j on j.organization_id = r.organization_id and j.id = r.post_job_id
    where r.number = :number
""")
_OPEN = text(f"""
    select {READ_JOB} from post_job
    where state = 'UNKNOWN' and (organization_id, id) in (
        select organization_id, post_job_id from reconciled_job where number = :number
    )
    order by organization_id, id limit :limit for update
""")


async def add_attempts(connection: AsyncConnection, jobs: Sequence[PostJob], *, began: Sequence[datetime]) -> None:
    """Records attempts that may have been made since the copy: the last one of each job, of unknown outcome."""
    if jobs:
        names = {
            "organization_ids": [job.organization_id for job in jobs],
            "ids": [job.id for job in jobs],
            "runs": [job.run for job in jobs],
            "numbers": [max(job.attempts, 1) for job in jobs],
            "fences": [job.fence for job in jobs],
            "revisions": [job.content_revision for job in jobs],
            "start_times": list(began),
            "reasons": [job.error_reason for job in jobs],
            "messages": [job.error_message for job in jobs],
        }
        await connection.execute(_ADD_ATTEMPTS, names)


async def lock_maybe_sent(connection: AsyncConnection, number: int, *, until: datetime, limit: int) -> list[PostJob]:
    """Locks open jobs that may have been sent, and of which the safe mode has found nothing out."""
    found = await connection.execute(_MAYBE_SENT, {"number": number, "until": until, "limit": limit})
    return [job_from(row) for row in found]


async def note_sending(connection: AsyncConnection, number: int) -> None:
    """Notes the jobs that the copy itself shows as sent or in question."""
    await connection.execute(_SENDING, {"number": number})


async def note_jobs(connection: AsyncConnection, number: int, kind: Kind, jobs: Sequence[PostJob]) -> None:
    if jobs:
        await connection.execute(
            _NOTE, key_arrays([job.key for job in jobs], "ids") | {"number": number, "kind": kind.value}
        )


async def noted_jobs(connection: AsyncConnection, number: int, jobs: Sequence[Key]) -> dict[Key, Kind]:
    """Returns what the safe mode has done with those of the jobs that it has noted."""
    rows = await connection.execute(_NOTED, key_arrays(jobs, "ids") | {"number": number})
    return {(row.organization_id, row.post_job_id): Kind(row.kind) for row in rows}


async def leap_jobs(connection: AsyncConnection, after: Key, *, leap: int, limit: int) -> Key | None:
    """Raises the versions of the jobs that follow, a page at a time. Returns the last one; None at the end."""
    names = {"organization_id": after[0], "id": after[1], "leap": leap, "limit": limit}
    row = (await connection.execute(_LEAP_JOBS, names)).one_or_none()
    return None if row is None else (row.organization_id, row.id)


async def leap_accounts(connection: AsyncConnection, *, leap: int) -> None:
    await connection.execute(_LEAP_ACCOUNTS, {"leap": leap})


async def note_made(connection: AsyncConnection, mode: SafeMode) -> None:
    """Notes the jobs that were made since the safe mode began, and of which nothing else is known."""
    await connection.execute(_MADE_SINCE, {"number": mode.number, "since": mode.enter_time})


async def count_untouched(connection: AsyncConnection, number: int) -> int:
    counted: int = (await connection.execute(_UNTOUCHED, {"number": number})).scalar_one()
    return counted


async def revisions_of(connection: AsyncConnection, jobs: Sequence[PostJob]) -> dict[Key, int]:
    """Returns the revisions of the drafts of jobs."""
    keys = key_arrays([(job.organization_id, job.draft_id) for job in jobs], "draft_ids")
    return {(row.organization_id, row.draft_id): row.revision for row in await connection.execute(_REVISIONS, keys)}


async def summary_of(connection: AsyncConnection, mode: SafeMode) -> Summary:
    row = (await connection.execute(_SUMMARY, {"number": mode.number, "since": mode.enter_time})).mappings().one()
    return Summary(**row, untouched=mode.untouched)


async def lock_open(connection: AsyncConnection, number: int, *, limit: int) -> list[PostJob]:
    """Locks jobs whose outcome is still to be found."""
    return [job_from(row) for row in await connection.execute(_OPEN, {"number": number, "limit": limit})]
