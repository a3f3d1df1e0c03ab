"""Follows Queue: posts whose slot was canceled lose their time."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from publisher_service.adapters.postgres.contents import lock_contents
from publisher_service.adapters.postgres.jobs import insert_jobs, lock_jobs_of_drafts, save_jobs
from publisher_service.application.post_log import write_outcomes
from publisher_service.domain.plan import new_job
from publisher_service.domain.post_job import EventKind, JobState, PostJob
from publisher_service.domain.take_back import SlotPost, without_slot
from publisher_service.wire.posts import post_job_changed
from servicekit.pg.database import Transaction
from servicekit.pg.outbox import Announcement, Outbox


class DropSlots:
    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox

    async def __call__(self, tx: Transaction, slots: Sequence[Sequence[SlotPost]], now: datetime) -> None:
        """Applies canceled slots, each with its posts."""
        posts = [post for slot in slots for post in slot]
        drafts = {(post.organization_id, post.draft_id) for post in posts}
        # As for a new slot: the cancellation may come before the slot and its draft.
        contents = await lock_contents(tx.connection, drafts)
        found = {job.key: job for job in await lock_jobs_of_drafts(tx.connection, drafts)}
        jobs = dict(found)
        for post in posts:
            key, draft = (post.organization_id, post.post_job_id), (post.organization_id, post.draft_id)
            below = contents[draft].withdrawn_below
            job = jobs.get(key) or new_job(*draft, post.target, below=below, now=now)
            jobs[key] = without_slot(job, post, now=now)

        created = [job for key, job in jobs.items() if key not in found]
        changed = [job for key, job in jobs.items() if key in found and job is not found[key]]
        await insert_jobs(tx.connection, created)
        await save_jobs(tx.connection, changed)
        moved = [job for job in changed if job.version > found[job.key].version]
        announced = [*(post_job_changed(job) for job in created), *map(_unscheduled, moved)]
        await self._outbox.append(tx, announced, now=now)
        tx.after_commit(partial(write_outcomes, moved))


def _unscheduled(job: PostJob) -> Announcement:
    return post_job_changed(job, EventKind.UNSCHEDULED if job.state is JobState.PENDING else None)
