"""Statements on `social_account`: which accounts can post, as Publisher has announced it."""

from collections.abc import Iterable, Sequence

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from queue_service.domain.account import Connection

_SAVE = text("""
    insert into social_account as a (organization_id, id, version, is_connected)
    select * from unnest(
        cast(:organization_ids as text[]), cast(:ids as text[]), cast(:versions as bigint[]),
        cast(:are_connected as boolean[])
    )
    on conflict (organization_id, id) do update set version = excluded.version, is_connected = excluded.is_connected
    where a.version < excluded.version
""")
_CONNECTED = text("""
    select id from social_account
    where organization_id = :organization_id and id = any(cast(:ids as text[])) and is_connected
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


async def find_connected(connection: AsyncConnection, organization_id: str, accounts: Sequence[str]) -> frozenset[str]:
    """Returns those of the accounts that Publisher has announced as connected."""
    names = {"organization_id": organization_id, "ids": list(accounts)}
    return frozenset((await connection.execute(_CONNECTED, names)).scalars())
