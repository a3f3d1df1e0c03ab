"""KeepRefusals: stores why drafts did not get a slot at the time that they ask for."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from drafts_service.adapters.postgres.drafts import lock_whole_drafts, save_refusals
from drafts_service.domain.draft import DraftKey, refused
from drafts_service.domain.slot_refusal import RefusedSlot, SlotRefusal
from servicekit.pg.database import Transaction


class KeepRefusals:
    """Tolerates duplicates and reordering, and ignores drafts that do not exist."""

    async def __call__(self, tx: Transaction, refusals: Sequence[RefusedSlot], now: datetime) -> None:
        by_draft: defaultdict[DraftKey, list[SlotRefusal]] = defaultdict(list)
        for each in refusals:
            by_draft[each.organization_id, each.draft_id].append(each.refusal)
        before = await lock_whole_drafts(tx, by_draft.keys())
        after = [refused(draft, by_draft[key]) for key, draft in before.items()]
        changed = [draft for draft in after if draft.refusals != before[draft.key].refusals]
        if changed:
            await save_refusals(tx, changed, now=now)
