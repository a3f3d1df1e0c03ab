"""Takes back attempts that a failed claim has committed after all: only its own process knows that none was sent."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from publisher_service.adapters.postgres.attempts import close_attempts, open_attempts_of_sender
from publisher_service.adapters.postgres.jobs import lock_jobs, save_jobs
from publisher_service.application.post_log import write_outcomes
from publisher_service.domain.policy import Policy
from publisher_service.domain.post_job import OPEN_ATTEMPT, PostJob
from publisher_service.domain.settlement import disowned
from publisher_service.wire.posts import post_job_changed
from servicekit.failpoints import declare, failpoint
from servicekit.pg.clock import DatabaseClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.outbox import Outbox

_COMMITTED = declare("publisher.disown.committed")


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedClaim:
    """A claim whose COMMIT raised: the jobs that it had claimed, and its name on their attempts."""

    sender: str
    jobs: Sequence[tuple[str, str]]


class DisownClaims:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        outbox: Outbox,
        policy: Policy,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._database = database
        self._clock = clock
        self._outbox = outbox
        self._policy = policy
        self._draw = draw

    async def __call__(self, failed: FailedClaim) -> Sequence[PostJob]:
        """Returns the jobs whose attempts had been committed; they now wait to be sent."""
        taken_back = await self._database.run(lambda tx: self._disown(tx, failed))
        await failpoint(_COMMITTED)
        return taken_back

    async def _disown(self, tx: Transaction, failed: FailedClaim) -> Sequence[PostJob]:
        now = await self._clock.now(tx.connection)
        # A commit that is still in progress holds these locks.
        jobs = await lock_jobs(tx.connection, failed.jobs)
        unsent = await open_attempts_of_sender(tx.connection, failed.jobs, failed.sender)
        # While this process could not reach the database, another may have left the job to a person: it stays there.
        settled = [
            disowned(job, in_doubt=unsent[key], policy=self._policy, now=now, draw=self._draw())
            for job in jobs
            if (key := (*job.key, job.fence)) in unsent and job.state in OPEN_ATTEMPT
        ]
        taken_back = [each.job for each in settled]
        await close_attempts(tx.connection, settled, now=now)
        await save_jobs(tx.connection, taken_back)
        await self._outbox.append(tx, [post_job_changed(job) for job in taken_back], now=now)
        tx.after_commit(partial(write_outcomes, taken_back))
        return taken_back
