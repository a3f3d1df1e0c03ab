"""Having dispatch look again at slots whose commands may be lost, and at accounts that it may have overlooked.

Nothing is sent here: the loops of dispatch do that, which know what the stream still holds, and Publisher recognises a
command that it has had.
"""

from collections.abc import Callable
from datetime import datetime

from queue_service.adapters.postgres import redispatch
from queue_service.adapters.postgres.accounts import lock_queues
from queue_service.adapters.postgres.plans import pin_plans
from queue_service.domain.redispatch import Redispatched, Selection
from queue_service.domain.slot import SlotState
from servicekit.faults import NotFound, Refused
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Answer, Call, RequestLedger


class RedispatchSlots:
    def __init__(self, *, ledger: RequestLedger, on_due: Callable[[], None]) -> None:
        """`on_due` wakes the loops of dispatch once it has been committed that something is due."""
        self._ledger = ledger
        self._on_due = on_due

    async def __call__(self, call: Call[Redispatched, Answer], selection: Selection) -> Answer:
        return await self._ledger.once(call, lambda tx, now: self._redispatch(tx, selection, now))

    async def _redispatch(self, tx: Transaction, selection: Selection, now: datetime) -> Redispatched:
        await pin_plans(tx)
        organization, account = selection.organization_id, selection.social_account_id
        accounts = await _accounts(tx, selection)
        overlooked = await redispatch.find_overlooked(tx, organization, accounts)
        # Accounts are locked before slots, here as everywhere.
        locked = await lock_queues(tx, overlooked)
        repaired = await redispatch.repair_due_times(tx, organization, [key[1] for key in locked]) if locked else 0
        if selection.slot_ids:
            slots = await redispatch.hasten_named(tx, organization, set(selection.slot_ids), now=now)
        else:
            slots = await redispatch.hasten_unanswered(tx, organization, account, now=now)
        tx.after_commit(self._on_due)
        return Redispatched(slots=slots, accounts=repaired)


async def _accounts(tx: Transaction, selection: Selection) -> set[str] | None:
    """Returns the accounts of the selection; None means all. Refuses named slots that are not DISPATCHED."""
    account = selection.social_account_id
    if not selection.slot_ids:
        return {account} if account else None
    found = await redispatch.find_named(tx, selection.organization_id, set(selection.slot_ids))
    for slot_id in selection.slot_ids:
        slot, metadata = found.get(slot_id), {"queue_slot_id": slot_id}
        if slot is None or (account and slot.social_account_id != account):
            raise NotFound("SLOT_NOT_FOUND", f"slot {slot_id} does not exist", metadata=metadata)
        if slot.state != SlotState.DISPATCHED:
            raise Refused(
                "SLOT_NOT_DISPATCHED",
                f"slot {slot_id} is {slot.state}, not DISPATCHED",
                metadata=metadata | {"state": slot.state},
            )
    return {slot.social_account_id for slot in found.values()}
