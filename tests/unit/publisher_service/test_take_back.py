"""Take-backs and canceled slots: what has not started ends, what may be out stays, and order does not matter."""

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publisher_service.domain.plan import after_slot
from publisher_service.domain.post_job import (
    ENDED_RUN,
    NOT_STARTED,
    OPEN_ATTEMPT,
    JobState,
    PostJob,
    Reason,
    newer_slot,
)
from publisher_service.domain.take_back import CancelOutcome, SlotPost, taken_back, without_slot
from tests.unit.publisher_service.post_jobs import LATE, LATER, NOW, PAGE, check, jobs, sending, slot

MAY_BE_OUT = OPEN_ATTEMPT | {JobState.NEEDS_ATTENTION, JobState.PUBLISHED}
posts = st.builds(
    lambda slot_id, revision, sequence: a_post(slot_id, revision, sequence=sequence),
    st.sampled_from(["slot-1", "slot-2", "slot-3"]),
    st.integers(1, 4),
    st.integers(0, 2),
)


def a_post(slot_id: str = "slot-1", revision: int = 1, *, sequence: int = 0) -> SlotPost:
    return SlotPost(
        organization_id="acme",
        draft_id="draft",
        target=PAGE,
        slot_id=slot_id,
        slot_revision=revision,
        slot_sequence=sequence,
    )


def starts(job: PostJob, post: SlotPost) -> bool:
    """Returns whether a command of the slot may start the job, as the claim's statement decides."""
    is_stale = newer_slot(sending_of(post), job.slot_sequence, job.slot_id, job.slot_revision)
    is_its_own = (job.slot_id, job.slot_revision) == (post.slot_id, post.slot_revision)
    if is_stale or (job.state in ENDED_RUN and is_its_own):
        return False
    return job.state in NOT_STARTED | ENDED_RUN


def sending_of(post: SlotPost) -> PostJob:
    """Returns a job that has this slot."""
    return replace(sending(), slot_sequence=post.slot_sequence, slot_id=post.slot_id, slot_revision=post.slot_revision)


@given(jobs(), posts)
def test_after_canceled_nothing_starts_from_that_slot(job: PostJob, post: SlotPost) -> None:
    result = taken_back(job, post, now=NOW)
    gets_a_reason = job.state is JobState.CANCELED and result.job.run == job.run
    check(replace(job, run=job.run - 1) if gets_a_reason and result.job is not job else job, result.job)
    match result.outcome:
        case CancelOutcome.CANCELED:
            assert (result.job.state, result.job.state_reason) == (JobState.CANCELED, Reason.TAKEN_BACK)
            assert not starts(result.job, post)
            older = slot(post.slot_id, post.slot_revision, sequence=post.slot_sequence)
            assert after_slot(result.job, older, now=NOW) is result.job
            assert taken_back(result.job, post, now=LATER).outcome is CancelOutcome.CANCELED
            assert taken_back(result.job, post, now=LATER).job is result.job
        case CancelOutcome.TOO_LATE:
            assert result.job is job
            assert job.in_doubt or job.state in MAY_BE_OUT
        case CancelOutcome.ENDED:
            assert result.job is job
            assert not starts(job, post)


@given(jobs(), posts)
def test_a_later_revision_revives_what_was_taken_back(job: PostJob, post: SlotPost) -> None:
    result = taken_back(job, post, now=NOW)
    known = result.job.slot_sequence, result.job.slot_revision
    if result.outcome is CancelOutcome.CANCELED and known == (post.slot_sequence, post.slot_revision):
        later = slot(post.slot_id, post.slot_revision + 1, sequence=post.slot_sequence)
        again = after_slot(result.job, later, now=LATER)
        assert (again.state, again.run, again.schedule_time) == (JobState.SCHEDULED, result.job.run + 1, LATER)


def test_a_known_slot_keeps_its_time_and_an_unknown_one_has_none() -> None:
    scheduled = sending(JobState.SCHEDULED)
    known = taken_back(scheduled, a_post(), now=NOW).job
    assert (known.schedule_time, known.not_after) == (NOW, LATER)
    unknown = taken_back(scheduled, a_post(revision=2), now=NOW).job
    assert (unknown.schedule_time, unknown.not_after, unknown.slot_revision) == (None, None, 2)


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.MISSED])
def test_a_run_that_has_ended_counts_for_its_own_slot_alone(state: JobState) -> None:
    job = replace(sending(state), error_reason="REJECTED")
    assert taken_back(job, a_post(), now=NOW).outcome is CancelOutcome.ENDED
    newer = taken_back(job, a_post("slot-2"), now=NOW)
    assert (newer.outcome, newer.job.run, newer.job.error_reason) == (CancelOutcome.CANCELED, 2, "")


def test_a_job_in_a_state_of_a_newer_release_is_too_late() -> None:
    job = replace(sending(), state="UPLOADING")
    assert taken_back(job, a_post(revision=9), now=NOW).outcome is CancelOutcome.TOO_LATE


def test_a_job_without_its_target_is_taken_back_for_good() -> None:
    """The draft may regain the target, and would revive a job that is canceled for that reason alone."""
    removed = replace(sending(JobState.CANCELED), state_reason=Reason.TARGET_REMOVED)
    result = taken_back(removed, a_post(), now=NOW)
    assert (result.outcome, result.job.state_reason, result.job.run) == (CancelOutcome.CANCELED, Reason.TAKEN_BACK, 1)


@given(jobs(), posts)
def test_a_canceled_slot_takes_only_its_own_time(job: PostJob, post: SlotPost) -> None:
    after = without_slot(job, post, now=NOW)
    if after.version > job.version:
        check(job, after)
    if after is job:
        return
    assert not newer_slot(sending_of(post), job.slot_sequence, job.slot_id, job.slot_revision), "a newer slot stays"
    assert job.state in NOT_STARTED | ENDED_RUN
    assert (after.slot_id, after.slot_revision) == (post.slot_id, post.slot_revision)
    older = slot(post.slot_id, post.slot_revision, sequence=post.slot_sequence)
    assert after_slot(after, older, now=NOW) is after
    assert after.state in (JobState.PENDING, JobState.CANCELED, JobState.NEEDS_ATTENTION)
    assert (after.state is JobState.NEEDS_ATTENTION) == job.in_doubt


@pytest.mark.parametrize("before", [JobState.PENDING, JobState.FAILED, JobState.MISSED])
@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_slots_and_cancellations_end_alike_in_any_order(before: JobState, order: tuple[int, ...]) -> None:
    job = replace(sending(before), slot_id="slot-0", error_reason="REJECTED" if before is JobState.FAILED else "")
    for step in order:
        match step:
            case 0:
                job = after_slot(job, slot("slot-1", 1, sequence=1), now=NOW)
            case 1:
                job = after_slot(job, slot("slot-1", 2, sequence=1), now=NOW)
            case _:
                job = without_slot(job, a_post("slot-1", 3, sequence=1), now=NOW)
    assert (job.state, job.slot_revision, job.schedule_time) == (JobState.PENDING, 3, None)
    assert job.run == (1 if before is JobState.PENDING else 2)


def test_a_post_with_a_command_is_taken_back_with_its_slot() -> None:
    for state in (JobState.READY, JobState.WAITING, JobState.BLOCKED):
        after = without_slot(sending(state), a_post(), now=NOW)
        assert (after.state, after.state_reason) == (JobState.CANCELED, Reason.TAKEN_BACK)


def test_a_new_time_after_a_cancellation_needs_a_later_revision() -> None:
    gone = without_slot(sending(JobState.SCHEDULED), a_post(revision=2), now=NOW)
    assert gone.state is JobState.PENDING
    assert after_slot(gone, slot("slot-1", 2), now=NOW) is gone
    again = after_slot(gone, slot("slot-1", 3), now=NOW)
    assert (again.state, again.not_after) == (JobState.SCHEDULED, LATE)
