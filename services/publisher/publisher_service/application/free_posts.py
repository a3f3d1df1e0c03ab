"""Frees what wide holds have kept back once they have ended: in pages, and no faster than a rate."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

from publisher_service.adapters.postgres.freeing import (
    Ended,
    covered,
    end_release,
    free_lines,
    is_in_force,
    is_one_left,
    is_one_to_free,
    lock_held_back,
    lock_lines,
    lock_release,
    next_page_time,
    put_off_release,
    wake_lines,
)
from publisher_service.adapters.postgres.jobs import save_jobs
from publisher_service.adapters.postgres.wide_holds import share_wide_holds
from publisher_service.application.post_log import write_outcomes
from publisher_service.domain.hold import Scope
from publisher_service.domain.plan import released
from publisher_service.domain.post_job import JobState, PostJob, Reason, moved
from publisher_service.wire.posts import post_job_changed
from servicekit.failpoints import declare, failpoint
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.outbox import Outbox

_FREED = declare("publisher.freeing.committed")

_MOST_LINES = 100
_MOST_POSTS = 200
# What is left is locked by other transactions.
_AGAIN = timedelta(milliseconds=250)


class FreePosts:
    def __init__(
        self, *, database: Database, clock: DatabaseClock, outbox: Outbox, rate: int, on_freed: Callable[[], None]
    ) -> None:
        """`rate` is in posts per second, of each hold; `on_freed` is called when lines may have their turn."""
        self._database = database
        self._clock = clock
        self._outbox = outbox
        self._rate = rate
        self._on_freed = on_freed

    async def __call__(self) -> bool:
        """Frees a page. Returns whether another may follow at once."""
        async with self._database.session() as session:
            if not await is_one_to_free(session, now=await self._clock.now(session)):
                return False
        more = await self._database.run(self.page)
        await failpoint(_FREED)
        return more

    async def page(self, tx: Transaction) -> bool:
        # As in a claim: a hold that is read in force or ended stays so until this transaction ends.
        now = self._clock.shown((await share_wide_holds(tx))[0])
        release = await lock_release(tx.connection, now=now)
        if release is None:
            return False
        if await is_in_force(tx.connection, release.ended):
            await end_release(tx.connection, release.ended)
            return True
        if posts := await self._free(tx, release.ended, now):
            until = next_page_time(release, posts, rate=self._rate, now=now)
            await put_off_release(tx.connection, release.ended, until=until)
            tx.after_commit(self._on_freed)
        elif await is_one_left(tx.connection, release.ended):
            await put_off_release(tx.connection, release.ended, until=now + _AGAIN)
        else:
            await end_release(tx.connection, release.ended)
        return True

    async def _free(self, tx: Transaction, ended: Ended, now: datetime) -> int:
        """Frees a page; returns its size in posts, where an empty line counts as one."""
        if ended.scope in (Scope.BRAND, Scope.CAMPAIGN):
            return await self._free_posts(tx, ended, now)
        lines = await free_lines(tx.connection, ended, rate=self._rate, most=_MOST_LINES, now=now)
        return sum(max(posts, 1) for posts in lines)

    async def _free_posts(self, tx: Transaction, ended: Ended, now: datetime) -> int:
        """Puts posts back into the lines of their accounts; one that another hold covers stays where it is."""
        found = await lock_held_back(tx.connection, ended, most=min(self._rate, _MOST_POSTS))
        lines = await lock_lines(tx.connection, [job.account_key for job in found])
        jobs = [job for job in found if job.account_key in lines]
        other = Scope.CAMPAIGN if ended.scope is Scope.BRAND else Scope.BRAND
        held = await covered(tx.connection, ended.organization_id, other, [_id_of(job, other) for job in jobs])
        times: dict[str, datetime] = {}
        after: list[PostJob] = []
        for number, job in enumerate(jobs):
            if _id_of(job, other) in held:
                after.append(_shown(job, f"{other}_ON_HOLD", now))
            elif job.is_sent_now:
                # Its line may sleep until a window opens, which is nothing to this: the sweep takes it.
                after.append(released(job, now=now))
            else:
                after.append(_shown(job, lines[job.account_key].label, now))
                times.setdefault(job.target.social_account_id, now + timedelta(seconds=number / self._rate))
        await save_jobs(tx.connection, after)
        await wake_lines(tx.connection, ended.organization_id, times)
        await self._outbox.append(tx, [post_job_changed(job) for job in after], now=now)
        tx.after_commit(partial(write_outcomes, after))
        return len(after)


def _id_of(job: PostJob, scope: Scope) -> str:
    return job.brand_id if scope is Scope.BRAND else job.campaign_id


def _shown(job: PostJob, label: str, now: datetime) -> PostJob:
    state = JobState.READY if label == Reason.IN_LINE else JobState.BLOCKED
    return moved(job, state, now=now, reason=label, until=job.not_after)
