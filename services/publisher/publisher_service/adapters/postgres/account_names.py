"""The names of accounts, as people know them."""

from collections.abc import Iterable

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from publisher_service.adapters.postgres.keys import Key, key_arrays

_NAMES = text("""
    select organization_id, id, display_name
    from unnest(cast(:organization_ids as text[]), cast(:ids as text[])) as w (of_organization, of_id)
    cross join lateral (
        select organization_id, id, display_name from social_account
        where organization_id = w.of_organization and id = w.of_id limit 1
    ) as found
""")


async def names_of_accounts(connection: AsyncConnection, accounts: Iterable[Key]) -> dict[Key, str]:
    rows = await connection.execute(_NAMES, key_arrays(accounts, "ids"))
    return {(row.organization_id, row.id): row.display_name for row in rows}
