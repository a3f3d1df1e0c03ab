"""Refused commands: the job waits, is blocked, or ends unsent."""

from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from publisher_service.domain.claim import Verdict
from publisher_service.domain.post_job import (
    ENDED_RUN,
    NOT_STARTED,
    OPEN_ATTEMPT,
    JobState,
    PostJob,
    Reason,
)
from publisher_service.domain.refusal import CHANGING, DOUBTED, LIMITING, refused
from tests.unit.publisher_service.post_jobs import LATE, LATER, NOW, check, command, jobs, sending


@given(jobs(), st.sampled_from(sorted(CHANGING - LIMITING.keys())), st.sampled_from(["", "slot-1", "slot-3"]))
def test_each_verdict_waits_blocks_or_ends_the_job(job: PostJob, verdict: Verdict, slot_id: str) -> None:
    assume(verdict is not Verdict.CONTENT_LOST or job.in_doubt)
    assume(verdict is not Verdict.EXHAUSTED or job.state in NOT_STARTED - {JobState.PENDING})
    after = refused(job, command(slot_id), verdict, now=NOW)
    if job.state in OPEN_ATTEMPT or job.state in (JobState.PUBLISHED, JobState.NEEDS_ATTENTION):
        assert after is job
        return
    if after.version == job.version:
        assert (after.state, after.state_reason, after.slot_id) == (job.state, job.state_reason, job.slot_id)
        assert after.next_action_time is not None
        return
    check(job, after)
    assert (after.slot_id, after.not_after, after.max_attempts) == (slot_id, LATER, 7)
    if after.state is not JobState.NEEDS_ATTENTION:
        assert after.error_message == ("" if job.state in ENDED_RUN else job.error_message)
    match verdict:
        case Verdict.MISSED:
            assert after.state is (JobState.NEEDS_ATTENTION if job.in_doubt else JobState.MISSED)
        case Verdict.REMOVED:
            assert after.state is (JobState.NEEDS_ATTENTION if job.in_doubt else JobState.CANCELED)
        case Verdict.EXHAUSTED | Verdict.MEDIA_REFUSED:
            assert after.state is (JobState.NEEDS_ATTENTION if job.in_doubt else JobState.FAILED)
        case Verdict.CONTENT_LOST:
            assert (after.state, after.state_reason) == (JobState.UNKNOWN, Reason.CONTENT_LOST)
        case Verdict.WITHDRAWN if job.in_doubt:
            assert after.state is JobState.NEEDS_ATTENTION
        case Verdict.CONTENT_PENDING | Verdict.MEDIA:
            assert (after.state, after.state_reason) == (JobState.WAITING, verdict.value)
            assert after.next_action_time == LATER
        case _:
            assert (after.state, after.state_reason) == (JobState.BLOCKED, verdict.value)
            assert after.next_action_time == LATER


def test_the_same_refusal_again_changes_nothing() -> None:
    blocked = refused(sending(JobState.SCHEDULED), command("slot-1"), Verdict.NOT_APPROVED, now=NOW)
    again = refused(blocked, command("slot-1"), Verdict.NOT_APPROVED, now=LATER)
    assert again == blocked
    withdrawn = refused(blocked, command("slot-1"), Verdict.WITHDRAWN, now=LATER)
    assert withdrawn.version == blocked.version + 1


def test_the_same_refusal_of_a_moved_slot_takes_its_times() -> None:
    """The command may arrive before the announcement of the move."""
    blocked = refused(sending(JobState.SCHEDULED), command("slot-1"), Verdict.NOT_APPROVED, now=NOW)
    moved_on = replace(command("slot-1"), slot_revision=2, schedule_time=LATER, not_after=LATE)
    again = refused(blocked, moved_on, Verdict.NOT_APPROVED, now=NOW)
    assert (again.state, again.version) == (JobState.BLOCKED, blocked.version + 1)
    assert (again.slot_revision, again.schedule_time, again.not_after) == (2, LATER, LATE)
    assert again.next_action_time == LATE


@given(jobs(*NOT_STARTED), st.sampled_from(sorted(LIMITING)))
def test_a_post_over_a_limit_waits_for_it_and_spends_no_attempt(job: PostJob, verdict: Verdict) -> None:
    after = refused(job, command("slot-3"), verdict, now=NOW, limit_time=NOW)
    check(job, after)
    assert (after.state, after.state_reason) == (JobState.WAITING, verdict.value)
    assert (after.next_action_time, after.expected_time, after.attempts) == (LATER, NOW, job.attempts)
    assert bool(after.parked_on) is (verdict is not Verdict.SEND_WINDOW)
    assert refused(after, command("slot-3"), verdict, now=LATER, limit_time=NOW) is after


def test_verdicts_that_rest_on_unlocked_rows_are_doubted() -> None:
    holds = {verdict for verdict in Verdict if verdict.endswith("_ON_HOLD")}
    facts_of_gate = {Verdict.ACCOUNT_DISABLED, *LIMITING}
    assert DOUBTED | {Verdict.MISSED, Verdict.EXHAUSTED} | holds | facts_of_gate == CHANGING
    assert not facts_of_gate & DOUBTED
    assert not holds & DOUBTED, "the claim locks the gate, and keeps all other holds from changing"
