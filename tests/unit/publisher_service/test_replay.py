"""Replays: what is selected, and that a state of a newer release is left alone."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given

from publisher_service.domain.post_job import JobState, PostJob
from publisher_service.domain.replay import Replay
from tests.unit.publisher_service.post_jobs import NOW, jobs


@given(jobs())
def test_empty_fields_admit_every_job(job: PostJob) -> None:
    assert Replay().takes(job)
    assert Replay(states=(JobState(job.state),), changed_since=NOW).takes(job)


@given(jobs())
def test_a_job_that_is_not_asked_for_is_left_out(job: PostJob) -> None:
    assert not Replay(states=tuple(state for state in JobState if state is not job.state)).takes(job)
    assert not Replay(changed_since=NOW + timedelta(microseconds=1)).takes(job)
    assert not Replay().takes(replace(job, state="MELTED"))
