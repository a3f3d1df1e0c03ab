"""GetAccount, ListAccounts: social accounts as they are now."""

from collections.abc import Sequence

from publisher_service.adapters.postgres import accounts
from publisher_service.adapters.postgres.accounts import AccountFilter
from publisher_service.domain.account import SocialAccount, found
from servicekit.pg.database import Database


class ReadAccounts:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, organization_id: str, account_id: str) -> SocialAccount:
        async with self._database.read() as connection:
            return found(await accounts.get(connection, organization_id, account_id), account_id)

    async def list(self, wanted: AccountFilter, *, after: str, limit: int) -> Sequence[SocialAccount]:
        """Those behind the account `after`."""
        async with self._database.read() as connection:
            return await accounts.page(connection, wanted, after=after, limit=limit)
