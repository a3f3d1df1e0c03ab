"""GetDraft: finds a draft and the states of its targets. Calls that arrive together share a statement."""

from collections.abc import Sequence
from dataclasses import replace

from drafts_service.adapters.postgres.draft_views import find_views
from drafts_service.application.account_obstacles import AccountObstacles
from drafts_service.domain.account import waits_without_reason
from drafts_service.domain.draft import DraftKey, DraftView, require_draft
from drafts_service.domain.post_job import shown_targets
from servicekit.gathering import Gathering
from servicekit.pg.database import Database
from servicekit.run import is_transient

_MOST_TOGETHER = 50  # contents of 160 KiB


class GetDraft:
    def __init__(self, *, database: Database, obstacles: AccountObstacles) -> None:
        self._database = database
        self._obstacles = obstacles
        self._find = Gathering[DraftKey, DraftView | None](
            self._find_together,
            share=lambda key: key[0],
            is_shared=lambda _keys, error: is_transient(error),
            most=_MOST_TOGETHER,
        )

    async def __call__(self, *, organization_id: str, draft_id: str) -> DraftView:
        key = (organization_id, draft_id)
        view = await self._find(key)
        draft, jobs = require_draft(view.draft if view else None, key), view.jobs if view else ()
        waiting = {
            target.social_account_id for target, job in shown_targets(draft.targets, jobs) if waits_without_reason(job)
        }
        if waiting - draft.obstacles.keys():
            draft = replace(draft, obstacles=await self._obstacles.find(organization_id, waiting))
        return DraftView(draft=draft, jobs=jobs)

    async def _find_together(self, keys: Sequence[DraftKey]) -> Sequence[DraftView | None]:
        async with self._database.read_session() as session:
            found = await find_views(session, keys)
        return [found.get(key) for key in keys]
