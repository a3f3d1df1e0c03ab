"""The SQL of social accounts."""

from collections.abc import Collection, Sequence

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from drafts_service.domain.account import Account, AccountKey, AccountState, KnownAccount, Obstacle, obstacle_of
from servicekit.pg.session import Session, Statement

_FIND = Statement("""
    select wanted.organization_id, wanted.id, account.state, account.provider
    from unnest(cast(:organizations as text[]), cast(:ids as text[])) as wanted (organization_id, id)
    cross join lateral (
        select state, provider from social_account
        where social_account.organization_id = wanted.organization_id and social_account.id = wanted.id offset 0
    ) as account
""")
# One row per account, because a statement cannot update a row twice; ordered, so that batches do not deadlock.
_SAVE = text("""
    insert into social_account (organization_id, id, version, state, provider)
    select distinct on (organization_id, id) organization_id, id, version, state, provider
    from unnest(cast(:organizations as text[]), cast(:ids as text[]), cast(:versions as bigint[]),
        cast(:states as text[]), cast(:providers as text[])) as one (organization_id, id, version, state, provider)
    order by organization_id, id, version desc
    on conflict (organization_id, id) do update set version = excluded.version, state = excluded.state,
        provider = excluded.provider
    where social_account.version < excluded.version
        or (social_account.version = excluded.version and social_account.provider < excluded.provider)
""")


async def find_accounts(session: Session, keys: Collection[AccountKey]) -> dict[AccountKey, KnownAccount]:
    """Returns each account that is known here."""
    names = {"organizations": [key[0] for key in keys], "ids": [key[1] for key in keys]}
    return {
        (organization_id, account_id): KnownAccount(obstacle=obstacle_of(AccountState(state)), provider=provider)
        for organization_id, account_id, state, provider in await session.fetch(_FIND, names)
    }


async def find_obstacles(session: Session, keys: Collection[AccountKey]) -> dict[AccountKey, Obstacle]:
    """Returns the obstacle of each account that is known here."""
    return {key: account.obstacle for key, account in (await find_accounts(session, keys)).items()}


async def save_accounts(connection: AsyncConnection, accounts: Sequence[Account]) -> None:
    """Stores each account, unless the stored version is equal or newer."""
    if accounts:
        await connection.execute(
            _SAVE,
            {
                "organizations": [account.organization_id for account in accounts],
                "ids": [account.id for account in accounts],
                "versions": [account.version for account in accounts],
                "states": [account.state for account in accounts],
                "providers": [account.provider for account in accounts],
            },
        )
