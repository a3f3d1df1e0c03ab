"""PublishNow: which jobs may be sent at once, in which run, and which content."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given

from publisher_service.domain.post_job import ENDED_RUN, NOT_STARTED, OPEN_ATTEMPT, JobState, PostJob, Reason
from publisher_service.domain.publish_now import UrgentPosts, require_sendable, sent_now
from servicekit.faults import InvalidField, Refused
from tests.unit.publisher_service.post_jobs import LATER, NOW, PAGE, check, draft, jobs

DRAFT = draft(has_target=True, approved=True, revision=3)
ASKED = UrgentPosts(draft=DRAFT, targets=(PAGE,))


@given(jobs(*NOT_STARTED, *ENDED_RUN))
def test_what_has_not_started_is_due_at_once(job: PostJob) -> None:
    result = sent_now(job, replace(ASKED, over_cap=True), now=LATER)
    if job.in_doubt:
        assert (result.reason, result.job) == ("ATTEMPT_OPEN", job)
        return
    after = result.job
    check(job, after)
    assert (result.reason, after.state, after.state_reason) == ("", JobState.READY, Reason.NONE)
    assert (after.next_action_time, after.schedule_time, after.not_after) == (LATER, LATER, LATER + timedelta(hours=1))
    assert (after.is_sent_now, after.over_cap, after.wanted_revision) == (True, True, 3)
    assert after.run == job.run + (job.state in ENDED_RUN)
    assert (after.slot_id, after.slot_revision) == (job.slot_id, job.slot_revision)


@given(jobs(*OPEN_ATTEMPT, JobState.PUBLISHED, JobState.NEEDS_ATTENTION))
def test_what_is_out_or_may_be_stays_as_it_is(job: PostJob) -> None:
    result = sent_now(job, ASKED, now=LATER)
    reasons = {"PUBLISHED": "ALREADY_PUBLISHED", "NEEDS_ATTENTION": "NEEDS_ATTENTION"}
    assert (result.reason, result.job) == (reasons.get(job.state, "ATTEMPT_OPEN"), job)


@given(jobs())
def test_a_state_of_a_newer_release_may_mean_anything(job: PostJob) -> None:
    assert sent_now(replace(job, state="MELTED"), ASKED, now=LATER).reason == "ATTEMPT_OPEN"


@given(jobs(JobState.FAILED))
def test_a_latest_time_is_kept_and_one_in_the_past_is_refused(job: PostJob) -> None:
    until = LATER + timedelta(minutes=1)
    assert sent_now(job, replace(ASKED, not_after=until), now=LATER).job.not_after == until
    with pytest.raises(InvalidField):
        sent_now(job, replace(ASKED, not_after=NOW), now=LATER)


@pytest.mark.parametrize(
    ("known", "approved", "below", "reason"),
    [
        (4, False, 9, "REVISION_OUTDATED"),
        (3, False, 4, "CONTENT_WITHDRAWN"),
        (3, False, 3, "NOT_APPROVED"),
        (3, True, 3, None),
    ],
)
def test_only_the_newest_approved_text_is_sent(known: int, approved: bool, below: int, reason: str | None) -> None:
    if reason is None:
        require_sendable(DRAFT, known_revision=known, approved=approved, withdrawn_below=below)
        return
    with pytest.raises(Refused) as refused:
        require_sendable(DRAFT, known_revision=known, approved=approved, withdrawn_below=below)
    assert refused.value.reason == reason
