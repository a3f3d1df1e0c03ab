"""Listing the slots of drafts."""

from collections import defaultdict
from collections.abc import Sequence

from queue_service.adapters.postgres.slots import find_draft_slots
from queue_service.domain.slot import QueueSlot
from servicekit.pg.database import Database

_MOST = 100
"""The most slots that are shown of a draft."""
_AT_ONCE = 10
"""A thousand slots take some ten milliseconds, in which no post is dispatched."""


class ListDraftSlots:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def __call__(
        self, organization_id: str, draft_ids: Sequence[str], *, live_only: bool
    ) -> list[tuple[str, Sequence[QueueSlot]]]:
        """Returns each draft, in the order given, with its slots."""
        asked = list(dict.fromkeys(draft_ids))
        slots = defaultdict[str, list[QueueSlot]](list)
        async with self._database.read() as connection:
            for first in range(0, len(asked), _AT_ONCE):
                page = asked[first : first + _AT_ONCE]
                found = await find_draft_slots(connection, organization_id, page, live_only=live_only, most=_MOST)
                for slot in found:
                    slots[slot.draft_id].append(slot)
        return [(draft, slots[draft]) for draft in draft_ids]
