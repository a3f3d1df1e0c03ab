"""UpdateDestination: says whether posts go to a destination; those that waited for it go out when it is activated."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TypeVar

from publisher_service.adapters.postgres.accounts import get_account
from publisher_service.adapters.postgres.destinations import insert_destination, lock_destination, save_destination
from publisher_service.application.destination_log import report_deactivated
from publisher_service.domain.account import require_account
from publisher_service.domain.destination import (
    Deactivation,
    Destination,
    DestinationChange,
    DestinationState,
    activated,
    deactivated,
)
from servicekit.failpoints import declare, failpoint
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Call, RequestLedger

R = TypeVar("R")

_COMMITTED = declare("publisher.update_destination.committed")


class UpdateDestination:
    def __init__(self, *, ledger: RequestLedger, on_activated: Callable[[], None]) -> None:
        """`on_activated` is called when posts may wait that the destination has let go."""
        self._ledger = ledger
        self._on_activated = on_activated

    async def __call__(self, call: Call[Destination, R], wanted: DestinationChange) -> R:
        answer = await self._ledger.once(call, lambda tx, now: self._update(tx, now, wanted))
        await failpoint(_COMMITTED)
        return answer

    async def _update(self, tx: Transaction, now: datetime, wanted: DestinationChange) -> Destination:
        known = await lock_destination(tx.connection, wanted.organization_id, wanted.target)
        if wanted.state is DestinationState.ACTIVE:
            active = activated(known, wanted.target, etag=wanted.etag)
            # Even if it is active: the posts of an earlier activation may not all be released yet.
            await save_destination(tx.connection, active, releasing=True)
            tx.after_commit(self._on_activated)
            return active
        inactive = await self._deactivated(tx, known, wanted, now)
        if known is None or known.version < inactive.version:
            tx.after_commit(partial(report_deactivated, [_deactivation(inactive)]))
        return inactive

    async def _deactivated(
        self, tx: Transaction, known: Destination | None, wanted: DestinationChange, now: datetime
    ) -> Destination:
        inactive = deactivated(known, wanted, now=now)
        if known is None:
            account_id = wanted.target.social_account_id
            require_account(await get_account(tx.connection, wanted.organization_id, account_id), account_id)
            # An absent row cannot be locked: of concurrent first writes one inserts, and the others wait for it.
            if await insert_destination(tx.connection, inactive):
                return inactive
            known = await lock_destination(tx.connection, wanted.organization_id, wanted.target)
            inactive = deactivated(known, wanted, now=now)
        await save_destination(tx.connection, inactive, releasing=False)
        return inactive


def _deactivation(destination: Destination) -> Deactivation:
    target = destination.target
    return Deactivation(destination.organization_id, target.social_account_id, target.channel, destination.state_reason)
