"""Records what came of a look at credentials that were due, inside the transaction of its caller."""

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from publisher_service.adapters.postgres.accounts import lock_account, save_account
from publisher_service.adapters.postgres.credentials import (
    LockedCredentials,
    end_refresh,
    lock_credentials,
    save_credential,
    save_refreshed,
    was_asked_before,
)
from publisher_service.adapters.postgres.gates import set_connection
from publisher_service.adapters.vault import CredentialsUnreadable, Vault
from publisher_service.application.disconnection import end_connection
from publisher_service.domain.account import AccountReason, AccountState, SocialAccount, renewed
from publisher_service.domain.refresh import (
    Due,
    JournalState,
    RefreshDelayed,
    Refreshed,
    RefreshRefused,
    Step,
    at_rest,
    delayed,
    erased,
    is_failing,
    looked_at,
    refreshed,
    refused,
    step_at,
    warned,
)
from publisher_service.wire.accounts import account_expires_soon
from servicekit.pg.database import Transaction
from servicekit.pg.outbox import Outbox

_log = logging.getLogger(__name__)

_SUPERSEDED = "the account was connected or disconnected meanwhile"
_LOST = "the answer to an earlier refresh was lost, and the provider takes a refresh token once"


class RecordingRefresh:
    def __init__(
        self, *, outbox: Outbox, vault: Vault, on_opened: Callable[[], None], draw: Callable[[], float]
    ) -> None:
        """`on_opened` is called when posts go on that have waited for the refresh."""
        self._outbox = outbox
        self._vault = vault
        self._on_opened = on_opened
        self._draw = draw

    async def done(self, tx: Transaction, due: Due, answer: Refreshed, *, ahead: timedelta, now: datetime) -> None:
        """Stores the next generation. An answer counts however late it comes, unless it is about older credentials."""
        locked = await self._locked(tx, due)
        if not self._is_about(due, locked):
            await end_refresh(tx.connection, due, JournalState.DONE, _SUPERSEDED, now=now)
            return
        state = refreshed(locked.state, answer, account=due.key, ahead=ahead, asked=due.take_time, now=now)
        if locked.account_state != AccountState.CONNECTED:
            # The pair is kept all the same: the provider may not take the former one again.
            state = at_rest(state)
        organization_id, account_id = due.key
        sealed = self._vault.seal(answer.credentials, organization_id=organization_id, account_id=account_id)
        await save_refreshed(tx.connection, due, state, sealed=sealed, replaced=locked.sealed, now=now)
        if locked.state.is_urgent:
            await self._open(tx, due, now)

    async def refused(
        self, tx: Transaction, due: Due, answer: RefreshRefused, *, is_rotating: bool, now: datetime
    ) -> None:
        """Disconnects an account whose access token is refused, too; of any other somebody is warned."""
        message = answer.message
        if is_rotating and await was_asked_before(tx.connection, due):
            message = f"{message} ({_LOST})"
        await end_refresh(tx.connection, due, JournalState.REFUSED, message, now=now)
        locked = await self._locked(tx, due)
        if not self._is_last(due, locked):
            return
        if not locked.is_known:
            # Another release has connected the account, without what a refresh needs.
            await save_credential(tx.connection, due.key, erased(locked.state))
            return
        state = refused(locked.state, replace(answer, message=message), now=now)
        if not locked.state.is_urgent:
            await save_credential(tx.connection, due.key, state)
            tx.after_commit(partial(_report_refused, due, message))
            return
        account = await self._account(tx, due)
        over = replace(account, credentials=state)
        await end_connection(tx, self._outbox, over, AccountReason.CREDENTIALS_REFUSED, message, now=now)

    async def delayed(self, tx: Transaction, due: Due, answer: RefreshDelayed, *, now: datetime) -> None:
        await end_refresh(tx.connection, due, JournalState.FAILED, answer.message, now=now)
        locked = await self._locked(tx, due)
        if self._is_last(due, locked):
            await save_credential(tx.connection, due.key, delayed(locked.state, answer, now=now, draw=self._draw()))

    async def looked(self, tx: Transaction, due: Due, *, now: datetime) -> None:
        """Warns of the end of credentials, or of a refresh that keeps failing, or disconnects their account."""
        locked = await self._locked(tx, due)
        if not self._is_last(due, locked):
            return
        step = step_at(locked.state, now)
        if locked.account_state != AccountState.CONNECTED:
            await save_credential(tx.connection, due.key, at_rest(locked.state))
        elif not locked.is_known:
            await save_credential(tx.connection, due.key, erased(locked.state))
        elif step is Step.EXPIRE:
            account = await self._account(tx, due)
            message = locked.state.error or "the credentials have expired"
            await end_connection(tx, self._outbox, account, AccountReason.CREDENTIALS_EXPIRED, message, now=now)
        elif step is Step.WARN:
            await self._warn(tx, due, now)
        else:
            await save_credential(tx.connection, due.key, looked_at(locked.state))

    async def _warn(self, tx: Transaction, due: Due, now: datetime) -> None:
        known = await self._account(tx, due)
        assert known.credentials is not None
        state = warned(known.credentials)
        account = replace(known, version=known.version + 1, update_time=now, credentials=state)
        await save_account(tx.connection, account)
        await save_credential(tx.connection, due.key, state)
        announced = account_expires_soon(account, state.end_time, is_failing=is_failing(state, now=now))
        await self._outbox.append(tx, [announced], now=now)

    async def _open(self, tx: Transaction, due: Due, now: datetime) -> None:
        account = await self._account(tx, due)
        if account.state != AccountState.CONNECTED:
            return
        await save_account(tx.connection, renewed(account, now=now))
        await set_connection(tx.connection, *due.key, provider=account.provider, connected=True, now=now)
        tx.after_commit(self._on_opened)

    async def _account(self, tx: Transaction, due: Due) -> SocialAccount:
        account = await lock_account(tx.connection, *due.key)
        assert account is not None, "an account is never deleted"
        return account

    async def _locked(self, tx: Transaction, due: Due) -> LockedCredentials:
        locked = await lock_credentials(tx.connection, due.key)
        assert locked is not None, "the rows of an account are never deleted"
        return locked

    def _is_last(self, due: Due, locked: LockedCredentials) -> bool:
        """Returns whether no other process has taken the credentials since."""
        return self._is_about(due, locked) and locked.state.number == due.state.number

    def _is_about(self, due: Due, locked: LockedCredentials) -> bool:
        """Returns whether the account still has the credentials that were taken."""
        if locked.state.generation != due.state.generation:
            return False
        if locked.sealed == due.sealed:
            return True
        organization_id, account_id = due.key
        names = {"organization_id": organization_id, "account_id": account_id}
        try:
            return self._vault.open(locked.sealed, **names) == self._vault.open(due.sealed, **names)
        except CredentialsUnreadable:
            return False


def _report_refused(due: Due, message: str) -> None:
    fields = {
        "organization_id": due.organization_id,
        "social_account_id": due.account_id,
        "provider": due.state.provider,
        "error": message,
    }
    _log.warning("credentials are not refreshed any more", extra=fields)
