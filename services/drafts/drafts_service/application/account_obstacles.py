"""Finds what keeps an account's targets from being sent: from events, or else by one question to Publisher."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from drafts_service.adapters.postgres.accounts import find_accounts, save_accounts
from drafts_service.domain.account import (
    Account,
    AccountKey,
    KnownAccount,
    Obstacle,
    Obstacles,
    Providers,
    absent,
    obstacle_of,
)
from servicekit.faults import Unavailable
from servicekit.gathering import Gathering
from servicekit.pg.database import Database
from servicekit.run import is_transient

_Asked = tuple[str, Collection[str]]
"""An organization, and ids of its accounts."""

KnownAccounts = Mapping[str, KnownAccount]


class AccountDirectory(Protocol):
    async def account(self, organization_id: str, account_id: str) -> Account | None:
        """Returns None if there is no such account; raises Unavailable if Publisher does not answer soon."""
        ...


_MOST_SEEN = 20_000
"""Accounts of which a process remembers that the table has them, about 4 MB."""


class AccountObstacles:
    """Callers that ask at the same time are answered by one query."""

    def __init__(self, *, database: Database, directory: AccountDirectory) -> None:
        self._database = database
        self._directory = directory
        self._known: Gathering[_Asked, KnownAccounts] = Gathering(
            self._find_known, share=lambda asked: asked[0], is_shared=lambda _asked, error: is_transient(error)
        )
        # By account, its provider, which never changes; of an account that does not exist it is empty.
        self._seen: dict[AccountKey, str] = {}

    async def find(self, organization_id: str, account_ids: Collection[str]) -> Obstacles:
        """Returns the obstacles of these accounts; leaves out an unknown one if Publisher does not answer in time."""
        known = await self._known((organization_id, account_ids))
        found = await self._with_unknown(organization_id, known, set(account_ids) - known.keys())
        return {account_id: account.obstacle for account_id, account in found.items()}

    async def learn(self, organization_id: str, account_ids: Collection[str]) -> Providers:
        """Asks Publisher about those that no event has named, so that a transaction can find them.

        Returns the providers as far as they are known. Rows of accounts are never deleted, so that those seen once
        need no query.
        """
        unseen = [each for each in account_ids if not self._seen.get((organization_id, each))]
        if unseen:
            known = await self._known((organization_id, unseen))
            # Of one that an earlier release has stored, the provider is still to be asked for.
            unknown = {each for each in unseen if each not in known or _lacks_provider(known[each])}
            found = await self._with_unknown(organization_id, known, unknown)
            if len(self._seen) > _MOST_SEEN:
                self._seen.clear()
            self._seen.update(((organization_id, each), account.provider) for each, account in found.items())
        return {each: provider for each in account_ids if (provider := self._seen.get((organization_id, each)))}

    async def _with_unknown(
        self, organization_id: str, known: KnownAccounts, unknown: Collection[str]
    ) -> KnownAccounts:
        return {**known, **await self._ask_publisher(organization_id, unknown)} if unknown else known

    async def _find_known(self, asked: Sequence[_Asked]) -> Sequence[KnownAccounts]:
        keys = {(organization_id, account_id) for organization_id, ids in asked for account_id in ids}
        async with self._database.read_session() as session:
            known = await find_accounts(session, keys)
        return [
            {each: known[organization_id, each] for each in ids if (organization_id, each) in known}
            for organization_id, ids in asked
        ]

    async def _ask_publisher(self, organization_id: str, account_ids: Collection[str]) -> KnownAccounts:
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(self._ask(organization_id, account_id)) for account_id in sorted(account_ids)]
        answered = [account for each in asked if (account := each.result())]
        async with self._database.statement() as connection:
            await save_accounts(connection, answered)
        return {
            account.id: KnownAccount(obstacle=obstacle_of(account.state), provider=account.provider)
            for account in answered
        }

    async def _ask(self, organization_id: str, account_id: str) -> Account | None:
        """Returns None if Publisher does not answer."""
        try:
            account = await self._directory.account(organization_id, account_id)
        except Unavailable:
            return None
        return account or absent(organization_id, account_id)


def _lacks_provider(account: KnownAccount) -> bool:
    return not account.provider and account.obstacle is not Obstacle.ACCOUNT_NOT_FOUND
