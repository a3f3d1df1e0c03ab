"""Retries: what has failed or was missed begins its next run, and no slot disturbs it."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given

from publisher_service.domain.follow_up import Parent, Unfollowed
from publisher_service.domain.plan import after_slot
from publisher_service.domain.post_job import JobState, PostJob
from publisher_service.domain.retry import is_never_due, latest_time, retried
from publisher_service.domain.take_back import CancelOutcome, taken_back, without_slot
from servicekit.faults import InvalidField, Refused
from tests.unit.publisher_service.post_jobs import LATER, NOW, check, jobs, slot
from tests.unit.publisher_service.test_take_back import a_post

RETRYABLE = (JobState.FAILED, JobState.MISSED)


def retry(job: PostJob, *, is_target: bool = True, not_after: datetime | None = None) -> PostJob:
    return retried(job, is_target=is_target, not_after=not_after, now=LATER)


@given(jobs(*RETRYABLE))
def test_a_run_that_has_ended_is_followed_by_one_that_is_due_at_once(job: PostJob) -> None:
    after = retry(job)
    check(job, after)
    assert (after.state, after.run, after.attempts, after.error_reason) == (JobState.READY, job.run + 1, 0, "")
    assert (after.next_action_time, after.schedule_time, after.not_after) == (LATER, LATER, LATER + timedelta(days=1))
    assert (after.is_called, after.is_sent_now) == (True, False)
    assert (after.slot_id, after.slot_revision) == (job.slot_id, job.slot_revision)


@given(jobs(*(set(JobState) - set(RETRYABLE))))
def test_any_other_job_is_not_retried(job: PostJob) -> None:
    with pytest.raises(Refused) as refused:
        retry(job)
    assert refused.value.reason == "POST_JOB_NOT_RETRYABLE"


@given(jobs(*RETRYABLE))
def test_a_lost_target_is_not_retried(job: PostJob) -> None:
    with pytest.raises(Refused) as refused:
        retry(job, is_target=False)
    assert refused.value.reason == "TARGET_REMOVED"


@given(jobs(*RETRYABLE))
def test_the_next_run_after_a_called_one_is_not_called(job: PostJob) -> None:
    failed = replace(retry(job), state=JobState.FAILED, next_action_time=None)
    again = after_slot(failed, slot("slot-9", 1, sequence=9), now=LATER)
    assert (again.state, again.run, again.is_called) == (JobState.SCHEDULED, failed.run + 1, False)


@given(jobs(*RETRYABLE))
def test_a_slot_that_comes_meanwhile_is_noted_and_changes_no_time(job: PostJob) -> None:
    called = retry(job)
    after = after_slot(called, slot("slot-9", 1, sequence=9), now=LATER)
    assert after == replace(called, version=called.version + 1, slot_id="slot-9", slot_sequence=9, slot_revision=1)


@given(jobs(*RETRYABLE))
def test_no_slot_takes_a_called_run_back(job: PostJob) -> None:
    called = retry(replace(job, slot_id="slot-1", slot_revision=1, slot_sequence=0))
    for post in (a_post(), a_post(revision=2), a_post("slot-2", sequence=1)):
        result = taken_back(called, post, now=LATER)
        assert (result.outcome, result.job) == (CancelOutcome.TOO_LATE, called)
        after = without_slot(called, post, now=LATER)
        assert (after.state, after.schedule_time, after.version) == (called.state, called.schedule_time, called.version)
        assert (after.slot_id, after.slot_revision) == (post.slot_id, post.slot_revision)


@pytest.mark.parametrize("away", [timedelta(0), timedelta(days=-1), timedelta(days=30, microseconds=1)])
def test_a_latest_time_lies_in_the_next_thirty_days(away: timedelta) -> None:
    with pytest.raises(InvalidField) as refused:
        latest_time(NOW + away, default=timedelta(hours=1), now=NOW)
    assert refused.value.metadata == {"field": "not_after"}
    assert latest_time(NOW + timedelta(days=30), default=timedelta(hours=1), now=NOW) == NOW + timedelta(days=30)


@given(jobs(*RETRYABLE))
def test_a_follow_up_is_retried_as_it_was_begun(job: PostJob) -> None:
    failed = replace(job, part=1, follows="out")
    assert not is_never_due(failed)
    after = retry(failed)
    assert (after.follows, after.is_sent_now, after.over_cap) == ("out", True, True)


@given(jobs(*RETRYABLE))
def test_a_follow_up_that_was_never_due_asks_again_what_it_follows(job: PostJob) -> None:
    failed = replace(job, part=1, follows="")
    assert is_never_due(failed)
    assert not is_never_due(job)
    after = retried(failed, is_target=True, parent=Parent(name="out"), not_after=None, now=LATER)
    assert after.follows == "out"
    for reason in Unfollowed:
        with pytest.raises(Refused) as refused:
            retried(failed, is_target=True, parent=Parent(reason=reason), not_after=None, now=LATER)
        assert refused.value.reason == reason
