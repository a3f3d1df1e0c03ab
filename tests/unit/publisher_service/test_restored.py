"""Jobs of a restored database take over what was announced, and are put in doubt where an attempt may be lost."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publisher_service.domain.claim import command_of
from publisher_service.domain.limits import PARKING
from publisher_service.domain.post_job import OPEN_ATTEMPT, TIMED, WITH_NEXT_ACTION, JobState, PostJob, Reason
from publisher_service.domain.restored import (
    is_news,
    may_have_been_sent,
    put_in_doubt,
    taken_over,
    was_attempted,
    with_command,
)
from tests.unit.publisher_service.post_jobs import LATER, NOW, POLICY, jobs

UNSENT = (JobState.PENDING, JobState.SCHEDULED, JobState.READY, JobState.WAITING, JobState.BLOCKED)


@given(job=jobs(*UNSENT), seen=jobs())
def test_what_was_announced_is_taken_over_above_its_version(job: PostJob, seen: PostJob) -> None:
    after = taken_over(job, seen, now=NOW)
    assert after.version > max(job.version, seen.version)
    assert after.state is not JobState.SENDING
    assert (after.next_action_time is not None) == (after.state in WITH_NEXT_ACTION)
    assert (after.external_id, after.publish_time) == (seen.external_id, seen.publish_time)


@given(job=jobs(*UNSENT), seen=jobs(JobState.SENDING, JobState.UNKNOWN, JobState.NEEDS_ATTENTION))
def test_what_may_be_out_is_never_taken_over_as_unsent(job: PostJob, seen: PostJob) -> None:
    assert was_attempted(seen)
    after = taken_over(job, seen, now=NOW)
    assert after.in_doubt
    assert after.state in (JobState.UNKNOWN, JobState.NEEDS_ATTENTION)


@pytest.mark.parametrize("reason", [*PARKING.values(), Reason.SEND_WINDOW, Reason.MEDIA, Reason.CONTENT_PENDING, "NEW"])
@given(job=jobs(*UNSENT), seen=jobs(JobState.WAITING))
def test_what_waited_for_an_event_is_looked_at_at_once(reason: str, job: PostJob, seen: PostJob) -> None:
    after = taken_over(job, replace(seen, state_reason=reason), now=NOW)
    assert (after.state, after.state_reason, after.next_action_time) == (JobState.READY, "", NOW)


@pytest.mark.parametrize("reason", sorted(TIMED))
@given(job=jobs(*UNSENT), seen=jobs(JobState.WAITING))
def test_what_waited_for_a_time_goes_on_waiting(reason: str, job: PostJob, seen: PostJob) -> None:
    after = taken_over(job, replace(seen, state_reason=reason), now=NOW)
    assert (after.state, after.state_reason) == (JobState.WAITING, reason)
    assert after.next_action_time == seen.next_action_time


@given(job=jobs(), seen=jobs())
def test_only_newer_announcements_and_proof_are_news(job: PostJob, seen: PostJob) -> None:
    is_proof = seen.state is JobState.PUBLISHED
    is_out = job.state is JobState.PUBLISHED
    assert is_news(job, seen) == (not is_out and (is_proof or seen.version > job.version))


@given(job=jobs(), seconds=st.integers(-10, 10))
def test_what_was_due_before_the_mark_may_have_been_sent(job: PostJob, seconds: int) -> None:
    due = replace(job, schedule_time=NOW + timedelta(seconds=seconds))
    assert may_have_been_sent(due, until=NOW) == (job.state in UNSENT and seconds <= 0)
    assert not may_have_been_sent(replace(job, schedule_time=None), until=NOW)


@given(job=jobs(*UNSENT))
def test_a_job_in_doubt_is_looked_up_under_its_own_key(job: PostJob) -> None:
    due = replace(job, schedule_time=NOW, not_after=LATER)
    after = put_in_doubt(due, policy=POLICY, revision=3, now=NOW)
    assert after.state is JobState.UNKNOWN
    assert after.in_doubt
    assert (after.run, after.fence) == (job.run, job.fence + 1)
    assert after.content_revision == (job.content_revision if job.in_doubt else 3)
    # Proven absent, it can be sent again.
    assert after.attempts < max(after.max_attempts, 1)


@pytest.mark.parametrize("known", [0, 5, 50])
@given(job=jobs(JobState.SCHEDULED, *sorted(OPEN_ATTEMPT)))
def test_a_command_raises_the_version_and_never_lowers_it(known: int, job: PostJob) -> None:
    due = replace(job, schedule_time=NOW, not_after=LATER)
    command = replace(command_of(due), known_job_version=known)
    after = with_command(due, command)
    assert after.version == max(due.version, known + 1 if due.version <= known else due.version)
    assert after.version > known
    newer = with_command(due, replace(command, slot_sequence=due.slot_sequence + 1, slot_id="newer"))
    assert (newer.slot_id == "newer") == (due.state is JobState.SCHEDULED)
