"""Statements on `social_account`: which accounts can post, as Publisher has announced it."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from queue_service.domain.account import AccountKey, Connection, DueAccount
from servicekit.pg.session import Session, Statement

_SAVE = text("""
    insert into social_account as a (organization_id, id, version, is_connected)
    select * from unnest(
        cast(:organization_ids as text[]), cast(:ids as text[]), cast(:versions as bigint[]),
        cast(:are_connected as boolean[])
    )
    on conflict (organization_id, id) do update set version = excluded.version, is_connected = excluded.is_connected
    where a.version < excluded.version
""")
# LATERAL with OFFSET 0 leaves only a lookup of each key, however small the table was when the plan was made.
_CONNECTED = Statement("""
    select u.organization_id, u.id
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as u (organization_id, id)
    cross join lateral (
        select from social_account a
        where a.organization_id = u.organization_id and a.id = u.id and a.is_connected offset 0
    ) as connected
""")


# Locks the queues in the order of the arrays.
_HOLD_UP = text("""
    with changed as materialized (
        select q.organization_id, q.social_account_id, a.is_connected
        from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as u (organization_id, id)
        cross join lateral (
            select a.is_connected from social_account a where a.organization_id = u.organization_id and a.id = u.id
            offset 0
        ) as a
        cross join lateral (
            select * from account_queue q where q.organization_id = u.organization_id and q.social_account_id = u.id
            for update
        ) as q
        where q.is_connected <> a.is_connected
    )
    update account_queue q set is_connected = c.is_connected
    from changed c
    where q.organization_id = c.organization_id and q.social_account_id = c.social_account_id
""")
# Pages of queues by key, with the last key of each. The previous release writes `social_account` alone.
_OUTDATED = Statement("""
    with page as materialized (
        select organization_id, social_account_id, is_connected from account_queue
        where (organization_id, social_account_id) > (:organization_id, :social_account_id)
        order by organization_id, social_account_id limit :limit
    )
    select p.organization_id, p.social_account_id, coalesce(a.is_connected, p.is_connected) <> p.is_connected
    from page p
    left join lateral (
        select a.is_connected from social_account a
        where a.organization_id = p.organization_id and a.id = p.social_account_id offset 0
    ) as a on true
    order by p.organization_id, p.social_account_id
""")
# The queues whose accounts Publisher has announced as not connected, and with a slot that is due; in the order of
# `account_queue_held_up`.
_DISCONNECTED = Statement("""
    select next_due_time, organization_id, social_account_id from account_queue
    where is_held_up and pause_time is null and next_due_time <= :until and next_due_time >= :after_time
        and (next_due_time, organization_id, social_account_id)
            > (cast(:after_time as timestamptz), cast(:organization_id as text), cast(:social_account_id as text))
        and not is_connected
    order by next_due_time, organization_id, social_account_id limit :limit
""")


async def save_connections(connection: AsyncConnection, announced: Iterable[Connection]) -> None:
    """Saves connections that are newer than what is stored, and holds up the queues of accounts that cannot post.

    Each account occurs once.
    """
    # In the order of their keys, or two writers could deadlock.
    ordered = sorted(announced, key=lambda each: (each.organization_id, each.social_account_id))
    await connection.execute(
        _SAVE,
        {
            "organization_ids": [each.organization_id for each in ordered],
            "ids": [each.social_account_id for each in ordered],
            "versions": [each.version for each in ordered],
            "are_connected": [each.is_connected for each in ordered],
        },
    )
    await hold_up_queues(connection, [(each.organization_id, each.social_account_id) for each in ordered])


async def hold_up_queues(connection: AsyncConnection, accounts: Iterable[AccountKey]) -> None:
    """Has dispatch pass over the queues of those accounts that are not connected, and take up the others."""
    ordered = sorted(accounts)
    names = {"organization_ids": [key[0] for key in ordered], "ids": [key[1] for key in ordered]}
    await connection.execute(_HOLD_UP, names)


async def find_outdated(
    session: Session, after: AccountKey, *, limit: int
) -> tuple[list[AccountKey], AccountKey | None]:
    """Returns queues of the next page that disagree with what Publisher has announced, and the last key of the page."""
    names = {"organization_id": after[0], "social_account_id": after[1], "limit": limit}
    rows = await session.fetch(_OUTDATED, names)
    last = (rows[-1][0], rows[-1][1]) if rows else None
    return [(organization, account) for organization, account, is_outdated in rows if is_outdated], last


async def find_disconnected(
    session: Session, after: DueAccount, *, until: datetime, limit: int
) -> Sequence[DueAccount]:
    """Returns accounts with slots until then that are held up because they are not connected."""
    names = {
        "after_time": after.due_time,
        "organization_id": after.organization_id,
        "social_account_id": after.social_account_id,
        "until": until,
        "limit": limit,
    }
    return list(map(DueAccount._make, await session.fetch(_DISCONNECTED, names)))


async def find_connected(session: Session, accounts: Collection[AccountKey]) -> frozenset[AccountKey]:
    """Returns those of the accounts that Publisher has announced as connected."""
    names = {"organization_ids": [key[0] for key in accounts], "ids": [key[1] for key in accounts]}
    rows = await session.fetch(_CONNECTED, names)
    return frozenset((organization, account) for organization, account in rows)
