"""Takes post jobs over as Publisher itself announced them, on the database that is lost."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from operator import attrgetter

from publisher_service.adapters.postgres.attempts import abandon_attempts, close_attempts
from publisher_service.adapters.postgres.contents import lock_contents
from publisher_service.adapters.postgres.effects import count_lost
from publisher_service.adapters.postgres.jobs import insert_jobs, lock_jobs, save_jobs
from publisher_service.adapters.postgres.kept_contents import keep_current_contents
from publisher_service.adapters.postgres.reconciling import add_attempts, note_jobs
from publisher_service.adapters.postgres.safe_modes import active_safe_mode
from publisher_service.domain.plan import new_job
from publisher_service.domain.post_job import NOT_STARTED, JobState, PostJob
from publisher_service.domain.restored import is_news, sent_since, taken_over, was_attempted
from publisher_service.domain.safe_mode import Kind
from publisher_service.domain.settlement import AttemptState, Settlement
from publisher_service.wire.posts import post_job_changed
from servicekit.pg.database import Transaction
from servicekit.pg.outbox import Outbox
from servicekit.versions import newest


class TakeOverJobs:
    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox

    async def __call__(self, tx: Transaction, announced: Sequence[PostJob], now: datetime) -> None:
        mode = await active_safe_mode(tx)
        if mode is None:
            return
        seen = {job.key: job for job in newest(announced, key=attrgetter("key"), version=attrgetter("version"))}
        drafts = {(job.organization_id, job.draft_id) for job in seen.values()}
        # The lock on the content keeps other processes from making the same job.
        contents = await lock_contents(tx.connection, drafts)
        known = {job.key: job for job in await lock_jobs(tx.connection, list(seen))}
        absent = [
            new_job(
                job.organization_id,
                job.draft_id,
                job.target,
                below=contents[job.organization_id, job.draft_id][1],
                part=job.part,
                parts=job.parts,
                now=now,
            )
            for key, job in seen.items()
            if key not in known
        ]
        await insert_jobs(tx.connection, absent)
        await note_jobs(tx.connection, mode.number, Kind.RECREATED, absent)
        jobs = known | {job.key: job for job in absent}
        news = [key for key, job in seen.items() if key not in known or is_news(jobs[key], job)]
        after = [taken_over(jobs[key], seen[key], now=now) for key in news]
        attempted = [replace(job, fence=job.fence + 1) for job in after if was_attempted(job)]
        others = [job for job in after if not was_attempted(job)]
        settled = [Settlement(job=job, attempt_state=_attempt_state(job)) for job in attempted]
        # When they began is lost; the announcements say when they ended. They are newer than the copy.
        await abandon_attempts(tx.connection, settled, now=now)
        await add_attempts(tx.connection, attempted, began=[sent_since(job, mode) for job in attempted])
        await count_lost(tx.connection, attempted, now=now)
        await close_attempts(tx.connection, settled, now=now)
        await save_jobs(tx.connection, [*attempted, *others])
        await keep_current_contents(tx.connection, [job.key for job in attempted])
        ended = [job for job in after if job.state not in (JobState.SCHEDULED, JobState.READY, JobState.WAITING)]
        await note_jobs(tx.connection, mode.number, Kind.TAKEN_OVER, [job for job in ended if not job.in_doubt])
        await note_jobs(tx.connection, mode.number, Kind.DOUBT, [job for job in ended if job.in_doubt])
        await self._outbox.append(tx, [post_job_changed(job) for job in [*attempted, *others]], now=now)


def _attempt_state(job: PostJob) -> AttemptState:
    if job.state is JobState.PUBLISHED:
        return AttemptState.ACCEPTED
    # A job that is to be sent again has no open attempt: that one was found to be absent.
    return AttemptState.ABSENT if job.state in NOT_STARTED else AttemptState.UNKNOWN
