"""Statements on `social_account`: which accounts can post, as Publisher has announced it."""

from collections.abc import Collection, Iterable

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from queue_service.domain.account import AccountKey, Connection
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


async def save_connections(connection: AsyncConnection, announced: Iterable[Connection]) -> None:
    """Saves connections that are newer than what is stored. Each account occurs once."""
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


async def find_connected(session: Session, accounts: Collection[AccountKey]) -> frozenset[AccountKey]:
    """Returns those of the accounts that Publisher has announced as connected."""
    names = {"organization_ids": [key[0] for key in accounts], "ids": [key[1] for key in accounts]}
    rows = await session.fetch(_CONNECTED, names)
    return frozenset((organization, account) for organization, account in rows)
