"""The loop that tells Publisher of pauses and resumptions that it has not stored yet."""

import logging

from queue_service.adapters.postgres import pauses
from queue_service.application.hold_keeper import HoldKeeper
from queue_service.domain.account import AccountKey
from servicekit.faults import Unavailable
from servicekit.pg.database import Database

_AT_ONCE = 100

_log = logging.getLogger(__name__)


class CompleteHolds:
    def __init__(self, *, database: Database, keeper: HoldKeeper) -> None:
        self._database = database
        self._keeper = keeper

    async def __call__(self) -> bool:
        """Tries each pending hold once. Returns False: Publisher may be down."""
        after: AccountKey = ("", "")
        while True:
            async with self._database.read_session() as session:
                pending = await pauses.find_pending_holds(session, after, limit=_AT_ONCE)
            if not pending:
                return False
            after = pending[-1].account
            try:
                for hold in pending:
                    await self._keeper.store(hold)
            except Unavailable as unanswered:
                _log.warning("holds of accounts are pending: %s", unanswered.message)
                return False
