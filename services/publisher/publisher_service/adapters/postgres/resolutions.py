"""Resolutions: what people have said about runs whose outcome nothing had proven."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.domain.post_job import PostJob
from publisher_service.domain.resolution import Resolution, Said

_KEEP = text("""
    insert into resolution (organization_id, post_job_id, run, outcome, external_id, external_url, resolver, note,
        create_time)
    values (:organization_id, :id, :run, :outcome, :external_id, :external_url, :resolver, :note, :now)
    on conflict (organization_id, post_job_id, run) do update set
        outcome = excluded.outcome, external_id = excluded.external_id, external_url = excluded.external_url,
        resolver = excluded.resolver, note = excluded.note, create_time = excluded.create_time
""")
_OF = text("""
    select run, outcome, external_id, external_url, resolver, note, create_time from resolution
    where organization_id = :organization_id and post_job_id = :id order by run
""")
_DENIED = text("""
    select a.organization_id, a.post_job_id, a.fence
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[]), cast(:fences as bigint[]))
        as proven (organization_id, id, fence)
    join attempt a on a.organization_id = proven.organization_id and a.post_job_id = proven.id
        and a.fence = proven.fence
    join resolution r on r.organization_id = a.organization_id and r.post_job_id = a.post_job_id and r.run = a.run
    where r.outcome = 'NOT_PUBLISHED'
""")


async def keep_resolution(connection: AsyncConnection, job: PostJob, said: Resolution, *, now: datetime) -> None:
    await connection.execute(
        _KEEP,
        {
            "organization_id": job.organization_id,
            "id": job.id,
            "run": job.run,
            "outcome": said.outcome.value,
            "external_id": said.external_id,
            "external_url": said.external_url,
            "resolver": said.resolver,
            "note": said.note,
            "now": now,
        },
    )


async def list_resolutions(
    connection: AsyncConnection, organization_id: str, job_id: str
) -> Sequence[tuple[int, Resolution, datetime]]:
    """Lists what was said about each run, and when, by run."""
    rows = await connection.execute(_OF, {"organization_id": organization_id, "id": job_id})
    return [
        (
            row.run,
            Resolution(
                outcome=Said(row.outcome),
                external_id=row.external_id,
                external_url=row.external_url,
                publish_time=None,
                resolver=row.resolver,
                note=row.note,
            ),
            row.create_time,
        )
        for row in rows
    ]


async def denied_attempts(
    connection: AsyncConnection, attempts: Sequence[tuple[str, str, int]]
) -> set[tuple[str, str, int]]:
    """Returns those of the attempts (organization, job, fence) whose run a person has declared unpublished."""
    names = {
        "organization_ids": [organization_id for organization_id, _, _ in attempts],
        "ids": [job_id for _, job_id, _ in attempts],
        "fences": [fence for _, _, fence in attempts],
    }
    rows = await connection.execute(_DENIED, names)
    return {(row.organization_id, row.post_job_id, row.fence) for row in rows}
