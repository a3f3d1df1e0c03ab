"""ResolvePostJob: a person says whether a post is out whose outcome nothing has proven."""

from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TypeVar

from publisher_service.adapters.postgres.attempts import close_attempts, doubtful_attempt
from publisher_service.adapters.postgres.jobs import lock_jobs, save_jobs
from publisher_service.adapters.postgres.resolutions import keep_resolution
from publisher_service.application.post_log import write_outcomes
from publisher_service.domain.post_job import PostJob
from publisher_service.domain.resolution import Resolution, resolved
from publisher_service.wire.posts import post_job_changed
from servicekit.failpoints import declare, failpoint
from servicekit.faults import NotFound
from servicekit.pg.database import Transaction
from servicekit.pg.ledger import Call, RequestLedger
from servicekit.pg.outbox import Outbox

R = TypeVar("R")

_COMMITTED = declare("publisher.resolve.committed")


class ResolvePostJob:
    def __init__(self, *, ledger: RequestLedger, outbox: Outbox) -> None:
        self._ledger = ledger
        self._outbox = outbox

    async def __call__(self, call: Call[PostJob, R], job_id: str, said: Resolution) -> R:
        answer = await self._ledger.once(
            call, lambda tx, now: self._resolve(tx, now, call.organization_id, job_id, said)
        )
        await failpoint(_COMMITTED)
        return answer

    async def _resolve(
        self, tx: Transaction, now: datetime, organization_id: str, job_id: str, said: Resolution
    ) -> PostJob:
        job = _found(await lock_jobs(tx.connection, [(organization_id, job_id)]), job_id)
        settlement = resolved(job, said, now=now)
        doubtful = await doubtful_attempt(tx.connection, job)
        if doubtful is not None:
            closed = replace(settlement, attempt_fence=doubtful.fence)
            await close_attempts(tx.connection, [closed], now=now)
        await save_jobs(tx.connection, [settlement.job])
        await keep_resolution(tx.connection, job, said, now=now)
        await self._outbox.append(tx, [post_job_changed(settlement.job)], now=now)
        tx.after_commit(partial(write_outcomes, [settlement.job]))
        return settlement.job


def _found(jobs: list[PostJob], job_id: str) -> PostJob:
    if not jobs:
        raise NotFound("POST_JOB_NOT_FOUND", "there is no such post job", metadata={"post_job_id": job_id})
    return jobs[0]
