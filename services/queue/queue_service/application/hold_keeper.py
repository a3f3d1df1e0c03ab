"""Telling Publisher that a queue was paused or resumed, and taking back what it has of a paused one.

The queue's row is changed first; `hold_revision` orders pauses and resumptions, so that a release that overtakes a put,
or the other way round, does no harm. Until Publisher has stored the last one, the queue's hold is pending: the call is
repeated, or `CompleteHolds` completes it. Publisher may know a revision that the queue does not: an operator has put or
released its hold, or Queue's database was restored from a backup. Then the last pause or resumption gets a newer one.
"""

import logging
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from queue_service.adapters.postgres import pauses
from queue_service.application.take_back import TakeBack
from queue_service.domain.hold import Hold, HoldSuperseded
from queue_service.domain.take_back import CancelAnswer, SlotPost
from servicekit import failpoints
from servicekit.failpoints import failpoint
from servicekit.faults import Unavailable
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction

STORED = failpoints.declare("queue.hold.stored")

_ATTEMPTS = 3

_log = logging.getLogger(__name__)


class AccountHolder(Protocol):
    """Publisher; see `queue_service.adapters.publisher_client`."""

    async def put_hold(self, hold: Hold) -> tuple[str, ...]: ...

    async def release_hold(self, hold: Hold) -> None: ...


class HoldKeeper:
    def __init__(
        self, *, database: Database, clock: DatabaseClock, publisher: AccountHolder, take_back: TakeBack
    ) -> None:
        self._database = database
        self._clock = clock
        self._publisher = publisher
        self._take_back = take_back

    async def store(self, hold: Hold) -> tuple[str, ...]:
        """Has Publisher store the hold or its release; raises `HOLD_PENDING` if it does not answer.

        Returns the posts in flight that a hold could not stop. What has not started comes back; if Publisher does not
        answer that, it comes back later, and does not start before.
        """
        last: Hold | None = hold
        for _ in range(_ATTEMPTS):
            if last is None:
                return ()  # a later pause or resumption counts
            try:
                in_flight = await self._tell(last)
            except HoldSuperseded as newer:
                last = await self._database.run(partial(self._overtake, last, newer.revision))
                continue
            await failpoint(STORED)
            if posts := await self._database.run(partial(self._mark_stored, last)):
                await self._get_back(posts)
            return in_flight
        raise Unavailable("HOLD_PENDING", "the hold is being changed elsewhere; repeat the request")

    async def _tell(self, hold: Hold) -> tuple[str, ...]:
        if hold.in_force:
            return await self._publisher.put_hold(hold)
        await self._publisher.release_hold(hold)
        return ()

    async def _overtake(self, hold: Hold, known: int, tx: Transaction) -> Hold | None:
        return await pauses.overtake(tx, hold, known)

    async def _mark_stored(self, hold: Hold, tx: Transaction) -> list[SlotPost]:
        """Returns the posts to take back from Publisher."""
        is_paused = await pauses.mark_stored(tx, hold)
        if not is_paused or not hold.in_force:
            return []
        return await self._take_back.intend_return(tx, hold.account, now=await self._clock.now(tx.connection))

    async def _get_back(self, posts: Sequence[SlotPost]) -> None:
        try:
            answers = await self._take_back.ask(posts)
        except Unavailable as unanswered:
            _log.warning("posts of a paused queue are not taken back yet: %s", unanswered.message)
            return
        await self._database.run(partial(self._apply, answers))

    async def _apply(self, answers: Sequence[CancelAnswer], tx: Transaction) -> None:
        await self._take_back.apply(tx, answers, await self._clock.now(tx.connection))
