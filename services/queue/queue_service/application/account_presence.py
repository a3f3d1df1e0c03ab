"""Checking that an account exists, before its queue is changed."""

from queue_service.adapters.postgres.accounts import find_queues
from queue_service.application.account_check import AccountCheck
from queue_service.domain.account import AccountKey
from servicekit.pg.database import Database


class AccountPresence:
    def __init__(self, database: Database, check_accounts: AccountCheck) -> None:
        self._database = database
        self._check_accounts = check_accounts

    async def require(self, account: AccountKey) -> None:
        """Raises NotFound if the account has no queue here and Publisher does not know it. It need not be connected."""
        async with self._database.read_session() as session:
            if await find_queues(session, {account}):
                return
        await self._check_accounts.is_connected(*account)
