"""Puts posts that waited for a destination in the line of its account, in pages, once the destination is active."""

from collections.abc import Callable
from functools import partial

from publisher_service.adapters.postgres.destinations import (
    end_releasing,
    find_releasing,
    is_one_releasing,
    lock_waiting_jobs,
)
from publisher_service.adapters.postgres.gates import look_at_lines
from publisher_service.adapters.postgres.jobs import save_jobs
from publisher_service.application.post_log import write_outcomes
from publisher_service.domain.post_job import JobState, Reason, moved
from publisher_service.wire.posts import post_job_changed
from servicekit.failpoints import declare, failpoint
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.outbox import Outbox

_COMMITTED = declare("publisher.release_destinations.committed")
_PAGE = 200


class ReleaseDestinations:
    """All posts to one destination are of one account, so that its line paces them."""

    def __init__(
        self, *, database: Database, clock: DatabaseClock, outbox: Outbox, wake_lines: Callable[[], None]
    ) -> None:
        self._database = database
        self._clock = clock
        self._outbox = outbox
        self._wake_lines = wake_lines

    async def __call__(self) -> bool:
        """Returns whether there may be more to do."""
        async with self._database.session() as session:
            if not await is_one_releasing(session):
                return False
        more = await self._database.run(self.page)
        await failpoint(_COMMITTED)
        return more

    async def page(self, tx: Transaction) -> bool:
        destination = await find_releasing(tx.connection)
        if destination is None:
            return False
        jobs = await lock_waiting_jobs(tx.connection, destination, limit=_PAGE)
        if not jobs:
            # Some may be locked by other transactions: a later step finds those.
            return await end_releasing(tx.connection, destination)
        now = await self._clock.now(tx.connection)
        after = [moved(job, JobState.READY, now=now, reason=Reason.IN_LINE, until=job.not_after) for job in jobs]
        await save_jobs(tx.connection, after)
        await look_at_lines(tx.connection, {job.account_key for job in after}, now=now)
        await self._outbox.append(tx, [post_job_changed(job) for job in after], now=now)
        tx.after_commit(partial(write_outcomes, after))
        tx.after_commit(self._wake_lines)
        return True
