"""ResolvePostJob: a person says whether a post is out whose outcome nothing has proven."""

from dataclasses import replace
from functools import partial

from publisher_service.adapters.postgres.attempts import close_attempts, doubtful_attempt
from publisher_service.adapters.postgres.jobs import lock_jobs, save_jobs
from publisher_service.adapters.postgres.resolutions import keep_resolution
from publisher_service.application.post_log import write_outcomes
from publisher_service.domain.post_job import PostJob
from publisher_service.domain.resolution import Resolution, resolved
from publisher_service.wire.posts import ResolvePostJobResponse, post_job, post_job_changed
from servicekit.faults import NotFound
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.ledger_by_hand import RequestKey, RequestLedger
from servicekit.pg.outbox import Outbox


class ResolvePostJob:
    def __init__(self, *, database: Database, clock: DatabaseClock, ledger: RequestLedger, outbox: Outbox) -> None:
        self._database = database
        self._clock = clock
        self._ledger = ledger
        self._outbox = outbox

    async def __call__(self, key: RequestKey, job_id: str, said: Resolution) -> ResolvePostJobResponse:
        return await self._database.run(lambda tx: self._resolve(tx, key, job_id, said))

    async def _resolve(self, tx: Transaction, key: RequestKey, job_id: str, said: Resolution) -> ResolvePostJobResponse:
        now = await self._clock.now(tx.connection)
        remembered = await self._ledger.recall(tx, key, now=now)
        if remembered and remembered.response is not None:
            return ResolvePostJobResponse.FromString(remembered.response)
        job = _found(await lock_jobs(tx.connection, [(key.organization_id, job_id)]), job_id)
        settlement = resolved(job, said, now=now)
        doubtful = await doubtful_attempt(tx.connection, job)
        if doubtful is not None:
            closed = replace(settlement, attempt_fence=doubtful.fence)
            await close_attempts(tx.connection, [closed], now=now)
        await save_jobs(tx.connection, [settlement.job])
        await keep_resolution(tx.connection, job, said, now=now)
        await self._outbox.append(tx, [post_job_changed(settlement.job)], now=now)
        tx.after_commit(partial(write_outcomes, [settlement.job]))
        response = ResolvePostJobResponse(post_job=post_job(settlement.job))
        await self._ledger.answer(tx, key, response.SerializeToString())
        return response


def _found(jobs: list[PostJob], job_id: str) -> PostJob:
    if not jobs:
        raise NotFound("POST_JOB_NOT_FOUND", "there is no such post job", metadata={"post_job_id": job_id})
    return jobs[0]
