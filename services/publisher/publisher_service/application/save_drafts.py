"""Follows Drafts: stores the content of a saved draft, and keeps a post job for every target and follow-up."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from operator import attrgetter

from publisher_service.adapters.postgres.contents import (
    lock_contents,
    save_contents,
    set_ids_of_jobs,
    set_parts_of_jobs,
)
from publisher_service.adapters.postgres.follow_ups_due import note_due
from publisher_service.adapters.postgres.jobs import insert_jobs, lock_jobs_of_drafts, save_jobs
from publisher_service.adapters.postgres.kept_contents import keep_current_contents
from publisher_service.adapters.postgres.keys import Key
from publisher_service.application.post_log import write_outcomes
from publisher_service.domain.plan import SavedDraft, after_save, missing_parts, new_job, slots_of_others
from publisher_service.domain.post_job import OPEN_ATTEMPT, JobState, PostJob
from publisher_service.wire.posts import post_job_changed
from servicekit.pg.database import Transaction
from servicekit.pg.outbox import Outbox
from servicekit.versions import newest

_KEY = attrgetter("key")
_VERSION = attrgetter("version")


class SaveDrafts:
    def __init__(self, outbox: Outbox, wake_sweep: Callable[[], None]) -> None:
        self._outbox = outbox
        self._wake_sweep = wake_sweep

    async def __call__(self, tx: Transaction, announced: Sequence[SavedDraft], now: datetime) -> None:
        drafts = {draft.key: draft for draft in newest(announced, key=_KEY, version=_VERSION)}
        known = await lock_contents(tx.connection, drafts)
        fresh = {key: draft for key, draft in drafts.items() if draft.version > known[key][0]}
        jobs: dict[Key, list[PostJob]] = {key: [] for key in fresh}
        # Before the content is overwritten: the bytes that an attempt may have sent are kept for a resend.
        locked = await lock_jobs_of_drafts(tx.connection, fresh)
        for job in locked:
            jobs[job.organization_id, job.draft_id].append(job)
        await keep_current_contents(tx.connection, [job.key for job in locked if _may_be_sent_again(job)])
        await save_contents(tx.connection, list(fresh.values()))

        created = [
            new_job(
                *key,
                target,
                below=known[key][1],
                brand_id=draft.brand_id,
                campaign_id=draft.campaign_id,
                part=part,
                parts=draft.parts_behind(target, part),
                now=now,
            )
            for key, draft in fresh.items()
            for target, part in missing_parts(draft, jobs[key])
        ]
        changed = [
            after
            for key, draft in fresh.items()
            for job in jobs[key]
            if (after := after_save(job, draft, live_slots=slots_of_others(jobs[key]), now=now)) is not job
        ]
        await set_ids_of_jobs(tx.connection, _with_other_ids(locked, fresh))
        await set_parts_of_jobs(tx.connection, _with_other_parts(locked, fresh))
        await insert_jobs(tx.connection, created)
        await save_jobs(tx.connection, changed)
        # A post may be out before its follow-ups are known: it was being sent when the draft got them.
        await note_due(tx.connection, [job.key for job in locked if job.state is JobState.PUBLISHED], now=now)
        await self._outbox.append(tx, [post_job_changed(job) for job in created + changed], now=now)
        tx.after_commit(partial(write_outcomes, changed))
        if any(job.state is JobState.READY for job in changed):
            tx.after_commit(self._wake_sweep)


def _key(job: PostJob) -> Key:
    return job.organization_id, job.id


def _with_other_ids(jobs: Sequence[PostJob], drafts: Mapping[Key, SavedDraft]) -> list[SavedDraft]:
    """Returns the drafts whose brand or campaign is not that of a job."""
    keys = {
        key
        for job in jobs
        if (draft := drafts[key := (job.organization_id, job.draft_id)])
        and (job.brand_id, job.campaign_id) != (draft.brand_id, draft.campaign_id)
    }
    return [drafts[key] for key in keys]


def _with_other_parts(jobs: Sequence[PostJob], drafts: Mapping[Key, SavedDraft]) -> dict[Key, int]:
    """Returns how many follow-ups now come after those of the jobs that had another number of them."""
    return {
        job.key: parts
        for job in jobs
        if (draft := drafts[job.organization_id, job.draft_id]).has(job)
        and (parts := draft.parts_behind(job.target, job.part)) != job.parts
    }


def _may_be_sent_again(job: PostJob) -> bool:
    return job.in_doubt or job.state in OPEN_ATTEMPT
