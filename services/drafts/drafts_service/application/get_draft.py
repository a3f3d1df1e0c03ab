"""GetDraft: a draft with the states of its targets."""

from dataclasses import replace

from drafts_service import wire
from drafts_service.adapters.postgres import store
from drafts_service.application.accounts import Accounts
from drafts_service.domain.account import still_waits
from drafts_service.domain.draft import found
from drafts_service.domain.post_job import worth_showing
from servicekit.pg.database import Database


class GetDraft:
    def __init__(self, *, database: Database, accounts: Accounts) -> None:
        self._database = database
        self._accounts = accounts

    async def __call__(self, *, organization_id: str, draft_id: str) -> wire.GetDraftResponse:
        async with self._database.read() as connection:
            draft = found(await store.find(connection, organization_id, draft_id), draft_id)
            jobs = await store.jobs(connection, organization_id, draft_id)
        waiting = {target.social_account_id for target, job in worth_showing(draft.targets, jobs) if still_waits(job)}
        if waiting - draft.obstacles.keys():
            draft = replace(draft, obstacles=await self._accounts.obstacles(organization_id, waiting))
        return wire.GetDraftResponse(draft=wire.shown(draft, jobs))
