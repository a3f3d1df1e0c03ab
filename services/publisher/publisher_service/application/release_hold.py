"""ReleaseHold: ends a hold; posts that no other hold covers go out, the first of the line at once."""

import logging
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TypeVar

from publisher_service.adapters.postgres.holds import lock_gate, lock_hold, save_hold, set_held
from publisher_service.domain.hold import Hold, Scope, released
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Call, RequestLedger

R = TypeVar("R")

_log = logging.getLogger(__name__)


class ReleaseHold:
    def __init__(self, *, ledger: RequestLedger, on_released: Callable[[], None]) -> None:
        """`on_released` is called when a line may have its turn."""
        self._ledger = ledger
        self._on_released = on_released

    async def __call__(self, call: Call[Hold, R], hold_id: str, revision: int) -> R:
        return await self._ledger.once(
            call, lambda tx, now: self._release(tx, now, call.organization_id, hold_id, revision)
        )

    async def _release(self, tx: Transaction, now: datetime, organization_id: str, hold_id: str, revision: int) -> Hold:
        known = await lock_hold(tx.connection, (organization_id, hold_id), now=now)
        hold = released(known, organization_id, hold_id, revision, now=now)
        if hold is known:
            return hold
        await save_hold(tx.connection, hold)
        if hold.scope == Scope.ACCOUNT:
            account = (organization_id, hold.scope_id)
            await lock_gate(tx.connection, account)
            await set_held(tx.connection, account, now=now)
            tx.after_commit(self._on_released)
            tx.after_commit(partial(_report, hold))
        return hold


def _report(hold: Hold) -> None:
    fields = {
        "organization_id": hold.organization_id,
        "social_account_id": hold.scope_id,
        "hold_id": hold.id,
        "revision": hold.revision,
        "holder": hold.holder,
        "reason": hold.reason,
    }
    _log.info("hold of account released", extra=fields)
