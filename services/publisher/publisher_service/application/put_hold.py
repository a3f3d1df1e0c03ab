"""PutHold: keeps posts from starting; after the answer, none starts but those that the answer lists."""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import TypeVar

from publisher_service.adapters.postgres.gates import add_gates
from publisher_service.adapters.postgres.holds import (
    in_flight_jobs,
    lock_gate,
    lock_hold,
    raise_hold_epoch,
    save_hold,
    set_held,
)
from publisher_service.adapters.postgres.wide_holds import lock_wide_holds, wide_in_flight
from publisher_service.domain.hold import Hold, Holding, Scope, WantedHold, put
from servicekit.failpoints import declare, failpoint
from servicekit.faults import InvalidField
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Call, RequestLedger

R = TypeVar("R")
_InFlight = tuple[tuple[str, ...], int]

_MOST_LISTED = 1000
_COMMITTED = declare("publisher.hold.committed")

_log = logging.getLogger(__name__)


class PutHold:
    def __init__(self, *, ledger: RequestLedger, providers: Sequence[str], on_changed: Callable[[], None]) -> None:
        """`providers` are the known ones; `on_changed` is called when posts in line have to show another reason."""
        self._ledger = ledger
        self._providers = providers
        self._on_changed = on_changed

    async def __call__(self, call: Call[Holding, R], wanted: WantedHold) -> R:
        answer = await self._ledger.once(call, lambda tx, now: self._put(tx, now, wanted))
        await failpoint(_COMMITTED)
        return answer

    async def _put(self, tx: Transaction, now: datetime, wanted: WantedHold) -> Holding:
        self._require_provider(wanted)
        known = await lock_hold(tx.connection, (wanted.organization_id, wanted.id), now=now)
        hold = put(known, wanted, now=now)
        is_new = hold is not known
        hold_posts = self._hold_account if wanted.scope is Scope.ACCOUNT else self._hold_widely
        in_flight, count = await hold_posts(tx, hold, is_new, now)
        if is_new:
            tx.before_commit(partial(raise_hold_epoch, tx.connection))
            tx.after_commit(partial(_report, hold, count))
        return Holding(hold=hold, in_flight=in_flight, in_flight_count=count)

    def _require_provider(self, wanted: WantedHold) -> None:
        """Refuses a hold of a misspelled provider, which would hold nothing while everybody relies on it."""
        if wanted.scope is Scope.PROVIDER and wanted.scope_id not in self._providers:
            known = ", ".join(self._providers)
            raise InvalidField("scope_id", f"unknown provider; the known ones are {known}", reason="UNKNOWN_PROVIDER")

    async def _hold_account(self, tx: Transaction, hold: Hold, is_new: bool, now: datetime) -> _InFlight:
        """Stores the hold under the lock of the account's gate, which every claim needs.

        A claim has either committed before, and its post is in the answer, or it sees the closed gate.
        """
        account = (hold.organization_id, hold.scope_id)
        await add_gates(tx.connection, [account])
        await lock_gate(tx.connection, account)
        if is_new:
            await save_hold(tx.connection, hold)
            await set_held(tx.connection, account, now=now)
            tx.after_commit(self._on_changed)
        in_flight = await in_flight_jobs(tx.connection, account, now=now)
        return tuple(in_flight[:_MOST_LISTED]), len(in_flight)

    async def _hold_widely(self, tx: Transaction, hold: Hold, is_new: bool, now: datetime) -> _InFlight:
        """Stores the hold under the lock that every claim shares. Nothing else changes: each claim looks for the hold.

        The line of an account stands still after one look at its first post.
        """
        if is_new:
            await lock_wide_holds(tx.connection)
            await save_hold(tx.connection, hold)
        return await wide_in_flight(tx.connection, hold, now=now, limit=_MOST_LISTED)


def _report(hold: Hold, in_flight: int) -> None:
    fields = {
        "organization_id": hold.organization_id,
        "scope": hold.scope,
        "scope_id": hold.scope_id,
        "hold_id": hold.id,
        "revision": hold.revision,
        "holder": hold.holder,
        "reason": hold.reason,
        "in_flight": in_flight,
    }
    _log.info("hold put", extra=fields)
