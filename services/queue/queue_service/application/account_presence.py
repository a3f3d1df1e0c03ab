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
        """Refuses an account that has no queue here and that Publisher does not know. It need not be connected."""
        async with self._database.read_session() as session:
            if await find_queues(session, {account}):
                return
        organization_id, social_account_id = account
        refusal = await self._check_accounts(organization_id, [social_account_id], connected=())
        if refusal and refusal.reason == "ACCOUNT_NOT_FOUND":
            raise refusal
