"""Checking that accounts can post, before a draft gets slots on them."""

import asyncio
from collections.abc import Collection, Sequence
from typing import Protocol

from servicekit.faults import Fault, NotFound, Refused


class Accounts(Protocol):
    async def is_connected(self, organization_id: str, social_account_id: str) -> bool: ...


class AccountCheck:
    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts

    async def __call__(
        self, organization_id: str, accounts: Sequence[str], *, connected: Collection[str]
    ) -> Refused | None:
        """Returns why a slot on the accounts is refused, if it is. Asks Publisher about those that are not `connected`.

        While Publisher is down nothing is refused: a post that cannot be sent is shown as BLOCKED.
        """
        unknown = [account for account in accounts if account not in connected]
        if not unknown:
            return None
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(self._refusal(organization_id, account)) for account in unknown]
        return next((refusal for each in asked if (refusal := each.result())), None)

    async def is_connected(self, organization_id: str, account: str) -> bool:
        """Asks Publisher; raises NotFound. While Publisher is down each account counts as connected."""
        try:
            return await self._accounts.is_connected(organization_id, account)
        except NotFound:
            metadata = {"social_account_id": account}
            raise NotFound("ACCOUNT_NOT_FOUND", f"account {account} does not exist", metadata=metadata) from None
        except Fault:
            return True

    async def _refusal(self, organization_id: str, account: str) -> Refused | None:
        try:
            if await self.is_connected(organization_id, account):
                return None
        except NotFound as absent:  # the call asks for the draft, which exists
            return Refused(absent.reason, absent.message, metadata=absent.metadata)
        metadata = {"social_account_id": account}
        return Refused("ACCOUNT_NOT_CONNECTED", f"account {account} is not connected", metadata=metadata)
