"""Keeping the drafts that may be queued, as Drafts announces them."""

from collections.abc import Sequence
from datetime import datetime

from queue_service import wire
from queue_service.adapters.postgres import draft_store, slot_store
from queue_service.domain.draft import SavedDraft
from servicekit.pg.database import Transaction
from servicekit.pg.outbox import Outbox


class FollowDrafts:
    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox

    async def __call__(self, tx: Transaction, saved: Sequence[SavedDraft], now: datetime) -> None:
        """A target that a draft got since joins the draft's live slot on its account, which is announced again."""
        newest: dict[tuple[str, str], SavedDraft] = {}
        for each in saved:
            key = (each.draft.organization_id, each.draft.id)
            if key not in newest or newest[key].version < each.version:
                newest[key] = each
        await draft_store.save_drafts(tx.connection, newest.values())
        extended = await draft_store.extend_slots(tx.connection, newest.values(), now=now)
        if extended:
            slots = await slot_store.find_slots(tx.connection, extended)
            await self._outbox.append(tx, [wire.slot_scheduled(slot) for slot in slots], now=now)
