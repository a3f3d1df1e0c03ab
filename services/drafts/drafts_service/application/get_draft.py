"""GetDraft: a draft with what became of its targets."""

from drafts_service import wire
from drafts_service.adapters.postgres import store
from drafts_service.domain.draft import found
from servicekit.pg.database import Database


class GetDraft:
    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def __call__(self, *, organization_id: str, draft_id: str) -> wire.GetDraftResponse:
        async with self._database.read() as connection:
            draft = found(await store.find(connection, organization_id, draft_id), draft_id)
            return wire.GetDraftResponse(
                draft=wire.shown(draft, await store.jobs(connection, organization_id, draft_id))
            )
