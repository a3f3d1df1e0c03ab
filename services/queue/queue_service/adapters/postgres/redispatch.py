"""Statements that make dispatch look again at slots and accounts that an operator selects."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from queue_service.adapters.postgres.first_scheduled import FIRST_SCHEDULED
from queue_service.domain.account import AccountKey
from queue_service.domain.policy import MOST_LEAD
from servicekit.pg.database import Transaction
from servicekit.pg.session import Session, Statement

_NAMED = Statement("""
    select s.id, s.social_account_id, s.state
    from unnest(cast(:ids as text[])) as u (id)
    join slot s on s.organization_id = :organization_id and s.id = u.id
""")

# Reads all accounts of an organization, so it locks none. `next_due_time` is never later than the earliest slot.
_OVERLOOKED = f"""
    select q.social_account_id from account_queue q cross join lateral ({FIRST_SCHEDULED}) as first
    where q.organization_id = :organization_id %s
        and (q.next_due_time is null or q.next_due_time > first.schedule_time)
"""
_OVERLOOKED_OF_ALL = Statement(_OVERLOOKED % "")
_OVERLOOKED_OF_SOME = Statement(_OVERLOOKED % "and q.social_account_id = any(cast(:social_account_ids as text[]))")
_REPAIR = Statement(f"""
    update account_queue q set next_due_time = first.schedule_time
    from unnest(cast(:social_account_ids as text[])) as u (social_account_id)
    cross join lateral (
        select q.organization_id, q.social_account_id, each.schedule_time
        from account_queue q cross join lateral ({FIRST_SCHEDULED}) as each
        where q.organization_id = :organization_id and q.social_account_id = u.social_account_id
            and (q.next_due_time is null or q.next_due_time > each.schedule_time)
        offset 0
    ) as first
    where q.organization_id = first.organization_id and q.social_account_id = first.social_account_id
""")

# Keeps the order in which the slots were due, before everything that is due by itself. The slots are locked in the
# order of their keys, as everywhere.
_HASTEN = """
    with page as materialized (
        select s.organization_id, s.id from %s
        where s.organization_id = :organization_id and s.state = 'DISPATCHED' and %s
        order by s.organization_id, s.id
        for update of s
    )
    update slot s set next_emit_at = least(s.next_emit_at, cast(:now as timestamptz) - interval '1 minute'
        + least(greatest(s.next_emit_at - :now, '0') / 1000, interval '59 seconds'))
    from page
    where s.organization_id = page.organization_id and s.id = page.id and s.state = 'DISPATCHED'
"""
_UNANSWERED = "s.is_live and not s.is_answered"
_HASTEN_NAMED = Statement(_HASTEN % ("unnest(cast(:ids as text[])) as u (id) join slot s on s.id = u.id", "true"))
_HASTEN_OF_ACCOUNT = Statement(
    _HASTEN
    % (
        "slot s",
        _UNANSWERED
        + """ and s.social_account_id = :social_account_id
            and (s.social_account_id, s.schedule_time) <= (:social_account_id, cast(:dispatched_until as timestamptz))
        """,
    )
)
_HASTEN_OF_ALL = Statement(
    _HASTEN % ("slot s", _UNANSWERED + " and s.list_state = 'LIVE' and s.schedule_time <= :dispatched_until")
)

_HASTEN_EVERYWHERE = Statement("""
    with page as materialized (
        select organization_id, id from slot
        where is_live and list_state = 'LIVE' and state = 'DISPATCHED'
        order by organization_id, id for update
    )
    update slot s set next_emit_at = least(s.next_emit_at, cast(:now as timestamptz))
    from page
    where s.organization_id = page.organization_id and s.id = page.id and s.state = 'DISPATCHED'
""")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSlot:
    social_account_id: str
    state: str


async def find_named(session: Session, organization_id: str, ids: Collection[str]) -> Mapping[str, NamedSlot]:
    rows = await session.fetch(_NAMED, {"organization_id": organization_id, "ids": list(ids)})
    return {slot: NamedSlot(social_account_id=account, state=state) for slot, account, state in rows}


async def find_overlooked(session: Session, organization_id: str, accounts: Collection[str] | None) -> list[AccountKey]:
    """Returns those of the accounts, or of all, that dispatch would look at too late, or never."""
    names: dict[str, object] = {"organization_id": organization_id}
    if accounts is None:
        rows = await session.fetch(_OVERLOOKED_OF_ALL, names)
    else:
        rows = await session.fetch(_OVERLOOKED_OF_SOME, names | {"social_account_ids": list(accounts)})
    return [(organization_id, account) for (account,) in rows]


async def repair_due_times(tx: Transaction, organization_id: str, accounts: Collection[str]) -> int:
    """Sets the next due times of locked accounts. Returns how many it has changed."""
    return await tx.execute(_REPAIR, {"organization_id": organization_id, "social_account_ids": list(accounts)})


async def hasten_named(tx: Transaction, organization_id: str, ids: Collection[str], *, now: datetime) -> int:
    """Makes the commands of those of the slots that are DISPATCHED due for a repeat. Returns how many."""
    return await tx.execute(_HASTEN_NAMED, {"organization_id": organization_id, "ids": list(ids), "now": now})


async def hasten_unanswered(tx: Transaction, organization_id: str, account: str, *, now: datetime) -> int:
    """Makes the commands without an answer of the account, or of all, due for a repeat. Returns how many slots."""
    names = {"organization_id": organization_id, "now": now, "dispatched_until": now + MOST_LEAD}
    if account:
        return await tx.execute(_HASTEN_OF_ACCOUNT, names | {"social_account_id": account})
    return await tx.execute(_HASTEN_OF_ALL, names)


async def hasten_everywhere(tx: Transaction, *, now: datetime) -> int:
    """Makes the commands of all DISPATCHED slots of all tenants due for a repeat. Returns how many slots."""
    return await tx.execute(_HASTEN_EVERYWHERE, {"now": now})
