"""GetAccount and ListAccounts: social accounts as they are now."""

from collections.abc import Sequence

from publisher_service.adapters.postgres.accounts import get_account, list_accounts
from publisher_service.domain.account import AccountFilter, SocialAccount, require_account
from servicekit.pg.database import Database


class ReadAccounts:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, organization_id: str, account_id: str) -> SocialAccount:
        async with self._database.read() as connection:
            return require_account(await get_account(connection, organization_id, account_id), account_id)

    async def list(self, wanted: AccountFilter, *, after: str, limit: int) -> Sequence[SocialAccount]:
        """Lists the accounts behind the id `after`."""
        async with self._database.read() as connection:
            return await list_accounts(connection, wanted, after=after, limit=limit)
