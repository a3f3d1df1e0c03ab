"""ReleaseHold: ends a hold; posts that no other hold covers go out."""

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from publisher_service.adapters.postgres.holds import lock_hold
from publisher_service.application.ending import end_hold
from publisher_service.domain.hold import Hold, released
from servicekit.failpoints import declare, failpoint
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Call, RequestLedger

R = TypeVar("R")

_COMMITTED = declare("publisher.release.committed")


class ReleaseHold:
    def __init__(self, *, ledger: RequestLedger, on_released: Callable[[], None]) -> None:
        """`on_released` is called when a line may have its turn."""
        self._ledger = ledger
        self._on_released = on_released

    async def __call__(self, call: Call[Hold, R], hold_id: str, revision: int) -> R:
        answer = await self._ledger.once(
            call, lambda tx, now: self._release(tx, now, call.organization_id, hold_id, revision)
        )
        await failpoint(_COMMITTED)
        return answer

    async def _release(self, tx: Transaction, now: datetime, organization_id: str, hold_id: str, revision: int) -> Hold:
        known = await lock_hold(tx.connection, (organization_id, hold_id), now=now)
        hold = released(known, organization_id, hold_id, revision, now=now)
        if hold is known:
            return hold
        await end_hold(tx, hold, self._on_released, now=now)
        return hold
