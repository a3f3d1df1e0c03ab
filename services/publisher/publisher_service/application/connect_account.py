"""Connects a social account with credentials that the provider has accepted, and opens its line."""

from typing import TypeVar

from publisher_service.adapters.postgres.accounts import get_account
from publisher_service.application.storing_account import StoringAccount
from publisher_service.domain.account import Connection, SocialAccount
from servicekit.failpoints import declare, failpoint
from servicekit.pg.database import Database
from servicekit.pg.ledger import Call, RequestLedger

R = TypeVar("R")

_VERIFIED = declare("publisher.connect.verified")
_COMMITTED = declare("publisher.connect.committed")


class ConnectAccount:
    def __init__(self, *, database: Database, ledger: RequestLedger, storing: StoringAccount) -> None:
        self._database = database
        self._ledger = ledger
        self._storing = storing

    async def __call__(self, call: Call[SocialAccount, R], wanted: Connection) -> R:
        provider = self._storing.provider_of(wanted.provider, wanted.channels)
        # A repeated call gets its answer even if the provider would refuse the credentials by now.
        async with self._database.read() as connection:
            if (answer := await self._ledger.look(connection, call)) is not None:
                return answer
            known = await get_account(connection, wanted.organization_id, wanted.account_id)
        ready = await self._storing.accepted(provider, wanted, known)
        await failpoint(_VERIFIED)
        answer = await self._ledger.once(call, lambda tx, now: self._storing.store(tx, now, ready, provider))
        await failpoint(_COMMITTED)
        return answer
