"""Corrects the state of posts in the line of an account that was connected, disconnected, held or released, in pages.

Whether the posts go out depends on the account's gate alone, not on the state that they show. So connecting an account
takes effect at once, and so does a hold, no matter how long the line is.
"""

from datetime import datetime
from functools import partial

from publisher_service.adapters.postgres.jobs import save_jobs
from publisher_service.adapters.postgres.relabeling import (
    end_relabeling,
    find_relabeled,
    is_one_relabeled,
    lock_mislabeled_jobs,
)
from publisher_service.application.post_log import write_outcomes
from publisher_service.domain.post_job import JobState, PostJob, Reason, moved
from publisher_service.wire.posts import post_job_changed
from servicekit.failpoints import declare, failpoint
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.outbox import Outbox

_COMMITTED = declare("publisher.relabel.committed")
_PAGE = 200


class RelabelLines:
    def __init__(self, *, database: Database, clock: DatabaseClock, outbox: Outbox) -> None:
        self._database = database
        self._clock = clock
        self._outbox = outbox

    async def __call__(self) -> bool:
        """Returns whether there may be more to do."""
        async with self._database.session() as session:
            if not await is_one_relabeled(session):
                return False
        more = await self._database.run(self.page)
        await failpoint(_COMMITTED)
        return more

    async def page(self, tx: Transaction) -> bool:
        account = await find_relabeled(tx.connection)
        if account is None:
            return False
        jobs = await lock_mislabeled_jobs(tx.connection, account, limit=_PAGE)
        if not jobs:
            # Some may be locked by other transactions: a later step finds those.
            return await end_relabeling(tx.connection, account)
        now = await self._clock.now(tx.connection)
        after = [_relabeled(job, account.label, now) for job in jobs]
        await save_jobs(tx.connection, after)
        await self._outbox.append(tx, [post_job_changed(job) for job in after], now=now)
        tx.after_commit(partial(write_outcomes, after))
        return True


def _relabeled(job: PostJob, label: str, now: datetime) -> PostJob:
    state = JobState.READY if label == Reason.IN_LINE else JobState.BLOCKED
    return moved(job, state, now=now, reason=label, until=job.not_after)
