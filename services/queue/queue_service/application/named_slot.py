"""The slot that a call names, and the queue of its account, under the account's lock."""

from dataclasses import dataclass
from datetime import datetime

from queue_service.adapters.postgres.arrangement import find_account, find_one
from queue_service.application.arranger import Arranger
from queue_service.domain.arrangement import SeatedSlot, Snapshot
from queue_service.domain.schedule_check import ReadTimes
from queue_service.domain.slot import LIVE, SlotState, TakingBack
from queue_service.domain.take_back import slot_not_found
from servicekit.pg.database import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSlot:
    snapshot: Snapshot
    # With the seat that it has, or had when it ended.
    slot: SeatedSlot
    taking_back: TakingBack

    @property
    def is_live(self) -> bool:
        return self.slot.state in LIVE

    @property
    def is_leaving(self) -> bool:
        """Returns whether a call has canceled the slot, or will once Publisher has given it back."""
        return self.slot.state is SlotState.CANCELED or self.taking_back is TakingBack.CANCEL


async def lock_named(
    tx: Transaction,
    arranger: Arranger,
    organization_id: str,
    slot_id: str,
    *,
    now: datetime,
    read: ReadTimes | None = None,
) -> NamedSlot:
    """Locks the account of the slot; refuses a slot of another organization. The caller judges the etag."""
    social_account_id = await find_account(tx, organization_id, slot_id)
    if social_account_id is None:
        raise slot_not_found(slot_id)
    snapshot = await arranger.lock(tx, (organization_id, social_account_id), now=now, read=read)
    slot, taking_back = await find_one(tx, organization_id, slot_id)
    return NamedSlot(snapshot=snapshot, slot=slot, taking_back=taking_back)
