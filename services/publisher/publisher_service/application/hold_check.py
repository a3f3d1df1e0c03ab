"""The last look at holds, just before a request: a post that was put on hold after its claim is not sent.

It costs a batch one small read. A single row counts the holds that were put. While its number is the same as before the
claim, the claim has seen every hold; only after a change are the holds of each post looked up. A disconnection by
request counts like a hold.
"""

import asyncio
import math

from publisher_service.adapters.postgres.accounts import is_connected_with
from publisher_service.adapters.postgres.holds import hold_epoch
from publisher_service.adapters.postgres.wide_holds import covering_hold
from publisher_service.domain.claim import Claimed
from publisher_service.domain.post_job import Reason
from servicekit.clock import Clock
from servicekit.pg.database import Database

# A read counts for this long. Most posts of a batch begin within that of their claim, and share the read behind it.
_FRESH = 0.2


class HoldCheck:
    def __init__(self, *, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._epoch: int | None = None
        # Monotonic times: every read since the first has seen the same number; the last read began at the second.
        self._same_since = math.inf
        self._read = -math.inf
        self._reading = asyncio.Lock()

    def rules_out(self, claim_started: float) -> bool:
        """Returns whether it is known that nothing was put on hold since this monotonic time, when a claim began.

        Without an await: in a batch nearly every post gets its answer here.
        """
        return self._same_since <= claim_started < self._read and self._read > self._clock.monotonic() - _FRESH

    async def reason(self, claimed: Claimed, *, claim_started: float) -> Reason | None:
        """Returns the reason if the post was put on hold, or its account disconnected, since its claim began."""
        await self.look(claim_started)
        if self._same_since <= claim_started:
            return None
        async with self._database.session() as session:
            # It may be connected again by now: the claim may have read the credentials that were erased in between.
            if not await is_connected_with(session, claimed.job.account_key, claimed.credentials):
                return Reason.ACCOUNT_NOT_CONNECTED
            return await covering_hold(session, claimed.job, claimed.provider)

    async def look(self, claim_started: float) -> None:
        """Reads the number of holds, unless it was read just now and after that claim had begun."""
        asked = self._clock.monotonic()
        if self._is_fresh(claim_started, asked):
            return
        async with self._reading:
            if self._is_fresh(claim_started, asked):
                return
            began = self._clock.monotonic()
            async with self._database.session() as session:
                epoch = await hold_epoch(session)
            if epoch != self._epoch:
                # Not when it began: a hold may have been put between that and the answer.
                self._epoch, self._same_since = epoch, self._clock.monotonic()
            self._read = began

    def _is_fresh(self, claim_started: float, asked: float) -> bool:
        return self._read > claim_started and self._read > asked - _FRESH
