"""Refusals: a job is due and may not be sent."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

from publisher_service.domain.claim import Command, Verdict
from publisher_service.domain.doubt import ended_unsent, needs_attention
from publisher_service.domain.post_job import (
    ENDED_RUN,
    NOT_STARTED,
    JobState,
    PostJob,
    Reason,
    begun_again,
    moved,
)

BLOCKING: Final[Mapping[Verdict, Reason]] = {
    Verdict.NOT_APPROVED: Reason.NOT_APPROVED,
    Verdict.WITHDRAWN: Reason.WITHDRAWN,
    Verdict.ACCOUNT_NOT_CONNECTED: Reason.ACCOUNT_NOT_CONNECTED,
    Verdict.ACCOUNT_ON_HOLD: Reason.ACCOUNT_ON_HOLD,
}
# These verdicts rest on contents and accounts, which the claim does not lock. A hold is a fact of the locked gate.
DOUBTED: Final = frozenset(
    {
        Verdict.CONTENT_PENDING,
        Verdict.CONTENT_LOST,
        Verdict.REMOVED,
        Verdict.NOT_APPROVED,
        Verdict.WITHDRAWN,
        Verdict.ACCOUNT_NOT_CONNECTED,
    }
)
CHANGING: Final = DOUBTED | {Verdict.ACCOUNT_ON_HOLD, Verdict.MISSED, Verdict.EXHAUSTED}


def refused(job: PostJob, command: Command, verdict: Verdict, *, now: datetime) -> PostJob:
    """Returns the job as it waits, is blocked or has ended unsent; the same job if nothing changes.

    A job that waits or is blocked is released by an event. Its next action is at its latest time, when it is missed.
    """
    if job.state not in NOT_STARTED | ENDED_RUN:
        return job
    match verdict:
        case Verdict.MISSED:
            return ended_unsent(_taken_over(job, command), JobState.MISSED, now=now)
        case Verdict.REMOVED:
            taken = _taken_over(job, command)
            return ended_unsent(taken, JobState.CANCELED, now=now, reason=Reason.TARGET_REMOVED)
        case Verdict.WITHDRAWN if job.in_doubt:
            why = "the text that may have gone out is withdrawn: neither it nor a newer one may be sent"
            return needs_attention(_taken_over(job, command), why, now=now)
        case Verdict.EXHAUSTED:
            taken = _taken_over(job, command)
            reason = job.error_reason or Verdict.EXHAUSTED
            return ended_unsent(taken, JobState.FAILED, now=now, error_reason=reason)
        case Verdict.CONTENT_LOST:
            # Looked up at once. The sweep that hands it out sets the deadline, which depends on the provider.
            return moved(_taken_over(job, command), JobState.UNKNOWN, now=now, reason=Reason.CONTENT_LOST, until=now)
        case Verdict.CONTENT_PENDING:
            state, why = JobState.WAITING, Reason.CONTENT_PENDING
        case _:
            state, why = JobState.BLOCKED, BLOCKING[verdict]
    if _waits_so_already(job, state, why, command):
        return job
    return moved(_taken_over(job, command), state, now=now, reason=why, until=command.not_after)


def _waits_so_already(job: PostJob, state: JobState, reason: Reason, command: Command) -> bool:
    slot = (job.slot_id, job.slot_revision, job.next_action_time)
    same_slot = slot == (command.slot_id, command.slot_revision, command.not_after)
    return same_slot and (job.state, job.state_reason) == (state, reason)


def _taken_over(job: PostJob, command: Command) -> PostJob:
    return replace(
        begun_again(job),
        slot_sequence=command.slot_sequence,
        slot_id=command.slot_id,
        slot_revision=command.slot_revision,
        schedule_time=command.schedule_time,
        not_after=command.not_after,
        max_attempts=command.max_attempts,
        wanted_revision=command.content_revision,
        target_month=command.target_month or job.target_month,
        traceparent=command.traceparent,
    )
