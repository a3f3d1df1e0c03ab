"""Walks of post jobs in the order of their keys, for those who announce them again."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.adapters.postgres.jobs import READ_JOB, job_from
from publisher_service.adapters.postgres.keys import Key
from publisher_service.domain.post_job import PostJob
from publisher_service.domain.replay import Replay

_NEXT = f"""
    select {READ_JOB} from post_job
    where (organization_id, id) > (:after_organization_id, :after_id) {{conditions}}
    order by organization_id, id limit :limit
"""
_OF_ALL = text(_NEXT.format(conditions=""))
_OF_ORGANIZATION = text(_NEXT.format(conditions="and organization_id = :organization_id"))
# A draft has few jobs. Materialized, or the planner may walk the primary key to find them.
_OF_DRAFT = text(f"""
    with jobs as materialized (
        select {READ_JOB} from post_job where organization_id = :organization_id and draft_id = :draft_id
    )
    select * from jobs where (organization_id, id) > (:after_organization_id, :after_id)
    order by organization_id, id limit :limit
""")


async def next_jobs(connection: AsyncConnection, wanted: Replay, *, after: Key, limit: int) -> list[PostJob]:
    """Returns the next jobs of the organization or the draft, if one is named; the caller looks at the other fields."""
    names: dict[str, object] = {"after_organization_id": after[0], "after_id": after[1], "limit": limit}
    if not wanted.organization_id:
        return [job_from(row) for row in await connection.execute(_OF_ALL, names)]
    names["organization_id"] = wanted.organization_id
    if not wanted.draft_id:
        return [job_from(row) for row in await connection.execute(_OF_ORGANIZATION, names)]
    rows = await connection.execute(_OF_DRAFT, names | {"draft_id": wanted.draft_id})
    return [job_from(row) for row in rows]
