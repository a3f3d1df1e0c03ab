"""The loop that tells Publisher of pauses and resumptions that it has not stored yet."""

import logging

from queue_service.adapters.postgres import pauses
from queue_service.application.hold_keeper import HoldKeeper
from queue_service.domain.account import AccountKey
from queue_service.domain.hold import Hold
from servicekit.faults import Unavailable
from servicekit.pg.database import Database

_AT_ONCE = 100
_FAILURES = 3
"""So many holds without an answer mean that Publisher is down: the others are not tried."""

_log = logging.getLogger(__name__)


class CompleteHolds:
    def __init__(self, *, database: Database, keeper: HoldKeeper) -> None:
        self._database = database
        self._keeper = keeper

    async def __call__(self) -> bool:
        """Tries each pending hold once. Returns False: Publisher may be down."""
        after: AccountKey = ("", "")
        failures = 0
        while True:
            async with self._database.read_session() as session:
                pending = await pauses.find_pending_holds(session, after, limit=_AT_ONCE)
            if not pending:
                return False
            after = pending[-1].account
            for hold in pending:
                failures += not await self._store(hold)
                if failures == _FAILURES:
                    return False

    async def _store(self, hold: Hold) -> bool:
        try:
            await self._keeper.store(hold)
        except Unavailable as unanswered:
            account, organization = hold.social_account_id, hold.organization_id
            _log.warning("a hold of account %s of %s is pending: %s", account, organization, unanswered.message)
            return False
        return True
