"""GetPostJob and ListPostJobs: post jobs as they are now."""

from collections.abc import Sequence
from datetime import datetime

from publisher_service.adapters.postgres.attempts import list_attempts
from publisher_service.adapters.postgres.jobs import get_job, list_jobs
from publisher_service.adapters.postgres.resolutions import list_resolutions
from publisher_service.domain.attempt import Attempt
from publisher_service.domain.post_job import JobFilter, PostJob
from publisher_service.domain.resolution import Resolution
from servicekit.faults import NotFound
from servicekit.pg.database import Database


class ReadJobs:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(
        self, organization_id: str, job_id: str
    ) -> tuple[PostJob, Sequence[Attempt], Sequence[tuple[int, Resolution, datetime]]]:
        """Returns the job, its attempts, and what people have said about its runs."""
        async with self._database.read() as connection:
            job = await get_job(connection, organization_id, job_id)
            if job is None:
                raise NotFound("POST_JOB_NOT_FOUND", "there is no such post job", metadata={"post_job_id": job_id})
            attempts = await list_attempts(connection, organization_id, job_id)
            return job, attempts, await list_resolutions(connection, organization_id, job_id)

    async def list(self, wanted: JobFilter, *, before: tuple[datetime, str] | None, limit: int) -> Sequence[PostJob]:
        async with self._database.read() as connection:
            return await list_jobs(connection, wanted, before=before, limit=limit)
