"""KeepAccounts: stores Publisher's announcements of its accounts; the highest version of each account wins."""

from collections.abc import Sequence
from datetime import datetime

from drafts_service.adapters.postgres.accounts import save_accounts
from drafts_service.domain.account import Account
from servicekit.pg.database import Transaction


class KeepAccounts:
    async def __call__(self, tx: Transaction, accounts: Sequence[Account], now: datetime) -> None:
        await save_accounts(tx.connection, accounts)
