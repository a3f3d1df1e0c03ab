"""What an outcome makes of a job and its attempt."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, assert_never

from publisher_service.domain.outcome import (
    Absent,
    Accepted,
    Ambiguous,
    AuthRefused,
    Finding,
    Found,
    NoProof,
    NotSent,
    NotTried,
    Outcome,
    RateLimited,
    Rejected,
)
from publisher_service.domain.policy import Policy
from publisher_service.domain.post_job import JobState, PostJob, Reason, moved


class AttemptState(StrEnum):
    SENDING = "SENDING"
    UNKNOWN = "UNKNOWN"
    ACCEPTED = "ACCEPTED"
    REJECTED = "REJECTED"
    NOT_SENT = "NOT_SENT"
    ABSENT = "ABSENT"
    # Still open when the proof of another try ended the job.
    ABANDONED = "ABANDONED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """The job after the outcome, and how its attempt ended."""

    job: PostJob
    attempt_state: AttemptState
    error_reason: str = ""
    error_message: str = ""
    disconnects: bool = False
    # The provider asked for a pause: no post of the account goes out before.
    pause_until: datetime | None = None


def settle(job: PostJob, outcome: Outcome, *, policy: Policy, now: datetime) -> Settlement:
    """`job` is SENDING; the result has the next version."""
    assert job.state is JobState.SENDING
    match outcome:
        case Accepted(external_id=external_id, external_url=external_url):
            after = _published(job, external_id, external_url, now, last_attempt_time=now)
            return Settlement(job=after, attempt_state=AttemptState.ACCEPTED)
        case Rejected(reason=reason, message=message):
            return _ended(moved(job, JobState.FAILED, now=now), AttemptState.REJECTED, reason, message)
        case AuthRefused(message=message):
            assert job.not_after is not None, "a job that was being sent has a latest time"
            blocked = moved(job, JobState.BLOCKED, now=now, reason=Reason.ACCOUNT_NOT_CONNECTED, until=job.not_after)
            return replace(_ended(blocked, AttemptState.REJECTED, "AUTH", message), disconnects=True)
        case RateLimited(message=message, retry_after=retry_after):
            until = now + retry_after
            waiting = _unspent(job, Reason.RATE_LIMITED, until, now)
            return replace(_ended(waiting, AttemptState.NOT_SENT, "RATE_LIMITED", message), pause_until=until)
        case NotTried(reason=reason, message=message):
            waiting = _unspent(job, Reason.RETRY, now + policy.retry_delay(1), now)
            return _ended(waiting, AttemptState.NOT_SENT, reason, message)
        case NotSent(reason=reason, message=message):
            return _ended(_retried(job, policy, now), AttemptState.NOT_SENT, reason, message)
        case Ambiguous(reason=reason, message=message):
            unknown = moved(job, JobState.UNKNOWN, now=now, until=now + policy.unknown_settle)
            return _ended(unknown, AttemptState.UNKNOWN, reason, message)
    assert_never(outcome)


def uncertain(job: PostJob, reason: str, message: str, *, policy: Policy, now: datetime) -> Settlement:
    """Nobody heard an answer: to be found out, after the provider has had time to show the post."""
    return settle(job, Ambiguous(reason=reason, message=message), policy=policy, now=now)


def resolve(job: PostJob, finding: Finding, *, now: datetime) -> Settlement | None:
    """`job` is UNKNOWN. None: nothing is proven, look again at the job's `next_action_time` put off by the caller."""
    assert job.state is JobState.UNKNOWN
    match finding:
        case Found():
            return evidence(job, finding, now=now)
        case Absent():
            return Settlement(
                job=moved(job, JobState.READY, now=now, until=now),
                attempt_state=AttemptState.ABSENT,
                error_reason=job.error_reason,
                error_message=job.error_message,
            )
        case NoProof():
            return None
    assert_never(finding)


def evidence(job: PostJob, found: Found, *, now: datetime) -> Settlement:
    """Proof that a post is there counts whoever brings it, and however late."""
    return Settlement(
        job=_published(job, found.external_id, found.external_url, now), attempt_state=AttemptState.ACCEPTED
    )


def _published(job: PostJob, external_id: str, external_url: str, now: datetime, **changes: Any) -> PostJob:
    return moved(
        job,
        JobState.PUBLISHED,
        now=now,
        publish_time=now,
        external_id=external_id,
        external_url=external_url,
        evidence_kind="PROVIDER_ID",
        error_reason="",
        error_message="",
        **changes,
    )


def _retried(job: PostJob, policy: Policy, now: datetime) -> PostJob:
    if job.attempts >= job.max_attempts:
        return moved(job, JobState.FAILED, now=now)
    until = now + policy.retry_delay(job.attempts)
    return moved(job, JobState.WAITING, now=now, reason=Reason.RETRY, until=until)


def _unspent(job: PostJob, why: Reason, until: datetime, now: datetime) -> PostJob:
    return moved(job, JobState.WAITING, now=now, reason=why, until=until, attempts=job.attempts - 1)


def _ended(job: PostJob, attempt: AttemptState, reason: str, message: str) -> Settlement:
    """What went wrong stands on the job and on its attempt."""
    after = replace(job, error_reason=reason, error_message=message, last_attempt_time=job.update_time)
    return Settlement(job=after, attempt_state=attempt, error_reason=reason, error_message=message)
