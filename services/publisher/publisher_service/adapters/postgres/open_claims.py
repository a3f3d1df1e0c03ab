"""Open claims: a row for each claim of a batch, from the claim until its last job is settled.

Here the ends of leases are found: an index of jobs by the end of their lease would cost each post more. The claim adds
the row, and the settlement counts down and deletes it. All other ways to end an attempt leave the row to the sweep.
"""

from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.adapters.postgres.jobs import JOB_COLUMNS, READ_JOB, job_from
from publisher_service.domain.post_job import PostJob

# Lateral, so that each job is found by key. Distinct, because a job that is claimed again may stand in its former claim
# as well. A job of the previous release has its end in `next_action_time`.
_LOCK_EXPIRED = text(f"""
    with claimed as (
        select distinct of_organization, job_id
        from open_claim c
        cross join lateral unnest(c.organization_ids, c.post_job_ids) as one (of_organization, job_id)
        where c.lease_end <= :before
    )
    select {JOB_COLUMNS}
    from claimed cross join lateral (
        select {READ_JOB} from post_job
        where organization_id = of_organization and id = job_id
            and state = 'SENDING' and next_action_time is null and lease_end <= :before
        for update skip locked
    ) as expired
    limit :limit
""")

# The job of a newer claim keeps the row of an older one for as long: it is looked at in vain, and nothing is lost.
_DROP_ENDED = text("""
    delete from open_claim c
    where c.lease_end <= :before and not exists (
        select from unnest(c.organization_ids, c.post_job_ids) as claimed (of_organization, job_id)
        cross join lateral (
            select from post_job
            where organization_id = of_organization and id = job_id and state = 'SENDING'
            limit 1
        ) as sending
    )
""")


async def lock_expired_jobs(connection: AsyncConnection, *, before: datetime, limit: int) -> list[PostJob]:
    """Locks jobs that are SENDING and whose lease had ended at `before`."""
    return [job_from(row) for row in await connection.execute(_LOCK_EXPIRED, {"before": before, "limit": limit})]


async def drop_ended_claims(connection: AsyncConnection, *, before: datetime) -> None:
    """Deletes the rows of claims whose lease had ended at `before` and of which no job is SENDING."""
    await connection.execute(_DROP_ENDED, {"before": before})
