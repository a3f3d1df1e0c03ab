"""What is in the way of targets because of their accounts: known from events, else asked of Publisher."""

import asyncio
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from drafts_service.adapters.postgres import accounts as store
from drafts_service.domain.account import Account, Obstacles, obstacle_of
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
        return await self._completed(organization_id, known)

    async def obstacles_of_draft(self, organization_id: str, draft_id: str) -> Obstacles:
        """For the targets that the draft has now."""
        async with self._database.read() as connection:
            known = await store.find_of_draft(connection, organization_id, draft_id)
        return await self._completed(organization_id, known)

    async def _completed(self, organization_id: str, known: dict[str, Account | None]) -> Obstacles:
        strange = [account_id for account_id, account in known.items() if account is None]
        if not strange:
            return {account_id: obstacle_of(account) for account_id, account in known.items()}
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(self._ask(organization_id, account_id)) for account_id in strange]
        answers = {account_id: account for each in asked for account_id, account in each.result().items()}
        async with self._database.read() as connection:
            await store.save(connection, [account for account in answers.values() if account])
        believed = {account_id: account for account_id, account in known.items() if account} | answers
        return {account_id: obstacle_of(account) for account_id, account in believed.items()}

    async def _ask(self, organization_id: str, account_id: str) -> dict[str, Account | None]:
        """Empty without an answer."""
        try:
            return {account_id: await self._directory.account(organization_id, account_id)}
        except Unavailable:
            return {}


class KeepAccounts:
    """Takes in what Publisher announces of its accounts; the highest version of each counts."""

    async def __call__(self, tx: Transaction, accounts: Sequence[Account], now: datetime) -> None:
        await store.save(tx.connection, accounts)
