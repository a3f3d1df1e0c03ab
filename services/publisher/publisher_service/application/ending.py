"""The end of a hold, by a call or by its time: what it kept back starts again."""

import logging
from collections.abc import Callable
from datetime import datetime
from functools import partial

from publisher_service.adapters.postgres.freeing import Ended, ask_to_free
from publisher_service.adapters.postgres.holds import lock_gate, save_hold, set_held
from publisher_service.adapters.postgres.wide_holds import lock_wide_holds
from publisher_service.domain.hold import Hold, Scope
from servicekit.pg.database import Transaction

_log = logging.getLogger(__name__)


async def end_hold(tx: Transaction, hold: Hold, on_ended: Callable[[], None], *, now: datetime) -> None:
    """Stores a hold that has ended. It is locked.

    The gate of an account opens at once. What a wider hold kept back is freed later, in pages. Such a hold ends under
    the lock that every claim shares, so that each claim that has seen it is committed, and its posts are found.
    """
    if hold.scope == Scope.ACCOUNT:
        account = (hold.organization_id, hold.scope_id)
        await save_hold(tx.connection, hold)
        await lock_gate(tx.connection, account)
        await set_held(tx.connection, account, now=now)
    elif hold.scope in set(Scope):
        await lock_wide_holds(tx.connection)
        await save_hold(tx.connection, hold)
        await ask_to_free(tx.connection, [Ended(hold.organization_id, Scope(hold.scope), hold.scope_id)], now=now)
    else:
        # The release of a hold that was never put, or of one that only a newer release knows.
        await save_hold(tx.connection, hold)
        return
    tx.after_commit(on_ended)
    tx.after_commit(partial(_report, hold))


def _report(hold: Hold) -> None:
    fields = {
        "organization_id": hold.organization_id,
        "scope": hold.scope,
        "scope_id": hold.scope_id,
        "hold_id": hold.id,
        "revision": hold.revision,
        "holder": hold.holder,
        "reason": hold.reason,
    }
    _log.info("hold released", extra=fields)
