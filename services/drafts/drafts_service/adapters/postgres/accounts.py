"""The SQL of accounts: what is known of them, and of those that a draft names."""

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import CursorResult, Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from drafts_service.domain.account import Account, AccountState

_FIND = text("""
    select wanted.id, account.version, account.state
    from unnest(cast(:ids as text[])) as wanted (id)
    left join lateral (
        select version, state from social_account
        where social_account.organization_id = :organization_id and social_account.id = wanted.id
    ) as account on true
""")
_FIND_OF_DRAFT = text("""
    select wanted.id, account.version, account.state
    from draft
    cross join lateral (select distinct target ->> 0 as id from jsonb_array_elements(draft.targets) as target) as wanted
    left join lateral (
        select version, state from social_account
        where social_account.organization_id = draft.organization_id and social_account.id = wanted.id
    ) as account on true
    where draft.organization_id = :organization_id and draft.id = :draft_id
""")
# One row per account: a statement cannot update a row twice. Ordered, so that batches wait for one another.
_SAVE = text("""
    insert into social_account (organization_id, id, version, state)
    select distinct on (organization_id, id) organization_id, id, version, state
    from unnest(cast(:organizations as text[]), cast(:ids as text[]), cast(:versions as bigint[]),
        cast(:states as text[])) as one (organization_id, id, version, state)
    order by organization_id, id, version desc
    on conflict (organization_id, id) do update set version = excluded.version, state = excluded.state
    where social_account.version < excluded.version
""")


async def find(
    connection: AsyncConnection, organization_id: str, account_ids: Collection[str]
) -> dict[str, Account | None]:
    """None where nothing is known."""
    if not account_ids:
        return {}
    names = {"organization_id": organization_id, "ids": sorted(account_ids)}
    return _found(organization_id, await connection.execute(_FIND, names))


async def find_of_draft(connection: AsyncConnection, organization_id: str, draft_id: str) -> dict[str, Account | None]:
    names = {"organization_id": organization_id, "draft_id": draft_id}
    return _found(organization_id, await connection.execute(_FIND_OF_DRAFT, names))


async def save(connection: AsyncConnection, accounts: Sequence[Account]) -> None:
    """Only what is newer than what is known."""
    if accounts:
        await connection.execute(
            _SAVE,
            {
                "organizations": [account.organization_id for account in accounts],
                "ids": [account.id for account in accounts],
                "versions": [account.version for account in accounts],
                "states": [account.state for account in accounts],
            },
        )


def _found(organization_id: str, rows: CursorResult[Any]) -> dict[str, Account | None]:
    return {row.id: _account(organization_id, row) if row.state else None for row in rows}


def _account(organization_id: str, row: Row[Any]) -> Account:
    return Account(organization_id=organization_id, id=row.id, version=row.version, state=AccountState(row.state))
