"""Disconnects an account whose credentials a provider has refused, to a send or to a look."""

import logging
from datetime import datetime
from functools import partial

from publisher_service.adapters.postgres.accounts import credentials_of, lock_account, save_account
from publisher_service.adapters.postgres.gates import set_connection
from publisher_service.adapters.postgres.holds import lock_gate
from publisher_service.domain.account import AccountReason, AccountState, SocialAccount, disconnected
from publisher_service.wire.accounts import account_disconnected
from servicekit.pg.database import Transaction
from servicekit.pg.outbox import Outbox

_log = logging.getLogger(__name__)


async def disconnect(
    tx: Transaction,
    outbox: Outbox,
    account_key: tuple[str, str],
    *,
    credentials: bytes,
    error_message: str,
    now: datetime,
) -> None:
    """Disconnects the account, unless it has other credentials by now than the refused ones."""
    organization_id, account_id = account_key
    # Before the account, as everywhere; a settlement has it already, a look and a preparation do not.
    await lock_gate(tx.connection, account_key)
    account = await lock_account(tx.connection, organization_id, account_id)
    if account is None or account.state == AccountState.DISCONNECTED:
        return
    *_, current = await credentials_of(tx.connection, organization_id, account_id)
    if current != credentials:
        # Connected again while the request was out, with other credentials than the refused ones.
        await set_connection(
            tx.connection, organization_id, account_id, provider=account.provider, connected=True, now=now
        )
        return
    gone = disconnected(account, AccountReason.CREDENTIALS_REFUSED, error_message, now=now)
    await save_account(tx.connection, gone)
    await set_connection(
        tx.connection, organization_id, account_id, provider=account.provider, connected=False, now=now
    )
    await outbox.append(tx, [account_disconnected(gone, error_message)], now=now)
    tx.after_commit(partial(_report, gone, error_message))


def _report(account: SocialAccount, error_message: str) -> None:
    fields = {
        "organization_id": account.organization_id,
        "social_account_id": account.id,
        "provider": account.provider,
        "reason": str(account.state_reason),
        "error": error_message,
    }
    _log.warning("account disconnected", extra=fields)
