"""Withdrawals: which posts are out, or may be, and which revisions can be withdrawn."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publisher_service.domain.post_job import JobState, PostJob
from publisher_service.domain.withdrawal import Withdrawal, require_known, withdrawal_of
from servicekit.faults import Refused
from tests.unit.publisher_service.post_jobs import jobs, sending


@given(st.lists(jobs(), max_size=4), st.integers(1, 3))
def test_a_withdrawal_reports_published_jobs_or_else_jobs_in_flight(found: list[PostJob], below: int) -> None:
    withdrawal = withdrawal_of(found, below)
    published = tuple(job for job in found if job.state is JobState.PUBLISHED)
    assert withdrawal.published == published
    assert not (published and withdrawal.in_flight)
    if not published:
        doubtful = [job for job in found if job.in_doubt and job.content_revision < below]
        assert {job.id for job in doubtful} <= set(withdrawal.in_flight)


@pytest.mark.parametrize(
    ("state", "may_be_out"),
    [
        (JobState.SENDING, True),
        (JobState.UNKNOWN, True),
        (JobState.NEEDS_ATTENTION, True),
        ("OF_A_NEWER_RELEASE", True),
        (JobState.READY, False),
        (JobState.FAILED, False),
    ],
)
def test_a_job_may_be_out_in_an_open_or_an_unknown_state(state: str, may_be_out: bool) -> None:
    job = replace(sending(), state=state, content_revision=1)
    assert withdrawal_of([job], 2) == Withdrawal(in_flight=("job",) if may_be_out else ())


def test_a_job_that_sends_a_newer_text_is_not_in_flight() -> None:
    assert withdrawal_of([replace(sending(), content_revision=2)], 2) == Withdrawal()


def test_a_revision_beyond_the_next_cannot_be_withdrawn() -> None:
    require_known("draft", known=3, below=4)
    with pytest.raises(Refused) as refused:
        require_known("draft", known=3, below=5)
    assert refused.value.metadata == {"draft_id": "draft", "known_revision": "3"}
