"""Statements about the times that drafts ask for."""

from collections.abc import Collection
from typing import Any

from queue_service.domain.draft import DraftKey
from queue_service.domain.requested_time import AskedBefore, LiveSlot
from queue_service.domain.slot import SlotOrigin, SlotState
from servicekit.pg.database import Transaction
from servicekit.pg.session import Statement

# LATERAL with OFFSET 0 leaves only lookups by key, however small the tables were when the plan was made.
_ASKED_BEFORE = Statement("""
    select u.organization_id, u.id, known.*
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as u (organization_id, id)
    cross join lateral (
        select d.version, d.approved, d.requested_time, array(
            select distinct target ->> 0 from jsonb_array_elements(d.targets) as target
        ) as accounts
        from draft d where d.organization_id = u.organization_id and d.id = u.id offset 0
    ) as known
""")
_LIVE = Statement("""
    select u.organization_id, u.id, live.*
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as u (organization_id, id)
    cross join lateral (
        select s.social_account_id, s.id as slot_id, s.schedule_time, s.state, s.origin
        from slot s where s.organization_id = u.organization_id and s.draft_id = u.id and s.is_live offset 0
    ) as live
""")


async def find_asked_before(tx: Transaction, keys: Collection[DraftKey]) -> dict[DraftKey, AskedBefore]:
    return {
        (organization_id, draft_id): AskedBefore(version, is_approved, requested_time, frozenset(accounts))
        for organization_id, draft_id, version, is_approved, requested_time, accounts in await tx.fetch(
            _ASKED_BEFORE, _names(keys)
        )
    }


async def find_live_slots(tx: Transaction, keys: Collection[DraftKey]) -> dict[tuple[DraftKey, str], LiveSlot]:
    """Returns the live slots of drafts by account. Those of accounts that the caller has locked stay as they are."""
    return {
        ((organization_id, draft_id), account): LiveSlot(
            slot_id=slot_id, schedule_time=time, state=SlotState(state), origin=SlotOrigin(origin)
        )
        for organization_id, draft_id, account, slot_id, time, state, origin in await tx.fetch(_LIVE, _names(keys))
    }


def _names(keys: Collection[DraftKey]) -> dict[str, Any]:
    ordered = sorted(keys)
    return {"organization_ids": [key[0] for key in ordered], "ids": [key[1] for key in ordered]}
