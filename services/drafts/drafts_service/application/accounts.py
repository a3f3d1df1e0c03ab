"""What is in the way of targets because of their accounts: known from events, else asked of Publisher once."""

import asyncio
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from drafts_service.adapters.postgres import accounts as store
from drafts_service.domain.account import Account, Obstacles, absent, obstacle_of
from servicekit.faults import Unavailable
from servicekit.pg.database import Database, Transaction


class Directory(Protocol):
    async def account(self, organization_id: str, account_id: str) -> Account | None:
        """None: there is no such account. Raises Unavailable when there is no answer in a short time."""
        ...


class Accounts:
    def __init__(self, *, database: Database, directory: Directory) -> None:
        self._database = database
        self._directory = directory

    async def obstacles(self, organization_id: str, account_ids: Collection[str]) -> Obstacles:
        async with self._database.read() as connection:
            known = await store.find(connection, organization_id, account_ids)
        if strange := set(account_ids) - known.keys():
            known |= await self._learned(organization_id, strange)
        return known

    async def _learned(self, organization_id: str, strange: Collection[str]) -> Obstacles:
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(self._ask(organization_id, account_id)) for account_id in sorted(strange)]
        learned = [account for each in asked if (account := each.result())]
        async with self._database.statement() as connection:
            await store.save(connection, learned)
        return {account.id: obstacle_of(account.state) for account in learned}

    async def _ask(self, organization_id: str, account_id: str) -> Account | None:
        """None without an answer."""
        try:
            account = await self._directory.account(organization_id, account_id)
        except Unavailable:
            return None
        return account or absent(organization_id, account_id)


class KeepAccounts:
    """Takes in what Publisher announces of its accounts; the highest version of each counts."""

    async def __call__(self, tx: Transaction, accounts: Sequence[Account], now: datetime) -> None:
        await store.save(tx.connection, accounts)
