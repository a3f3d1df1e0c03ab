"""Runs that may have sent something end with proof or with a person, and their attempts are limited."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publisher_service.domain.claim import Command, Verdict
from publisher_service.domain.doubt import ended_unsent
from publisher_service.domain.outcome import (
    Absent,
    Accepted,
    Ambiguous,
    AuthRefused,
    Finding,
    Found,
    NoProof,
    NotBegun,
    NotSent,
    Outcome,
    RateLimited,
    Rejected,
)
from publisher_service.domain.policy import Policy
from publisher_service.domain.post_job import JobState, PostJob, Reason, Target, moved
from publisher_service.domain.refusal import refused
from publisher_service.domain.settlement import AttemptState, Settlement, evidence, resolve, settle

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
LATER = NOW + timedelta(hours=24)
POLICY = Policy()
PAGE = Target(social_account_id="page", channel="facebook")
UNSENT = frozenset({JobState.FAILED, JobState.MISSED, JobState.CANCELED})

AMBIGUOUS = Ambiguous(reason="TIMEOUT_AFTER_WRITE", message="no answer")
REJECTED = Rejected(reason="STATUS_422", message="no")
# Requests that may have reached the provider spend an attempt.
SPENDING: list[Outcome] = [AMBIGUOUS, REJECTED, NotSent(reason="CONNECTION_REFUSED", message="m")]
UNSPENT: list[Outcome] = [
    AuthRefused(message="m"),
    RateLimited(message="m", retry_after=timedelta(seconds=1)),
    NotBegun(reason="LEASE_TOO_SHORT", message="m"),
]
FINDINGS: list[Finding] = [Absent(), NoProof(message="m"), AuthRefused(message="m")]


def a_job(state: JobState = JobState.SENDING, *, attempts: int = 1, in_doubt: bool = False) -> PostJob:
    moves = state in (JobState.SENDING, JobState.UNKNOWN, JobState.WAITING, JobState.READY, JobState.BLOCKED)
    return PostJob(
        organization_id="acme",
        id="job",
        draft_id="draft",
        target=PAGE,
        state=state,
        slot_id="slot",
        schedule_time=NOW,
        not_after=LATER,
        next_action_time=NOW if moves else None,
        attempts=attempts,
        max_attempts=5,
        fence=attempts,
        in_doubt=in_doubt,
        unknown_until=NOW + timedelta(hours=1) if state is JobState.UNKNOWN else None,
        last_attempt_time=NOW,
        create_time=NOW,
        update_time=NOW,
    )


def claimed_again(job: PostJob, now: datetime) -> PostJob:
    """Returns the job as the claim of its next attempt leaves it."""
    return replace(
        moved(job, JobState.SENDING, now=now, until=now), attempts=job.attempts + 1, fence=job.fence + 1,
        last_attempt_time=now,
    )  # fmt: skip


def settled(job: PostJob, outcome: Outcome, *, now: datetime = NOW) -> Settlement:
    return settle(job, outcome, policy=POLICY, now=now, draw=0.5)


def looked(job: PostJob, finding: Finding, *, now: datetime = NOW) -> Settlement:
    return resolve(job, finding, policy=POLICY, now=now, draw=0.5, since=NOW)


@given(
    st.lists(st.sampled_from([*SPENDING, *UNSPENT, AMBIGUOUS, AMBIGUOUS]), max_size=60),
    st.lists(st.sampled_from(FINDINGS), max_size=60),
)
def test_requests_are_limited_and_no_run_in_doubt_ends_unsent(outcomes: list[Outcome], findings: list[Finding]) -> None:
    job, now, spent, doubted = a_job(), NOW, 0, False
    while True:
        if job.state is JobState.SENDING:
            if not outcomes:
                break
            outcome = outcomes.pop()
            spent += outcome in SPENDING
            doubted = doubted or outcome is AMBIGUOUS
            job = settled(job, outcome, now=now).job
        elif job.state is JobState.UNKNOWN:
            assert job.next_action_time is not None
            now = max(now, job.next_action_time)
            finding = findings.pop() if findings else NoProof(message="m")
            job = looked(job, finding, now=now).job
        elif job.state in (JobState.WAITING, JobState.BLOCKED):
            assert job.next_action_time is not None
            now = max(now, job.next_action_time) if job.state is JobState.WAITING else now
            job = claimed_again(job, now)
        else:
            break
        assert spent <= job.max_attempts
        assert job.in_doubt == doubted
    assert not (doubted and job.state in UNSENT)


def test_an_absent_post_backs_off_before_it_is_sent_again() -> None:
    after = looked(a_job(JobState.UNKNOWN, attempts=2, in_doubt=True), Absent())
    assert (after.job.state, after.job.state_reason) == (JobState.WAITING, Reason.RETRY)
    assert after.job.next_action_time == NOW + POLICY.retry_delay(2, draw=0.5)
    assert after.attempt_state is AttemptState.ABSENT
    assert after.job.in_doubt


@pytest.mark.parametrize("reason", [Reason.RESEND_REFUSED, Reason.ATTEMPTS_EXHAUSTED, Reason.CONTENT_LOST])
def test_a_job_that_may_not_be_resent_is_looked_up_until_its_deadline(reason: Reason) -> None:
    job = replace(a_job(JobState.UNKNOWN, in_doubt=True), state_reason=reason)
    after = looked(job, Absent()).job
    assert (after.state, after.state_reason, after.version) == (JobState.UNKNOWN, reason, job.version)
    assert after.next_action_time is not None
    assert NOW < after.next_action_time <= NOW + timedelta(hours=1)
    end = looked(after, Absent(), now=NOW + timedelta(hours=1)).job
    assert end.state is JobState.NEEDS_ATTENTION
    assert "the provider does not show the post" in end.error_message


def test_no_attempt_follows_the_last_one_even_if_it_is_absent() -> None:
    unknown = settled(a_job(attempts=5), AMBIGUOUS).job
    after = looked(unknown, Absent()).job
    assert after.state is JobState.UNKNOWN


@pytest.mark.parametrize(
    ("outcome", "attempts", "reason"),
    [(REJECTED, 2, Reason.RESEND_REFUSED), (SPENDING[2], 5, Reason.ATTEMPTS_EXHAUSTED)],
)
def test_a_resend_that_ends_badly_does_not_fail_the_run(outcome: Outcome, attempts: int, reason: Reason) -> None:
    after = settled(a_job(attempts=attempts, in_doubt=True), outcome).job
    assert (after.state, after.state_reason, after.in_doubt) == (JobState.UNKNOWN, reason, True)
    assert after.unknown_until == NOW + POLICY.unknown_deadline
    assert settled(a_job(attempts=attempts), outcome).job.state is JobState.FAILED


@pytest.mark.parametrize("state", sorted(UNSENT))
def test_a_run_ends_unsent_only_when_it_is_not_in_doubt(state: JobState) -> None:
    assert ended_unsent(a_job(JobState.WAITING), state, now=NOW).state is state
    doubted = ended_unsent(a_job(JobState.WAITING, in_doubt=True), state, now=NOW)
    assert doubted.state is JobState.NEEDS_ATTENTION
    assert doubted.error_reason == "OUTCOME_UNKNOWN"
    assert doubted.error_message.startswith(f"it would be {state}")
    assert "attempts 1 of 5; the last at 2026-03-02T09:00:00+00:00" in doubted.error_message


def test_a_withdrawn_text_that_may_be_out_is_left_to_a_person() -> None:
    command = Command(
        organization_id="acme", draft_id="draft", target=PAGE, slot_id="slot", slot_revision=1, emission=1,
        schedule_time=NOW, not_after=LATER, content_revision=1, max_attempts=5, traceparent="",
    )  # fmt: skip
    waiting = a_job(JobState.WAITING, in_doubt=True)
    after = refused(waiting, command, Verdict.WITHDRAWN, now=NOW)
    assert after.state is JobState.NEEDS_ATTENTION


def test_look_ups_without_proof_become_rarer_and_end_at_the_deadline() -> None:
    job, now, waits = settled(a_job(), AMBIGUOUS).job, NOW, list[timedelta]()
    deadline = job.unknown_until
    while job.state is JobState.UNKNOWN:
        assert job.next_action_time is not None
        waits.append(job.next_action_time - now)
        now = job.next_action_time
        job = looked(job, NoProof(message="401"), now=now).job
    assert waits[0] == POLICY.unknown_settle
    assert waits[1] == timedelta(minutes=1)
    assert sorted(waits[1:-1]) == waits[1:-1]
    assert len(waits) < 12
    assert (job.state, now) == (JobState.NEEDS_ATTENTION, deadline)
    assert "401" in job.error_message


def test_a_provider_without_look_ups_leaves_the_job_to_a_person() -> None:
    blind = replace(POLICY, unknown_deadline=timedelta(0))
    unknown = settle(a_job(), AMBIGUOUS, policy=blind, now=NOW, draw=0.5).job
    assert (unknown.state, unknown.next_action_time) == (JobState.UNKNOWN, NOW)
    after = resolve(unknown, NoProof(message="no look-up"), policy=blind, now=NOW, draw=0.5).job
    assert (after.state, after.error_reason) == (JobState.NEEDS_ATTENTION, "TIMEOUT_AFTER_WRITE")


def test_a_look_up_sets_the_deadline_of_a_job_that_has_none() -> None:
    job = replace(a_job(JobState.UNKNOWN), unknown_until=None)
    after = looked(job, NoProof(message="m")).job
    assert (after.unknown_until, after.in_doubt) == (NOW + POLICY.unknown_deadline, True)


@pytest.mark.parametrize("outcome", UNSPENT, ids=lambda outcome: type(outcome).__name__)
def test_an_outcome_that_proves_nothing_went_out_costs_no_attempt(outcome: Outcome) -> None:
    after = settled(a_job(attempts=5, in_doubt=True), outcome).job
    assert (after.attempts, after.in_doubt) == (4, True)
    assert after.state in (JobState.WAITING, JobState.BLOCKED)


def test_a_wait_for_our_own_fault_names_the_fault() -> None:
    reason = Reason.CREDENTIALS_UNREADABLE
    after = settled(a_job(), NotBegun(reason=reason, message="m")).job
    assert (after.state, after.state_reason, after.attempts) == (JobState.WAITING, reason, 0)


@pytest.mark.parametrize(
    ("reported", "believed"),
    [
        (None, NOW),
        (NOW - timedelta(seconds=30), NOW - timedelta(seconds=30)),
        (NOW - timedelta(minutes=10, seconds=30), NOW - timedelta(minutes=10, seconds=30)),
        (NOW - timedelta(minutes=12), NOW),
        (NOW + timedelta(seconds=30), NOW),
        (NOW + timedelta(minutes=2), NOW),
    ],
    ids=["unsaid", "before", "within the skew", "before the attempt", "a little ahead", "in the future"],
)
def test_a_publish_time_is_the_providers_if_it_is_plausible(reported: datetime | None, believed: datetime) -> None:
    began = NOW - timedelta(minutes=10)
    found = Found(external_id="x", external_url="u", publish_time=reported)
    assert resolve(
        a_job(JobState.UNKNOWN, in_doubt=True), found, policy=POLICY, now=NOW, draw=0.5, since=began
    ).job.publish_time == believed  # fmt: skip
    accepted = Accepted(external_id="x", external_url="u", publish_time=reported)
    sending = replace(a_job(), last_attempt_time=began)
    assert settled(sending, accepted).job.publish_time == believed


def test_a_recognized_resend_has_the_publish_time_of_the_first_attempt() -> None:
    first = NOW - timedelta(minutes=10)
    resent = replace(a_job(attempts=2, in_doubt=True), create_time=first - timedelta(days=1))
    answer = Accepted(external_id="x", external_url="u", publish_time=first)
    assert settled(resent, answer).job.publish_time == first
    impossible = replace(answer, publish_time=resent.create_time - timedelta(days=1))
    assert settled(resent, impossible).job.publish_time == NOW
    assert evidence(resent, answer, now=NOW).job.publish_time == first
    assert evidence(resent, impossible, now=NOW).job.publish_time == NOW
