"""Follows Queue: gives jobs the times at which the targets of a draft are to go out."""

from collections.abc import Sequence
from datetime import datetime

from publisher_service.adapters.postgres.contents import lock_contents
from publisher_service.adapters.postgres.jobs import insert_jobs, lock_jobs_of_drafts, save_jobs
from publisher_service.domain.plan import Slot, after_slot, new_job
from publisher_service.domain.post_job import PostJob, Target
from publisher_service.wire.posts import post_job_changed
from servicekit.pg.database import Transaction
from servicekit.pg.outbox import Outbox

_Jobs = dict[tuple[str, str, Target], PostJob]


class TakeSlots:
    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox

    async def __call__(self, tx: Transaction, slots: Sequence[Slot], now: datetime) -> None:
        drafts = {(slot.organization_id, slot.draft_id) for slot in slots}
        # The lock on the content keeps two consumers from making the same job: a slot may come before its draft.
        contents = await lock_contents(tx.connection, drafts)
        found: _Jobs = {
            (job.organization_id, job.draft_id, job.target): job
            for job in await lock_jobs_of_drafts(tx.connection, drafts)
            # Follow-ups have no slot.
            if not job.part
        }
        jobs = dict(found)
        for slot in slots:
            key = (slot.organization_id, slot.draft_id)
            for target in slot.targets:
                job = jobs.get((*key, target)) or new_job(*key, target, below=contents[key][1], now=now)
                is_target = not contents[key].lacks(job.id, since=slot.content_revision)
                jobs[*key, target] = after_slot(job, slot, is_target=is_target, now=now)

        created = [job for key, job in jobs.items() if key not in found]
        changed = [job for key, job in jobs.items() if key in found and job is not found[key]]
        await insert_jobs(tx.connection, created)
        await save_jobs(tx.connection, changed)
        await self._outbox.append(tx, [post_job_changed(job) for job in created + changed], now=now)
