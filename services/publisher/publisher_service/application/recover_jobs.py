"""Recovers jobs that stand still: attempts without a process, waits without a message, looks that are due."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from opentelemetry import metrics

from publisher_service.adapters.postgres.accounts import providers_of
from publisher_service.adapters.postgres.attempts import close_attempts
from publisher_service.adapters.postgres.jobs import lock_due_jobs, put_off_jobs, save_jobs
from publisher_service.adapters.postgres.kept_contents import keep_current_contents
from publisher_service.adapters.postgres.open_claims import drop_ended_claims, lock_expired_jobs
from publisher_service.application.post_log import write_outcomes
from publisher_service.domain.claim import Command, command_of
from publisher_service.domain.doubt import given_up, is_overdue
from publisher_service.domain.policy import Policy
from publisher_service.domain.post_job import JobState, PostJob, is_readable, moved
from publisher_service.domain.settlement import uncertain
from publisher_service.wire.posts import post_job_changed
from servicekit.failpoints import declare, failpoint
from servicekit.pg.clock import DatabaseClock, SteadyClock
from servicekit.pg.database import Database, Transaction
from servicekit.pg.outbox import Outbox
from servicekit.run.zeros import from_zero

_log = logging.getLogger(__name__)

_LOST = "the process that was sending ended before it recorded an answer"
_meter = metrics.get_meter(__name__)
_unsound = from_zero(
    _meter.create_counter(
        "postflow.publish.unsound_jobs", description="Times that a sweep found a post job that it cannot hand on"
    )
)
_SWEPT = declare("publisher.recover.swept")
_COMMITTED = declare("publisher.recover.committed")
_BATCH = 200
# A job that is handed on is left alone for this long. If the process dies, the job is delayed by no more than this.
_HANDED_ON = timedelta(seconds=5)
# A job that cannot be handed on is looked at again after this: a newer release, or a person, may have repaired it.
_SET_ASIDE = timedelta(minutes=1)
# The stream brings a short wait back. The sweep takes over only if it does not.
_MESSAGE_FIRST = timedelta(seconds=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A job of unknown outcome whose next look is due, with its provider."""

    job: PostJob
    provider: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """The jobs that a sweep hands on, and how many it has settled itself."""

    due: Sequence[Command]
    questions: Sequence[Question]
    more: bool
    settled: int = 0


class RecoverJobs:
    def __init__(
        self,
        *,
        database: Database,
        clock: DatabaseClock,
        steady: SteadyClock,
        outbox: Outbox,
        policies: Callable[[str], Policy],
    ) -> None:
        self._database = database
        self._clock = clock
        self._steady = steady
        self._outbox = outbox
        self._policies = policies

    async def __call__(self) -> Recovered:
        recovered = await self._database.run(self._sweep)
        if recovered.due or recovered.questions or recovered.settled:
            await failpoint(_COMMITTED)
        return recovered

    async def _sweep(self, tx: Transaction) -> Recovered:
        now = await self._steady.observe(self._clock, tx)
        expired = await lock_expired_jobs(tx.connection, before=now, limit=_BATCH)
        jobs = await lock_due_jobs(tx.connection, before=now, patience=now - _MESSAGE_FIRST, limit=_BATCH)
        more = _BATCH in (len(expired), len(jobs))
        aside = {job.key for job in jobs if not _is_sound(job)}
        await put_off_jobs(tx.connection, aside, until=now + _SET_ASIDE)
        jobs = [*expired, *(job for job in jobs if job.key not in aside)]
        abandoned = [job for job in jobs if job.state is JobState.SENDING]
        questions = [job for job in jobs if job.state is JobState.UNKNOWN]
        due = [job for job in jobs if job.state in (JobState.READY, JobState.WAITING, JobState.BLOCKED)]
        providers = await providers_of(tx, [job.account_key for job in [*abandoned, *questions]])

        def policy(job: PostJob) -> Policy:
            return self._policies(providers.get(job.account_key, ""))

        lost = [uncertain(job, "SENDER_LOST", _LOST, policy=policy(job), now=now) for job in abandoned]
        await close_attempts(tx.connection, lost, now=now)
        await keep_current_contents(tx.connection, [job.key for job in abandoned])
        over = [job for job in questions if is_overdue(job, policy=policy(job), now=now)]
        asked = [_asked(job, policy(job), now) for job in questions if not is_overdue(job, policy=policy(job), now=now)]
        ended = [*(each.job for each in lost), *(given_up(job, now=now) for job in over)]
        ready = [_ready(job, now, now + _HANDED_ON) for job in due]
        await save_jobs(tx.connection, [*ended, *asked, *ready])
        await drop_ended_claims(tx.connection, before=now)
        await self._outbox.append(tx, [post_job_changed(job) for job in ended], now=now)
        tx.after_commit(partial(write_outcomes, ended))
        if jobs:
            await failpoint(_SWEPT)
        return Recovered(
            due=[command_of(job) for job in ready],
            questions=[Question(job=job, provider=providers.get(job.account_key, "")) for job in asked],
            more=more,
            settled=len(ended),
        )


def _is_sound(job: PostJob) -> bool:
    """Returns whether the sweep can handle the job: a state that this release knows, and times if it is to be sent.

    Any other job is put off: it must neither stop the others nor fill every sweep.
    """
    if not is_readable(job):
        _unsound.add(1)
        _log.warning(
            "post job %s of %s is %s, which this release does not know", job.id, job.organization_id, job.state
        )
        return False
    if job.state in (JobState.SENDING, JobState.UNKNOWN) or (job.schedule_time and job.not_after):
        return True
    _unsound.add(1)
    _log.error("post job %s of %s is %s without its times", job.id, job.organization_id, job.state)
    return False


def _asked(job: PostJob, policy: Policy, now: datetime) -> PostJob:
    """Returns the job with its next look put off. The deadline counts from the first look, even if none ever ends."""
    deadline = job.unknown_until or now + policy.unknown_deadline
    return replace(job, next_action_time=now + policy.lookup_again, unknown_until=deadline)


def _ready(job: PostJob, now: datetime, until: datetime) -> PostJob:
    if job.state is JobState.READY:
        return replace(job, next_action_time=until)
    return moved(job, JobState.READY, now=now, until=until)
