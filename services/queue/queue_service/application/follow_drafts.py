"""Keeping the drafts that may be queued, as Drafts announces them."""

from collections.abc import Sequence
from datetime import datetime

from queue_service.adapters.postgres import draft_store
from queue_service.domain.draft import SavedDraft
from servicekit.pg.database import Transaction


async def follow_drafts(tx: Transaction, saved: Sequence[SavedDraft], _now: datetime) -> None:
    newest: dict[tuple[str, str], SavedDraft] = {}
    for each in saved:
        key = (each.draft.organization_id, each.draft.id)
        if key not in newest or newest[key].version < each.version:
            newest[key] = each
    await draft_store.save_drafts(tx.connection, newest.values())
