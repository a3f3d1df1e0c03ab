"""Settlements: how an outcome changes a job and its attempt."""

from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, assert_never

from publisher_service.domain.destination import Sign
from publisher_service.domain.doubt import ended_unsent, may_be_resent, needs_attention, unknown
from publisher_service.domain.outcome import (
    CONTENT_UNREADABLE,
    Absent,
    Accepted,
    Ambiguous,
    AuthRefused,
    Finding,
    Found,
    Level,
    NoProof,
    NotBegun,
    NotSent,
    Outcome,
    RateLimited,
    Rejected,
    Repeatable,
)
from publisher_service.domain.policy import Policy
from publisher_service.domain.post_job import OPEN_ATTEMPT, STOPPED, JobState, PostJob, Reason, moved
from servicekit.record import record

# A provider's clock may differ from our own by this much.
_SKEW = timedelta(minutes=1)
FAILURES_TO_PAUSE = 3
"""Requests of an account in a row that found no provider, after which it pauses. An index has this number, too."""


class AttemptState(StrEnum):
    SENDING = "SENDING"
    UNKNOWN = "UNKNOWN"
    ACCEPTED = "ACCEPTED"
    REJECTED = "REJECTED"
    NOT_SENT = "NOT_SENT"
    # It is not out, or it does not matter: the post was sent again where a repeat is ignored.
    ABSENT = "ABSENT"
    # Still open when the proof of another attempt ended the job.
    ABANDONED = "ABANDONED"


@record(frozen=True, slots=True, kw_only=True)
class Settlement:
    """The job after an outcome, and the end of its attempt."""

    job: PostJob
    attempt_state: AttemptState
    error_reason: str = ""
    error_message: str = ""
    disconnects: bool = False
    # The provider asked for a pause: no post of the account goes out before this.
    pause_until: datetime | None = None
    # The fence of the attempt, if it is not the job's last one.
    attempt_fence: int | None = None
    # What the provider's answer says about the destination of the post.
    sign: Sign = Sign.NONE
    # Requests of the account in a row that found no provider, with this one.
    failures: int = 0
    # No post of any account goes to the provider before this.
    closed_until: datetime | None = None
    # No post of the account goes to the channel of this one before this.
    channel_closed_until: datetime | None = None

    @property
    def fence(self) -> int:
        return self.job.fence if self.attempt_fence is None else self.attempt_fence


def settle(job: PostJob, outcome: Outcome, *, policy: Policy, now: datetime, draw: float) -> Settlement:
    """Returns the job, which was SENDING, in its next version. `draw` in [0, 1) spreads retries."""
    assert job.state is JobState.SENDING
    match outcome:
        case Accepted():
            # A provider that recognizes a repeat answers with the first post, which may be older than this attempt.
            since = job.create_time if job.in_doubt else job.last_attempt_time
            return Settlement(
                job=_published(job, outcome, now=now, since=since, last_attempt_time=now),
                attempt_state=AttemptState.ACCEPTED,
                sign=Sign.SUCCESS,
            )
        case Rejected(reason=reason, message=message):
            after = _given_up(job, Reason.RESEND_REFUSED, policy, now)
            return replace(_ended(after, AttemptState.REJECTED, reason, message), sign=_sign(outcome))
        case AuthRefused(message=message):
            blocked = _blocked(job, Reason.ACCOUNT_NOT_CONNECTED, now)
            return replace(_ended(blocked, AttemptState.REJECTED, "AUTH", message), disconnects=True)
        case RateLimited(message=message, retry_after=retry_after):
            until = now + retry_after
            waiting = _unspent(job, Reason.RATE_LIMITED, until, now)
            return replace(_ended(waiting, AttemptState.NOT_SENT, "RATE_LIMITED", message), pause_until=until)
        case NotBegun(reason=reason, message=message):
            return _ended(_not_tried(job, reason, policy, now, draw), AttemptState.NOT_SENT, reason, message)
        case NotSent(reason=reason, message=message):
            return _ended(_not_sent(job, policy, now, draw), AttemptState.NOT_SENT, reason, message)
        case Ambiguous(reason=reason, message=message):
            return _ended(unknown(job, policy=policy, now=now), AttemptState.UNKNOWN, reason, message)
    assert_never(outcome)


def settle_within_budget(
    job: PostJob, outcome: Outcome, *, failures: int, policy: Policy, now: datetime, draw: float
) -> Settlement:
    """Settles an outcome as the budget and the quotas of the account have it.

    `failures` requests of the account in a row have found no provider. From the third on the account pauses, longer
    each time, and its next request is a probe: it spends no attempt, for the outage is not the post's fault.
    """
    match outcome:
        case NotSent(reason=reason, message=message) if failures + 1 >= FAILURES_TO_PAUSE:
            until = now + policy.pause(failures + 2 - FAILURES_TO_PAUSE, draw=draw)
            waiting = _unspent(job, Reason.RETRY, until, now)
            paused = _ended(waiting, AttemptState.NOT_SENT, reason, message)
            return replace(paused, pause_until=until, failures=failures + 1)
        case NotSent():
            settled = settle(job, outcome, policy=policy, now=now, draw=draw)
            return replace(settled, failures=failures + 1)
        case NotBegun() | Ambiguous():
            # No answer, as far as that is known.
            settled = replace(settle(job, outcome, policy=policy, now=now, draw=draw), failures=failures)
            return _with_quotas(settled, outcome, now)
        case _:
            return _with_quotas(settle(job, outcome, policy=policy, now=now, draw=draw), outcome, now)


def _with_quotas(settled: Settlement, outcome: Outcome, now: datetime) -> Settlement:
    """Returns the settlement with the pauses that the provider's quotas ask for."""
    if isinstance(outcome, RateLimited) and outcome.level is Level.CHANNEL:
        # Posts to other channels may go.
        settled = replace(settled, pause_until=None)
    quotas = outcome.quotas if isinstance(outcome, Accepted | RateLimited | Ambiguous) else ()
    for quota in quotas:
        if quota.remaining == 0 and quota.level is Level.ACCOUNT:
            settled = replace(settled, pause_until=max(settled.pause_until or now, now + quota.reset_after))
        if quota.remaining == 0 and quota.level is Level.CHANNEL:
            settled = replace(settled, channel_closed_until=now + quota.reset_after)
        if quota.remaining == 0 and quota.level is Level.APPLICATION:
            settled = replace(settled, closed_until=now + quota.reset_after)
    if isinstance(outcome, RateLimited) and outcome.level is Level.APPLICATION:
        settled = replace(settled, closed_until=max(settled.closed_until or now, now + outcome.retry_after))
    if isinstance(outcome, RateLimited) and outcome.level is Level.CHANNEL:
        until = max(settled.channel_closed_until or now, now + outcome.retry_after)
        settled = replace(settled, channel_closed_until=until)
    return settled


def uncertain(job: PostJob, reason: str, message: str, *, policy: Policy, now: datetime) -> Settlement:
    """Returns a SENDING job without an answer, to be looked up once the provider has had time to show the post."""
    assert job.state is JobState.SENDING
    return _ended(unknown(job, policy=policy, now=now), AttemptState.UNKNOWN, reason, message)


def disowned(job: PostJob, *, in_doubt: bool, policy: Policy, now: datetime, draw: float) -> Settlement:
    """Returns a SENDING or UNKNOWN job whose last attempt is known not to have been sent; that attempt is not spent.

    `in_doubt` tells whether another attempt of the run may have gone out.
    """
    assert job.state in OPEN_ATTEMPT
    until = now + policy.retry_delay(1, draw=draw)
    waiting = moved(
        job, JobState.WAITING, now=now, reason=Reason.RETRY, until=until, attempts=job.attempts - 1, in_doubt=in_doubt
    )
    return _ended(waiting, AttemptState.NOT_SENT, "CLAIM_FAILED", "the claim was not confirmed: nothing was sent")


def unsent_after_all(
    job: PostJob, outcome: NotBegun | NotSent, *, in_doubt: bool, policy: Policy, now: datetime, draw: float
) -> Settlement:
    """Returns an UNKNOWN job whose process says only now that its last attempt sent nothing, as if said in time.

    `in_doubt` tells whether the run was in doubt before that attempt.
    """
    assert job.state is JobState.UNKNOWN
    sending = replace(job, state=JobState.SENDING, state_reason=Reason.NONE, unknown_until=None, in_doubt=in_doubt)
    return settle(sending, outcome, policy=policy, now=now, draw=draw)


def resolve(
    job: PostJob, finding: Finding, *, policy: Policy, now: datetime, draw: float, since: datetime | None = None
) -> Settlement:
    """Returns what a look makes of an UNKNOWN job; in the same version when the look proved nothing.

    `since` is when the run's first attempt of unknown outcome began: no post of the run is older.
    """
    assert job.state is JobState.UNKNOWN
    match finding:
        case Found():
            return evidence(job, finding, now=now, since=since)
        case Absent() | Repeatable() if may_be_resent(job):
            until = now + policy.retry_delay(job.attempts, draw=draw)
            waiting = moved(job, JobState.WAITING, now=now, reason=Reason.RETRY, until=until, in_doubt=True)
            return _closed(waiting, AttemptState.ABSENT)
        case Absent():
            return _closed(_looked(job, "the provider does not show the post", policy, now), AttemptState.UNKNOWN)
        case Repeatable(message=message) | NoProof(message=message) | AuthRefused(message=message):
            return _closed(_looked(job, message, policy, now), AttemptState.UNKNOWN)
    assert_never(finding)


def evidence(job: PostJob, proof: Found | Accepted, *, now: datetime, since: datetime | None = None) -> Settlement:
    """Returns the job as published. Proof counts in any state, no matter how late it comes or who brings it.

    If a later attempt is out meanwhile, the account waits for the end of its lease: it sends one post at a time.
    """
    return Settlement(
        job=_published(job, proof, now=now, since=since or job.create_time),
        attempt_state=AttemptState.ACCEPTED,
        pause_until=job.next_action_time if job.state is JobState.SENDING else None,
        sign=Sign.SUCCESS,
    )


def publish_time(reported: datetime | None, *, since: datetime | None, now: datetime) -> datetime:
    """Returns the reported time of a post if it is possible, otherwise the time at which the proof came.

    The provider's clock may differ from our own by `_SKEW`. No request has begun before `since`.
    """
    if reported is None or reported > now + _SKEW or (since is not None and reported < since - _SKEW):
        return now
    return min(reported, now)


def _sign(refusal: Rejected) -> Sign:
    if refusal.is_repeat or refusal.reason == CONTENT_UNREADABLE:
        return Sign.NONE
    return Sign.PEER_BLOCK if refusal.peer_blocked else Sign.FAILURE


def _published(
    job: PostJob, proof: Found | Accepted, *, now: datetime, since: datetime | None, **changes: Any
) -> PostJob:
    return moved(
        job,
        JobState.PUBLISHED,
        now=now,
        in_doubt=False,
        publish_time=publish_time(proof.publish_time, since=since, now=now),
        external_id=proof.external_id,
        external_url=proof.external_url,
        evidence_kind="PROVIDER_ID",
        error_reason="",
        error_message="",
        **changes,
    )


def _not_sent(job: PostJob, policy: Policy, now: datetime, draw: float) -> PostJob:
    if job.attempts >= job.max_attempts:
        return _given_up(job, Reason.ATTEMPTS_EXHAUSTED, policy, now)
    until = now + policy.retry_delay(job.attempts, draw=draw)
    return moved(job, JobState.WAITING, now=now, reason=Reason.RETRY, until=until)


def _given_up(job: PostJob, why: Reason, policy: Policy, now: datetime) -> PostJob:
    """Returns the job after its last attempt: failed, or looked up if an earlier attempt may have gone out."""
    if job.in_doubt:
        return unknown(job, policy=policy, now=now, reason=why)
    return ended_unsent(job, JobState.FAILED, now=now)


def _not_tried(job: PostJob, reason: str, policy: Policy, now: datetime, draw: float) -> PostJob:
    if reason in STOPPED:
        return _blocked(job, reason, now)
    if reason == Reason.CREDENTIALS_UNREADABLE:
        return _unspent(job, Reason.CREDENTIALS_UNREADABLE, now + policy.repaired * (0.5 + draw / 2), now)
    return _unspent(job, Reason.RETRY, now + policy.retry_delay(1, draw=draw), now)


def _blocked(job: PostJob, why: str, now: datetime) -> PostJob:
    assert job.not_after is not None, "a job that was being sent has a latest time"
    return moved(job, JobState.BLOCKED, now=now, reason=why, until=job.not_after, attempts=job.attempts - 1)


def _unspent(job: PostJob, why: Reason, until: datetime, now: datetime) -> PostJob:
    return moved(job, JobState.WAITING, now=now, reason=why, until=until, attempts=job.attempts - 1)


def _looked(job: PostJob, seen: str, policy: Policy, now: datetime) -> PostJob:
    """Returns the job after a look that proved nothing: to be looked up again, or at its deadline left to a person."""
    deadline = job.unknown_until or now + policy.unknown_deadline
    if deadline <= now:
        return needs_attention(job, f"no proof was found in time; the last look: {seen}", now=now)
    again = now + policy.look_delay(now - (job.last_attempt_time or now))
    return replace(job, next_action_time=min(again, deadline), unknown_until=deadline, in_doubt=True)


def _closed(job: PostJob, attempt: AttemptState) -> Settlement:
    return Settlement(job=job, attempt_state=attempt, error_reason=job.error_reason, error_message=job.error_message)


def _ended(job: PostJob, attempt: AttemptState, reason: str, message: str) -> Settlement:
    """Records the error on the job and on its attempt."""
    after = replace(job, error_reason=reason, error_message=message, last_attempt_time=job.update_time)
    return Settlement(job=after, attempt_state=attempt, error_reason=reason, error_message=message)
