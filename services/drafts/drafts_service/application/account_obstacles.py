"""Finds what keeps an account's targets from being sent: from events, or else by one question to Publisher."""

import asyncio
from collections.abc import Collection
from typing import Protocol

from drafts_service.adapters.postgres.accounts import find_obstacles, save_accounts
from drafts_service.domain.account import Account, Obstacles, absent, obstacle_of
from servicekit.faults import Unavailable
from servicekit.pg.database import Database


class AccountDirectory(Protocol):
    async def account(self, organization_id: str, account_id: str) -> Account | None:
        """Returns None if there is no such account; raises Unavailable if Publisher does not answer soon."""
        ...


class AccountObstacles:
    def __init__(self, *, database: Database, directory: AccountDirectory) -> None:
        self._database = database
        self._directory = directory

    async def find(self, organization_id: str, account_ids: Collection[str]) -> Obstacles:
        """Returns the obstacles of these accounts; leaves out an unknown one if Publisher does not answer in time."""
        async with self._database.read() as connection:
            known = await find_obstacles(connection, organization_id, account_ids)
        if unknown := set(account_ids) - known.keys():
            known |= await self._ask_publisher(organization_id, unknown)
        return known

    async def _ask_publisher(self, organization_id: str, account_ids: Collection[str]) -> Obstacles:
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(self._ask(organization_id, account_id)) for account_id in sorted(account_ids)]
        answered = [account for each in asked if (account := each.result())]
        async with self._database.statement() as connection:
            await save_accounts(connection, answered)
        return {account.id: obstacle_of(account.state) for account in answered}

    async def _ask(self, organization_id: str, account_id: str) -> Account | None:
        """Returns None if Publisher does not answer."""
        try:
            account = await self._directory.account(organization_id, account_id)
        except Unavailable:
            return None
        return account or absent(organization_id, account_id)
