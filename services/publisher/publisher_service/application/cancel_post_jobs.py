"""CancelPostJobs: takes posts back that have not started; after the answer, none of those begins from that slot."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import TypeVar

from publisher_service.adapters.postgres.contents import lock_contents
from publisher_service.adapters.postgres.jobs import insert_jobs, known_jobs, lock_jobs, save_jobs
from publisher_service.adapters.postgres.keys import Key
from publisher_service.application.post_log import write_outcomes
from publisher_service.application.reconciled import require_reconciled, require_slots
from publisher_service.domain.plan import new_job
from publisher_service.domain.post_job import PostJob
from publisher_service.domain.take_back import SlotPost, TakenBack, taken_back
from publisher_service.wire.posts import post_job_changed
from servicekit.failpoints import declare, failpoint
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Call, RequestLedger
from servicekit.pg.outbox import Outbox

R = TypeVar("R")

_COMMITTED = declare("publisher.cancel.committed")


class CancelPostJobs:
    def __init__(self, *, ledger: RequestLedger, outbox: Outbox) -> None:
        self._ledger = ledger
        self._outbox = outbox

    async def __call__(self, call: Call[Sequence[TakenBack], R], posts: Sequence[SlotPost]) -> R:
        answer = await self._ledger.once(call, lambda tx, now: self._cancel(tx, now, posts))
        await failpoint(_COMMITTED)
        return answer

    async def _cancel(self, tx: Transaction, now: datetime, posts: Sequence[SlotPost]) -> Sequence[TakenBack]:
        """Decides under the locks of the jobs, so that no claim or settlement interferes."""
        mode = await require_reconciled(tx)
        ids = [(post.organization_id, post.post_job_id) for post in posts]
        absent = await self._absent(tx, posts, ids, now)
        found = {job.key: job for job in await lock_jobs(tx.connection, ids)}
        if mode is not None:
            require_slots(found, posts)
        jobs = absent | found
        results: list[TakenBack] = []
        for post, key in zip(posts, ids, strict=True):
            result = taken_back(jobs[key], post, now=now)
            jobs[key] = result.job
            results.append(result)
        created = [jobs[key] for key in jobs if key not in found]
        changed = [jobs[key] for key, job in found.items() if jobs[key] is not job]
        await insert_jobs(tx.connection, created)
        await save_jobs(tx.connection, changed)
        await self._outbox.append(tx, [post_job_changed(job) for job in created + changed], now=now)
        tx.after_commit(partial(write_outcomes, created + changed))
        return results

    async def _absent(
        self, tx: Transaction, posts: Sequence[SlotPost], ids: Sequence[Key], now: datetime
    ) -> dict[Key, PostJob]:
        """Returns new jobs for posts of which neither a slot nor a command has come yet.

        They are stored as canceled, so that what comes later starts nothing. The locks on the contents keep others from
        making the same jobs; they come before those of the jobs.
        """
        known = await known_jobs(tx.connection, ids)
        absent = {key: post for key, post in zip(ids, posts, strict=True) if key not in known}
        if not absent:
            return {}
        drafts = {(post.organization_id, post.draft_id) for post in absent.values()}
        contents = await lock_contents(tx.connection, drafts)
        return {
            key: new_job(
                post.organization_id,
                post.draft_id,
                post.target,
                below=contents[post.organization_id, post.draft_id].withdrawn_below,
                now=now,
            )
            for key, post in absent.items()
        }
