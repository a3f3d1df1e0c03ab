"""Statements that end the slots of disabled and disconnected accounts whose latest time has passed."""

from collections.abc import Sequence
from datetime import datetime

from queue_service.adapters.postgres.dispatch import COMMAND, commands_of
from queue_service.adapters.postgres.first_scheduled import FIRST_SCHEDULED
from queue_service.adapters.postgres.plans import pin_plans
from queue_service.domain.account import AccountKey, DueAccount
from queue_service.domain.command import REPEAT_DELAYS, Command
from servicekit.pg.database import Transaction
from servicekit.pg.session import Session, Statement

# In the order of `account_queue_held_up`.
_FIND = Statement("""
    select q.next_due_time, q.organization_id, q.social_account_id, exists (
            select from slot s
            where s.organization_id = q.organization_id and s.social_account_id = q.social_account_id and s.is_live
                and (s.social_account_id, s.schedule_time) <= (q.social_account_id, cast(:before as timestamptz))
                and s.state = 'SCHEDULED' and s.not_after <= :before
        ) as has_expired
    from (
        select next_due_time, organization_id, social_account_id from account_queue
        where is_held_up and pause_time is null and next_due_time <= :before and next_due_time >= :after_time
            and (next_due_time, organization_id, social_account_id)
                > (cast(:after_time as timestamptz), cast(:organization_id as text), cast(:social_account_id as text))
        order by next_due_time, organization_id, social_account_id limit :limit
    ) as q
    order by q.next_due_time, q.organization_id, q.social_account_id
""")
# Locks the accounts in the order of the arrays; those that others have locked are found again. An account that is no
# longer held up is left to dispatch.
_LOCK = Statement("""
    select q.organization_id, q.social_account_id
    from unnest(cast(:organization_ids as text[]), cast(:social_account_ids as text[]))
        as u (organization_id, social_account_id)
    cross join lateral (
        select * from account_queue a
        where a.organization_id = u.organization_id and a.social_account_id = u.social_account_id
            and a.is_held_up and a.pause_time is null
        for update skip locked
    ) as q
""")
# Like a dispatch, which it is: Publisher ends what comes after its latest time.
_EXPIRE = Statement(f"""
    with expired as materialized (
        select s.organization_id, s.id
        from unnest(cast(:organization_ids as text[]), cast(:social_account_ids as text[]))
            as a (organization_id, social_account_id)
        cross join lateral (
            select s.organization_id, s.id from slot s
            where s.organization_id = a.organization_id and s.social_account_id = a.social_account_id and s.is_live
                and (s.social_account_id, s.schedule_time) <= (a.social_account_id, cast(:before as timestamptz))
                and s.state = 'SCHEDULED' and s.not_after <= :before
            order by s.schedule_time limit :limit
        ) as s
        limit :limit
    ),
    claimed as (
        update slot s set
            state = 'DISPATCHED', emission = s.emission + 1, update_time = :now,
            next_emit_at = case when s.next_emit_at = s.schedule_time + cast(:delay as interval) then s.next_emit_at
                else cast(:now as timestamptz) + cast(:delay as interval) end
        from expired e
        where s.organization_id = e.organization_id and s.id = e.id and s.state = 'SCHEDULED'
        returning s.*
    )
    select {COMMAND}
    from claimed c join slot_target t on t.organization_id = c.organization_id and t.slot_id = c.id
""")
_ADVANCE = Statement(f"""
    update account_queue q set
        next_due_time = ({FIRST_SCHEDULED})
    from (
        select * from unnest(cast(:organization_ids as text[]), cast(:social_account_ids as text[]))
            as u (organization_id, social_account_id)
        limit :accounts
    ) as u
    where q.organization_id = u.organization_id and q.social_account_id = u.social_account_id
""")


async def find_expired(
    session: Session, after: DueAccount, *, before: datetime, limit: int
) -> tuple[list[AccountKey], DueAccount | None]:
    """Returns accounts of the next page that are held up, not paused, and have slots whose latest time is before then.

    Also returns the last account of the page, None if there is none.
    """
    names = {
        "after_time": after.due_time,
        "organization_id": after.organization_id,
        "social_account_id": after.social_account_id,
        "before": before,
        "limit": limit,
    }
    rows = await session.fetch(_FIND, names)
    return [(row[1], row[2]) for row in rows if row[3]], DueAccount._make(rows[-1][:3]) if rows else None


async def claim_expired(
    tx: Transaction, accounts: Sequence[AccountKey], *, before: datetime, now: datetime, limit: int
) -> list[Command]:
    """Marks slots of the accounts as DISPATCHED whose latest time is before then. Returns their commands."""
    await pin_plans(tx)
    locked = await tx.fetch(_LOCK, _names(accounts))
    if not locked:
        return []
    names = _names([(row[0], row[1]) for row in locked])
    claim = {"before": before, "now": now, "delay": REPEAT_DELAYS[0], "limit": limit}
    rows = await tx.fetch(_EXPIRE, names | claim)
    await tx.execute(_ADVANCE, names | {"accounts": len(locked)})
    return commands_of(rows)


def _names(accounts: Sequence[AccountKey]) -> dict[str, object]:
    ordered = sorted(accounts)
    return {
        "organization_ids": [organization for organization, _ in ordered],
        "social_account_ids": [account for _, account in ordered],
    }
