"""Each outcome of a post is one log line, at a level that fits."""

import logging
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from publisher_service.application import post_log
from publisher_service.application.post_log import set_level, write_outcomes
from publisher_service.domain.post_job import JobState, PostJob, Reason, Target

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
JOB = PostJob(
    organization_id="acme",
    id="job",
    draft_id="draft",
    target=Target(social_account_id="page", channel="facebook"),
    state=JobState.PUBLISHED,
    run=2,
    attempts=3,
    schedule_time=NOW,
    traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    create_time=NOW,
    update_time=NOW + timedelta(seconds=1.5),
)


@pytest.mark.parametrize(
    ("state", "level"),
    [
        (JobState.PUBLISHED, "DEBUG"),
        (JobState.WAITING, "INFO"),
        (JobState.BLOCKED, "WARNING"),
        (JobState.UNKNOWN, "WARNING"),
        (JobState.MISSED, "WARNING"),
        (JobState.FAILED, "WARNING"),
        (JobState.NEEDS_ATTENTION, "ERROR"),
    ],
)
def test_an_outcome_is_one_log_line(caplog: pytest.LogCaptureFixture, state: JobState, level: str) -> None:
    job = replace(JOB, state=state, state_reason=Reason.RETRY if state is JobState.WAITING else Reason.NONE)
    with caplog.at_level(logging.DEBUG):
        write_outcomes([replace(job, error_reason="TIMEOUT", error_message="no answer")])
    (record,) = caplog.records
    assert (record.levelname, record.getMessage()) == (level, f"post {state.lower()}")
    said = {name: record.__dict__[name] for name in ("organization_id", "post_job_id", "draft_id", "social_account_id")}
    assert said == {"organization_id": "acme", "post_job_id": "job", "draft_id": "draft", "social_account_id": "page"}
    assert (record.__dict__["channel"], record.__dict__["run"], record.__dict__["attempt"]) == ("facebook", 2, 3)
    assert record.__dict__["reason"] == ("RETRY" if state is JobState.WAITING else "TIMEOUT")
    assert (record.__dict__["error"], record.__dict__["lateness"]) == ("no answer", 1.5)
    assert record.__dict__["trace_id"] == "0af7651916cd43dd8448eb211c80319c"


def test_the_line_of_a_published_post_has_its_url(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        write_outcomes([replace(JOB, external_url="http://sandbox/p1")])
    (record,) = caplog.records
    assert record.__dict__["url"] == "http://sandbox/p1"


def test_lateness_is_measured_at_the_publish_time(caplog: pytest.LogCaptureFixture) -> None:
    found = replace(JOB, publish_time=NOW + timedelta(seconds=0.25), update_time=NOW + timedelta(minutes=2))
    with caplog.at_level(logging.DEBUG):
        write_outcomes([found])
    (record,) = caplog.records
    assert record.__dict__["lateness"] == 0.25


def test_outcomes_have_a_level_of_their_own(caplog: pytest.LogCaptureFixture) -> None:
    """Operators can follow outcomes without the DEBUG lines of everything else."""
    before = logging.getLogger(post_log.__name__).level
    try:
        set_level(None)
        write_outcomes([JOB])
        assert caplog.records == []
        set_level("DEBUG")
        write_outcomes([JOB])
    finally:
        logging.getLogger(post_log.__name__).setLevel(before)
    assert [record.getMessage() for record in caplog.records] == ["post published"]


@pytest.mark.parametrize("state", [JobState.PENDING, JobState.SCHEDULED, JobState.READY, JobState.SENDING])
def test_a_state_that_is_no_outcome_is_not_logged(caplog: pytest.LogCaptureFixture, state: JobState) -> None:
    with caplog.at_level(logging.DEBUG):
        write_outcomes([replace(JOB, state=state)])
    assert caplog.records == []
