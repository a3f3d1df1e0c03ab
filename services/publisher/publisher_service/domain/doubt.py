"""Runs in doubt: an attempt of unknown outcome may have sent the post.

From then on nothing ends the run as unsent. Only proof, or a person, can say that the post is not out.
"""

from datetime import datetime
from typing import Any

from publisher_service.domain.policy import Policy
from publisher_service.domain.post_job import JobState, PostJob, Reason, moved


def ended_unsent(
    job: PostJob, state: JobState, *, now: datetime, reason: Reason = Reason.NONE, **changes: Any
) -> PostJob:
    """Returns the job at the end of a run that has sent nothing; if that is in doubt, a person has to look."""
    if job.in_doubt:
        return needs_attention(job, f"it would be {state}, but an earlier attempt may have gone out", now=now)
    return moved(job, state, now=now, reason=reason, **changes)


def needs_attention(job: PostJob, why: str, *, now: datetime) -> PostJob:
    """Returns the job for a person to look at, with what is known in words."""
    last = f"; the last at {job.last_attempt_time.isoformat()}" if job.last_attempt_time else ""
    known = f"{why}; attempts {job.attempts} of {job.max_attempts}{last}"
    earlier = f"; last error {job.error_reason}: {job.error_message}" if job.error_reason else ""
    return moved(
        job,
        JobState.NEEDS_ATTENTION,
        now=now,
        error_reason=job.error_reason or "OUTCOME_UNKNOWN",
        error_message=f"{known}{earlier}",
    )


def unknown(job: PostJob, *, policy: Policy, now: datetime, reason: Reason = Reason.NONE, **changes: Any) -> PostJob:
    """Returns the job to be looked up at the provider, until the provider's deadline."""
    deadline = now + policy.unknown_deadline
    return moved(
        job,
        JobState.UNKNOWN,
        now=now,
        reason=reason,
        until=min(now + policy.unknown_settle, deadline),
        unknown_until=deadline,
        in_doubt=True,
        **changes,
    )


def is_overdue(job: PostJob, *, policy: Policy, now: datetime) -> bool:
    """Returns whether an UNKNOWN job was handed to its last look, and that look has not ended in time.

    The next action of a job lies after its deadline only once the last look has been handed out. So a process that
    comes back late looks once before it gives up.
    """
    deadline, asked_until = job.unknown_until, job.next_action_time
    if deadline is None or asked_until is None:
        return False
    return asked_until > deadline and now > deadline + policy.last_look


def given_up(job: PostJob, *, now: datetime) -> PostJob:
    """Returns the job whose last look does not end, for a person to look at."""
    return needs_attention(job, "no proof was found in time; the last look has not ended", now=now)


def may_be_resent(job: PostJob) -> bool:
    """Returns whether an UNKNOWN job may be sent again once the provider has proven that the post is absent.

    Any reason on the job forbids it, even one that only a newer release knows.
    """
    return job.attempts < job.max_attempts and not job.state_reason
