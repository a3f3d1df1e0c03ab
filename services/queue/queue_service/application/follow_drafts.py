"""Keeping a copy of the drafts that may get slots, as Drafts announces them."""

from collections.abc import Sequence
from datetime import datetime

from queue_service.adapters.postgres.drafts import extend_slots, save_drafts
from queue_service.adapters.postgres.slots import find_slots
from queue_service.application.book_requested_times import RequestedTimes
from queue_service.domain.draft import SavedDraft
from queue_service.wire.announcements import slot_scheduled
from servicekit.pg.database import Transaction
from servicekit.pg.outbox import Outbox
from servicekit.versions import newest


class FollowDrafts:
    def __init__(self, *, outbox: Outbox, requested_times: RequestedTimes) -> None:
        self._outbox = outbox
        self._requested_times = requested_times

    async def __call__(self, tx: Transaction, saved: Sequence[SavedDraft], now: datetime) -> None:
        """Saves the drafts. A target that a draft has gained joins its live slot, which is announced again.

        Approved drafts that ask for a time get slots.
        """
        drafts = newest(
            saved, key=lambda each: (each.draft.organization_id, each.draft.id), version=lambda each: each.version
        )
        asking = await self._requested_times.lock(tx, drafts, now)
        await save_drafts(tx.connection, drafts)
        extended = await extend_slots(tx.connection, drafts, now=now)
        if extended:
            slots = await find_slots(tx.connection, extended)
            await self._outbox.append(tx, [slot_scheduled(slot) for slot in slots], now=now)
        await self._requested_times.book(tx, asking, now)
