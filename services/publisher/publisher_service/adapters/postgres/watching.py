"""Reads for those who watch post jobs, all without locks."""

from collections.abc import Sequence

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.adapters.postgres.jobs import SHOWN_JOB, job_from
from publisher_service.domain.post_job import PostJob

# LATERAL with OFFSET 0 leaves only a lookup of each key, no matter how small the table was at planning.
_JOBS = text(f"""
    select job.* from unnest(cast(:ids as text[])) with ordinality as wanted (id, place)
    cross join lateral (
        select {SHOWN_JOB} from post_job
        where post_job.organization_id = :organization_id and post_job.id = wanted.id offset 0
    ) as job
    order by wanted.place
""")


async def find_jobs(connection: AsyncConnection, organization_id: str, ids: Sequence[str]) -> list[PostJob]:
    """Returns those of the jobs that exist, in the order of the ids."""
    names = {"organization_id": organization_id, "ids": list(ids)}
    return [job_from(row) for row in await connection.execute(_JOBS, names)]
