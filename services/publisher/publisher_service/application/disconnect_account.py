"""DisconnectAccount: erases the credentials of an account; after the answer no attempt begins with them.

An account that the provider has refused is disconnected by `disconnection`.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TypeVar

from publisher_service.adapters.postgres.accounts import lock_account, save_account
from publisher_service.adapters.postgres.connect_sessions import delete_sessions
from publisher_service.adapters.postgres.credentials import put_credential
from publisher_service.adapters.postgres.gates import set_connection
from publisher_service.adapters.postgres.holds import in_flight_jobs, lock_gate, raise_hold_epoch
from publisher_service.adapters.vault import Vault
from publisher_service.domain.account import (
    AccountState,
    Disconnection,
    SocialAccount,
    disconnected_by_request,
    require_account,
)
from publisher_service.domain.credentials import ERASED
from publisher_service.domain.refresh import erased as forgotten
from publisher_service.wire.accounts import account_disconnected
from servicekit.failpoints import declare, failpoint
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Call, RequestLedger
from servicekit.pg.outbox import Outbox

R = TypeVar("R")

_COMMITTED = declare("publisher.disconnect.committed")
_MOST_LISTED = 1000

_log = logging.getLogger(__name__)


class DisconnectAccount:
    def __init__(self, *, ledger: RequestLedger, outbox: Outbox, vault: Vault, on_changed: Callable[[], None]) -> None:
        """`on_changed` is called when posts in line have to show another reason."""
        self._ledger = ledger
        self._outbox = outbox
        self._vault = vault
        self._on_changed = on_changed

    async def __call__(self, call: Call[Disconnection, R], account_id: str, note: str) -> R:
        answer = await self._ledger.once(
            call, lambda tx, now: self._disconnect(tx, now, (call.organization_id, account_id), note)
        )
        await failpoint(_COMMITTED)
        return answer

    async def _disconnect(self, tx: Transaction, now: datetime, key: tuple[str, str], note: str) -> Disconnection:
        """Closes the gate under its lock, which every claim needs.

        A claim has either committed before, and its post is in the answer, or it sees the closed gate. The raised epoch
        has a claimed post whose request has not begun look at the gate once more. As in a settlement, the gate is
        locked before the account.
        """
        organization_id, account_id = key
        await lock_gate(tx.connection, key)
        known = require_account(await lock_account(tx.connection, *key), account_id)
        is_news = known.state != AccountState.DISCONNECTED
        gone = disconnected_by_request(known, note, now=now)
        # Sealed like any other token, so that no process takes it for one whose key is missing.
        erased = self._vault.seal(ERASED, organization_id=organization_id, account_id=account_id)
        if gone.credentials is not None:
            gone = replace(gone, credentials=forgotten(gone.credentials))
        await save_account(tx.connection, gone, erased)
        if gone.credentials is not None:
            await put_credential(tx.connection, key, gone.credentials, erased)
        await delete_sessions(tx.connection, key)
        # Before the pause of the gate is forgotten: behind a pause an attempt may yet begin.
        in_flight = await in_flight_jobs(tx.connection, key, now=now)
        await set_connection(tx.connection, *key, provider=gone.provider, connected=False, now=now)
        tx.before_commit(partial(raise_hold_epoch, tx.connection))
        if is_news:
            await self._outbox.append(tx, [account_disconnected(gone, note)], now=now)
            tx.after_commit(partial(_report, gone, len(in_flight)))
        tx.after_commit(self._on_changed)
        return Disconnection(account=gone, in_flight=tuple(in_flight[:_MOST_LISTED]))


def _report(account: SocialAccount, in_flight: int) -> None:
    """Logs it without the note, which may say anything."""
    fields = {
        "organization_id": account.organization_id,
        "social_account_id": account.id,
        "provider": account.provider,
        "reason": str(account.state_reason),
        "in_flight": in_flight,
    }
    _log.info("account disconnected", extra=fields)
