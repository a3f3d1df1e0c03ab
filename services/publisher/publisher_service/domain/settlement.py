"""What an outcome makes of a job and its attempt."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import assert_never

from publisher_service.domain.outcome import (
    Absent,
    Accepted,
    Ambiguous,
    AuthRefused,
    Finding,
    Found,
    NoProof,
    NotSent,
    Outcome,
    RateLimited,
    Rejected,
)
from publisher_service.domain.policy import Policy
from publisher_service.domain.post_job import JobState, PostJob, Reason


class AttemptState(StrEnum):
    SENDING = "SENDING"
    UNKNOWN = "UNKNOWN"
    ACCEPTED = "ACCEPTED"
    REJECTED = "REJECTED"
    NOT_SENT = "NOT_SENT"
    ABSENT = "ABSENT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """The job after the outcome, and how its attempt ended."""

    job: PostJob
    attempt_state: AttemptState
    error_reason: str = ""
    error_message: str = ""
    disconnects: bool = False


def settle(job: PostJob, outcome: Outcome, *, policy: Policy, now: datetime) -> Settlement:
    """`job` is SENDING; the result has the next version."""
    assert job.state is JobState.SENDING
    after = replace(job, version=job.version + 1, next_action_time=None, last_attempt_time=now, update_time=now)
    match outcome:
        case Accepted(external_id=external_id, external_url=external_url):
            return Settlement(
                job=_published(after, external_id, external_url, now), attempt_state=AttemptState.ACCEPTED
            )
        case Rejected(reason=reason, message=message):
            failed = replace(after, state=JobState.FAILED, error_reason=reason, error_message=message)
            return _ended(failed, AttemptState.REJECTED, reason, message)
        case AuthRefused(message=message):
            blocked = _blocked(after, Reason.ACCOUNT_NOT_CONNECTED, "AUTH", message)
            return replace(_ended(blocked, AttemptState.REJECTED, "AUTH", message), disconnects=True)
        case RateLimited(message=message, retry_after=retry_after):
            waiting = _waiting(after, Reason.RATE_LIMITED, now + retry_after, "RATE_LIMITED", message)
            return _ended(replace(waiting, attempts=job.attempts - 1), AttemptState.NOT_SENT, "RATE_LIMITED", message)
        case NotSent(reason=reason, message=message):
            return _ended(_retried(after, reason, message, policy, now), AttemptState.NOT_SENT, reason, message)
        case Ambiguous(reason=reason, message=message):
            return _ended(
                uncertain(job, reason, message, policy=policy, now=now), AttemptState.UNKNOWN, reason, message
            )
    assert_never(outcome)


def uncertain(job: PostJob, reason: str, message: str, *, policy: Policy, now: datetime) -> PostJob:
    """It may be out there: to be found out, after the provider has had time to show it."""
    return replace(
        job,
        version=job.version + 1,
        state=JobState.UNKNOWN,
        next_action_time=now + policy.unknown_settle,
        error_reason=reason,
        error_message=message,
        last_attempt_time=now,
        update_time=now,
    )


def resolve(job: PostJob, finding: Finding, *, policy: Policy, now: datetime) -> Settlement | None:
    """`job` is UNKNOWN. None: nothing is proven, look again at the job's `next_action_time` put off by the caller."""
    assert job.state is JobState.UNKNOWN
    after = replace(job, version=job.version + 1, update_time=now)
    match finding:
        case Found():
            return evidence(job, finding, now=now)
        case Absent():
            ready = replace(after, state=JobState.READY, next_action_time=now)
            return _ended(ready, AttemptState.ABSENT, job.error_reason, job.error_message)
        case NoProof():
            return None
    assert_never(finding)


def evidence(job: PostJob, found: Found, *, now: datetime) -> Settlement:
    """Proof that a post is there counts whoever brings it, and however late."""
    assert job.state is not JobState.PUBLISHED
    after = replace(job, version=job.version + 1, update_time=now)
    return Settlement(
        job=_published(after, found.external_id, found.external_url, now), attempt_state=AttemptState.ACCEPTED
    )


def _published(job: PostJob, external_id: str, external_url: str, now: datetime) -> PostJob:
    return replace(
        job,
        state=JobState.PUBLISHED,
        state_reason=Reason.NONE,
        next_action_time=None,
        publish_time=now,
        external_id=external_id,
        external_url=external_url,
        evidence_kind="PROVIDER_ID",
        error_reason="",
        error_message="",
    )


def _retried(job: PostJob, reason: str, message: str, policy: Policy, now: datetime) -> PostJob:
    if job.attempts >= job.max_attempts:
        return replace(job, state=JobState.FAILED, error_reason=reason, error_message=message)
    return _waiting(job, Reason.RETRY, now + policy.retry_delay(job.attempts), reason, message)


def _waiting(job: PostJob, why: Reason, until: datetime, reason: str, message: str) -> PostJob:
    return replace(
        job,
        state=JobState.WAITING,
        state_reason=why,
        next_action_time=until,
        error_reason=reason,
        error_message=message,
    )


def _blocked(job: PostJob, why: Reason, reason: str, message: str) -> PostJob:
    assert job.not_after is not None, "a job that was being sent has a latest time"
    return replace(
        job,
        state=JobState.BLOCKED,
        state_reason=why,
        next_action_time=job.not_after,
        error_reason=reason,
        error_message=message,
    )


def _ended(job: PostJob, attempt: AttemptState, reason: str, message: str) -> Settlement:
    return Settlement(job=job, attempt_state=attempt, error_reason=reason, error_message=message)
