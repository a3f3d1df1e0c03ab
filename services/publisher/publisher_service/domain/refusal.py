"""What becomes of a job that is due and may not be sent."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

from publisher_service.domain.claim import Command, Verdict
from publisher_service.domain.policy import Policy
from publisher_service.domain.post_job import ENDED_RUN, NOT_STARTED, JobState, PostJob, Reason, moved

BLOCKING: Final[Mapping[Verdict, Reason]] = {
    Verdict.NOT_APPROVED: Reason.NOT_APPROVED,
    Verdict.WITHDRAWN: Reason.WITHDRAWN,
    Verdict.ACCOUNT_NOT_CONNECTED: Reason.ACCOUNT_NOT_CONNECTED,
}
# What rests on contents and accounts, which the claim does not lock.
DOUBTED: Final = frozenset({Verdict.CONTENT_PENDING, Verdict.REMOVED, *BLOCKING})
CHANGING: Final = DOUBTED | {Verdict.MISSED}


def refused(job: PostJob, command: Command, verdict: Verdict, *, policy: Policy, now: datetime) -> PostJob:
    """The job as it waits, is blocked or has ended unsent; unchanged when it stands so already."""
    if job.state not in NOT_STARTED | ENDED_RUN:
        return job
    match verdict:
        case Verdict.MISSED:
            return _taken_over(job, moved(job, JobState.MISSED, now=now), command)
        case Verdict.REMOVED:
            return _taken_over(job, moved(job, JobState.CANCELED, now=now), command)
        case Verdict.CONTENT_PENDING:
            state, reason, until = JobState.WAITING, Reason.CONTENT_PENDING, now + policy.content_pending
        case _:
            state, reason, until = JobState.BLOCKED, BLOCKING[verdict], command.not_after
    if (job.state, job.state_reason, job.slot_id) == (state, reason, command.slot_id):
        # The same wait goes on: only the time of the next look changes, and nobody needs to be told.
        return replace(job, next_action_time=until)
    return _taken_over(job, moved(job, state, now=now, reason=reason, until=until), command)


def _taken_over(before: PostJob, job: PostJob, command: Command) -> PostJob:
    new_run = before.state in ENDED_RUN
    return replace(
        job,
        run=job.run + 1 if new_run else job.run,
        attempts=0 if new_run else job.attempts,
        slot_id=command.slot_id,
        slot_revision=command.slot_revision,
        schedule_time=command.schedule_time,
        not_after=command.not_after,
        max_attempts=command.max_attempts,
        traceparent=command.traceparent,
    )
