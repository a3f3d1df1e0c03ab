"""GetDraft: finds a draft and the states of its targets."""

from dataclasses import replace

from drafts_service.adapters.postgres.drafts import find_draft
from drafts_service.adapters.postgres.post_jobs import find_jobs
from drafts_service.application.account_obstacles import AccountObstacles
from drafts_service.domain.account import waits_without_reason
from drafts_service.domain.draft import DraftView, require_draft
from drafts_service.domain.post_job import shown_targets
from servicekit.pg.database import Database


class GetDraft:
    def __init__(self, *, database: Database, obstacles: AccountObstacles) -> None:
        self._database = database
        self._obstacles = obstacles

    async def __call__(self, *, organization_id: str, draft_id: str) -> DraftView:
        key = (organization_id, draft_id)
        async with self._database.read() as connection:
            draft = require_draft(await find_draft(connection, *key), key)
            jobs = await find_jobs(connection, *key)
        waiting = {
            target.social_account_id for target, job in shown_targets(draft.targets, jobs) if waits_without_reason(job)
        }
        if waiting - draft.obstacles.keys():
            draft = replace(draft, obstacles=await self._obstacles.find(organization_id, waiting))
        return DraftView(draft=draft, jobs=jobs)
