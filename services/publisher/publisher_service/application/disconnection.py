"""Answers the refusal of credentials: has them refreshed, or disconnects their account."""

import logging
from dataclasses import replace
from datetime import datetime
from functools import partial

from publisher_service.adapters.postgres.accounts import credentials_of, lock_account, save_account
from publisher_service.adapters.postgres.credentials import save_credential
from publisher_service.adapters.postgres.gates import set_connection
from publisher_service.adapters.postgres.holds import lock_gate
from publisher_service.domain.account import AccountReason, AccountState, SocialAccount, disconnected, refreshing
from publisher_service.domain.refresh import at_rest, forced, may_be_forced
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
    """Answers the refusal of credentials, to a send, to a look or to a preparation.

    If the account has other ones by now, its line goes on with those. If they can be refreshed, its posts wait for
    that, once. Else the account is disconnected.
    """
    organization_id, account_id = account_key
    # Before the account, as everywhere; a settlement has it already, a look and a preparation do not.
    await lock_gate(tx.connection, account_key)
    account = await lock_account(tx.connection, organization_id, account_id)
    if account is None or account.state == AccountState.DISCONNECTED:
        return
    life = account.credentials
    *_, current = await credentials_of(tx.connection, organization_id, account_id)
    if current != credentials:
        # Refreshed, or connected again, while the request was out. Those may have been refused in turn.
        is_open = life is None or not life.is_urgent
        await set_connection(
            tx.connection, organization_id, account_id, provider=account.provider, connected=is_open, now=now
        )
    elif life is not None and life.is_urgent:
        return
    elif life is not None and may_be_forced(life, now=now):
        waiting = refreshing(account, error_message, now=now)
        await save_account(tx.connection, waiting)
        await save_credential(tx.connection, account_key, forced(life, now=now))
        await set_connection(
            tx.connection, organization_id, account_id, provider=account.provider, connected=False, now=now
        )
        tx.after_commit(partial(_report_refreshing, waiting, error_message))
    else:
        await end_connection(tx, outbox, account, AccountReason.CREDENTIALS_REFUSED, error_message, now=now)


async def end_connection(
    tx: Transaction, outbox: Outbox, account: SocialAccount, reason: AccountReason, error_message: str, *, now: datetime
) -> None:
    """Disconnects an account that this transaction has locked, and its gate before it."""
    key = (account.organization_id, account.id)
    life = None if account.credentials is None else at_rest(account.credentials)
    gone = replace(disconnected(account, reason, error_message, now=now), credentials=life)
    await save_account(tx.connection, gone)
    if life is not None:
        await save_credential(tx.connection, key, life)
    await set_connection(tx.connection, *key, provider=account.provider, connected=False, now=now)
    await outbox.append(tx, [account_disconnected(gone, error_message)], now=now)
    tx.after_commit(partial(_report, gone, error_message))


def _report(account: SocialAccount, error_message: str) -> None:
    _log.warning("account disconnected", extra=_fields(account, error_message))


def _report_refreshing(account: SocialAccount, error_message: str) -> None:
    _log.info("account waits for a refresh", extra=_fields(account, error_message))


def _fields(account: SocialAccount, error_message: str) -> dict[str, str]:
    return {
        "organization_id": account.organization_id,
        "social_account_id": account.id,
        "provider": account.provider,
        "reason": str(account.state_reason),
        "error": error_message,
    }
