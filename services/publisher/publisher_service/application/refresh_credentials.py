"""RefreshCredentials: has the credentials of an account refreshed now, and waits for that.

The loop asks the provider, not the call: a caller that gives up must not take the answer with it.
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from publisher_service.adapters.postgres.accounts import get_account, lock_account
from publisher_service.adapters.postgres.credentials import save_credential
from publisher_service.adapters.postgres.holds import lock_gate
from publisher_service.adapters.postgres.safe_modes import active_safe_mode
from publisher_service.domain.account import AccountState, SocialAccount, require_account
from publisher_service.domain.refresh import CredentialsState, asked_now, is_settled
from servicekit.clock import Clock
from servicekit.failpoints import declare, failpoint
from servicekit.faults import Refused, Unavailable
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger import Call, RequestLedger

R = TypeVar("R")

_ASKED = declare("publisher.refresh_credentials.asked")
_COMMITTED = declare("publisher.refresh_credentials.committed")
_PERIOD = 0.1
# For a refresh that is in flight, and one after it.
_PATIENCE = timedelta(seconds=45)
_RETRY = timedelta(seconds=5)


class RefreshCredentials:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        system: Clock,
        ledger: RequestLedger,
        wake: Callable[[], None],
        patience: timedelta = _PATIENCE,
    ) -> None:
        """`wake` begins the look at credentials that are due."""
        self._database = database
        self._clock = clock
        self._system = system
        self._ledger = ledger
        self._wake = wake
        self._patience = patience.total_seconds()

    async def __call__(self, call: Call[SocialAccount, R], account_id: str) -> R:
        async with self._database.read() as connection:
            if (answer := await self._ledger.look(connection, call)) is not None:
                return answer
        key = (call.organization_id, account_id)
        asked = await self._database.run(lambda tx: self._ask(tx, key))
        await failpoint(_ASKED)
        self._wake()
        await self._settled(key, asked)
        answer = await self._ledger.once(call, lambda tx, now: _shown(tx, key))
        await failpoint(_COMMITTED)
        return answer

    async def _ask(self, tx: Transaction, key: tuple[str, str]) -> CredentialsState:
        """Makes a refresh due, unless one is in flight."""
        now = await self._clock.now(tx.connection)
        # Before the account, as everywhere.
        await lock_gate(tx.connection, key)
        account = require_account(await lock_account(tx.connection, *key), key[1])
        state = _refreshable(account)
        if await active_safe_mode(tx) is not None:
            raise Refused("IN_SAFE_MODE", "the database is, or may be, an older copy: nothing is refreshed")
        asked = asked_now(state, now=now)
        await save_credential(tx.connection, key, asked)
        return asked

    async def _settled(self, key: tuple[str, str], asked: CredentialsState) -> None:
        """Waits for the next generation. Raises what the provider said if there is none."""
        end = self._system.monotonic() + self._patience
        while self._system.monotonic() < end:
            await asyncio.sleep(_PERIOD)
            async with self._database.read() as connection:
                account = require_account(await get_account(connection, *key), key[1])
            now = account.credentials
            if now is None or now.generation > asked.generation:
                return
            if is_settled(now, asked):
                _raise(now)
        raise Unavailable("PROVIDER_UNAVAILABLE", "the refresh has not ended yet; it goes on", retry_after=_RETRY)


async def _shown(tx: Transaction, key: tuple[str, str]) -> SocialAccount:
    return require_account(await get_account(tx.connection, *key), key[1])


def _refreshable(account: SocialAccount) -> CredentialsState:
    if account.state != AccountState.CONNECTED:
        raise Refused("ACCOUNT_NOT_CONNECTED", "the account is not connected; connect it again")
    state = account.credentials
    if state is None or not state.lifetime.is_refreshable:
        raise Refused("NOT_REFRESHABLE", "nothing is stored that could refresh the credentials; connect the account")
    if state.is_refused:
        _raise(state)
    return state


def _raise(state: CredentialsState) -> None:
    if state.is_refused:
        raise Refused("REFRESH_REFUSED", f"{state.provider} refuses to refresh the credentials: {state.error}")
    raise Unavailable(
        "PROVIDER_UNAVAILABLE", f"{state.provider} did not refresh the credentials: {state.error}", retry_after=_RETRY
    )
