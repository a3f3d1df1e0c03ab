"""Settlements: the state that an outcome, a lost sender or proof leaves a post job in."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publisher_service.domain.destination import Sign
from publisher_service.domain.outcome import (
    CONTENT_UNREADABLE,
    Accepted,
    Ambiguous,
    AuthRefused,
    Found,
    NotBegun,
    NotSent,
    Outcome,
    RateLimited,
    Rejected,
)
from publisher_service.domain.post_job import (
    JobState,
    PostJob,
    Reason,
)
from publisher_service.domain.settlement import AttemptState, evidence, settle, uncertain
from tests.unit.publisher_service.post_jobs import LATER, NOW, POLICY, check, jobs, sending, words

outcomes: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(Accepted, external_id=words, external_url=words),
    st.builds(Rejected, reason=words, message=words, peer_blocked=st.booleans()),
    st.builds(AuthRefused, message=words),
    st.builds(NotSent, reason=words, message=words),
    st.builds(NotBegun, reason=words, message=words),
    st.builds(RateLimited, message=words, retry_after=st.timedeltas(timedelta(seconds=1), timedelta(days=1))),
    st.builds(Ambiguous, reason=words, message=words),
)


@given(jobs(JobState.SENDING), outcomes)
def test_every_outcome_settles_into_a_state_that_may_follow(job: PostJob, outcome: Outcome) -> None:
    settlement = settle(job, outcome, policy=POLICY, now=NOW, draw=0.5)
    check(job, settlement.job)
    assert settlement.job.last_attempt_time == NOW
    assert settlement.attempt_state is not AttemptState.SENDING
    assert settlement.disconnects == isinstance(outcome, AuthRefused)


@pytest.mark.parametrize(
    ("outcome", "state", "reason", "attempt"),
    [
        (Accepted(external_id="x", external_url="u"), JobState.PUBLISHED, "", AttemptState.ACCEPTED),
        (Rejected(reason="TOO_LONG", message="m"), JobState.FAILED, "", AttemptState.REJECTED),
        (AuthRefused(message="m"), JobState.BLOCKED, Reason.ACCOUNT_NOT_CONNECTED, AttemptState.REJECTED),
        (NotSent(reason="R", message="m"), JobState.WAITING, Reason.RETRY, AttemptState.NOT_SENT),
        (NotBegun(reason="R", message="m"), JobState.WAITING, Reason.RETRY, AttemptState.NOT_SENT),
        (
            RateLimited(message="m", retry_after=timedelta(seconds=7)),
            JobState.WAITING,
            Reason.RATE_LIMITED,
            AttemptState.NOT_SENT,
        ),
        (Ambiguous(reason="R", message="m"), JobState.UNKNOWN, "", AttemptState.UNKNOWN),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Outcome) else "",
)
def test_each_outcome_leads_to_its_state_reason_and_attempt_state(
    outcome: Outcome, state: JobState, reason: str, attempt: AttemptState
) -> None:
    settlement = settle(sending(), outcome, policy=POLICY, now=NOW, draw=0.5)
    assert (settlement.job.state, settlement.job.state_reason, settlement.attempt_state) == (state, reason, attempt)


@given(jobs(JobState.SENDING), st.sampled_from([NotBegun, RateLimited]))
def test_not_tried_and_rate_limited_cost_no_attempt(job: PostJob, kind: type[NotBegun] | type[RateLimited]) -> None:
    outcome = (
        NotBegun(reason="R", message="m") if kind is NotBegun else RateLimited(message="m", retry_after=timedelta(1))
    )
    after = settle(job, outcome, policy=POLICY, now=NOW, draw=0.5).job
    assert (after.state, after.attempts) == (JobState.WAITING, job.attempts - 1)


@given(jobs(JobState.SENDING))
def test_attempts_that_were_not_sent_are_limited(job: PostJob) -> None:
    after = settle(job, NotSent(reason="R", message="m"), policy=POLICY, now=NOW, draw=0.5).job
    used_up = JobState.UNKNOWN if job.in_doubt else JobState.FAILED
    assert after.state is (used_up if job.attempts >= job.max_attempts else JobState.WAITING)
    assert after.attempts == job.attempts


@pytest.mark.parametrize(
    ("outcome", "sign"),
    [
        (Accepted(external_id="1", external_url=""), Sign.SUCCESS),
        (Rejected(reason="NO_SUCH_CHAT", message=""), Sign.FAILURE),
        (Rejected(reason="GONE", message="", peer_blocked=True), Sign.PEER_BLOCK),
        (Rejected(reason="ALREADY_CONNECTED", message="", is_repeat=True), Sign.NONE),
        (Rejected(reason=CONTENT_UNREADABLE, message=""), Sign.NONE),
        (AuthRefused(message=""), Sign.NONE),
        (NotSent(reason="CONNECTION_REFUSED", message=""), Sign.NONE),
        (Ambiguous(reason="CONNECTION_LOST", message=""), Sign.NONE),
    ],
)
def test_an_answer_of_the_provider_is_a_sign_of_the_destination(outcome: Outcome, sign: Sign) -> None:
    assert settle(sending(JobState.SENDING), outcome, policy=POLICY, now=NOW, draw=0.5).sign is sign


def test_refused_credentials_block_the_job_until_its_latest_time() -> None:
    assert settle(sending(), AuthRefused(message="m"), policy=POLICY, now=NOW, draw=0.5).job.next_action_time == LATER


def test_a_lost_sender_is_asked_about_after_the_settle_time() -> None:
    lost = uncertain(sending(), "SENDER_LOST", "m", policy=POLICY, now=NOW)
    assert (lost.job.state, lost.attempt_state) == (JobState.UNKNOWN, AttemptState.UNKNOWN)
    assert lost.job.next_action_time == NOW + POLICY.unknown_settle
    assert (lost.job.error_reason, lost.error_reason) == ("SENDER_LOST", "SENDER_LOST")


@given(jobs(*(state for state in JobState if state is not JobState.PUBLISHED)))
def test_proof_counts_in_every_state(job: PostJob) -> None:
    after = evidence(job, Found(external_id="x", external_url="u"), now=NOW).job
    check(job, after)
    assert (after.state, after.external_id, after.error_reason) == (JobState.PUBLISHED, "x", "")
