"""Resolutions: a person says whether a post is out."""

from dataclasses import replace
from datetime import timedelta

import pytest

from publisher_service.domain.post_job import JobState
from publisher_service.domain.resolution import Resolution, Said, resolved
from publisher_service.domain.settlement import AttemptState
from servicekit.faults import InvalidField, Refused
from tests.unit.publisher_service.post_jobs import LATER, NOW, check, sending

OUT = Resolution(
    outcome=Said.PUBLISHED, external_id="x", external_url="u", publish_time=None, resolver="ann", note="seen"
)
NOT_OUT = replace(OUT, outcome=Said.NOT_PUBLISHED, external_id="", external_url="")
UNKNOWN = replace(sending(JobState.UNKNOWN), in_doubt=True, last_attempt_time=NOW, error_reason="TIMEOUT")


def test_a_post_that_a_person_saw_is_published_at_its_last_attempt() -> None:
    settlement = resolved(UNKNOWN, OUT, now=LATER)
    check(UNKNOWN, settlement.job)
    assert settlement.attempt_state is AttemptState.ACCEPTED
    job = settlement.job
    assert (job.publish_time, job.external_id, job.evidence_kind) == (NOW, "x", "PERSON")
    assert (job.in_doubt, job.error_reason) == (False, "")


def test_a_post_that_is_not_out_fails_with_the_persons_words() -> None:
    settlement = resolved(UNKNOWN, NOT_OUT, now=LATER)
    assert (settlement.job.state, settlement.attempt_state) == (JobState.FAILED, AttemptState.ABSENT)
    assert settlement.job.in_doubt is False
    assert settlement.job.error_message == "ann said that it is not out: seen"
    assert resolved(UNKNOWN, replace(NOT_OUT, note=""), now=LATER).error_message == "ann said that it is not out"


@pytest.mark.parametrize("state", sorted(set(JobState) - {JobState.UNKNOWN, JobState.NEEDS_ATTENTION}))
def test_only_a_job_in_question_can_be_resolved(state: JobState) -> None:
    with pytest.raises(Refused) as refused:
        resolved(sending(state), OUT, now=LATER)
    assert refused.value.metadata == {"post_job_id": "job", "state": state}


def test_a_publish_time_may_be_ahead_by_the_skew_of_clocks_only() -> None:
    ahead = replace(OUT, publish_time=LATER + timedelta(minutes=1))
    assert resolved(UNKNOWN, ahead, now=LATER).job.publish_time == ahead.publish_time
    with pytest.raises(InvalidField):
        resolved(UNKNOWN, ahead, now=LATER - timedelta(seconds=1))
