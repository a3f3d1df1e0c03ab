"""FindDraftTargets: finds the targets that drafts of any tenants have now."""

from collections.abc import Collection

from drafts_service.adapters.postgres.drafts import find_targets
from drafts_service.domain.draft import DraftKey, DraftTargets
from servicekit.pg.database import Database


class FindDraftTargets:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def __call__(self, keys: Collection[DraftKey]) -> list[DraftTargets]:
        async with self._database.read_session() as session:
            return await find_targets(session, keys)
