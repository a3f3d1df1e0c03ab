from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from publisher_service.domain.post_job import JobState
from publisher_service.domain.waits import carried_by_stream, wait_of_stream
from tests.unit.publisher_service.post_jobs import NOW, sending


@pytest.mark.parametrize(
    ("until", "delay"),
    [
        (NOW + timedelta(seconds=5), timedelta(seconds=5)),
        (NOW + timedelta(minutes=2), timedelta(minutes=2)),
        (NOW + timedelta(minutes=2, microseconds=1), None),
        (None, None),
    ],
    ids=["short", "longest", "too long", "no end"],
)
def test_the_stream_carries_short_waits_only(until: datetime | None, delay: timedelta | None) -> None:
    assert wait_of_stream(until, NOW) == delay
    assert carried_by_stream(replace(sending(JobState.WAITING), next_action_time=until), NOW) == delay


@pytest.mark.parametrize("state", sorted(set(JobState) - {JobState.WAITING}))
def test_the_stream_brings_back_waiting_jobs_only(state: JobState) -> None:
    job = replace(sending(state), next_action_time=NOW + timedelta(seconds=5))
    assert carried_by_stream(job, NOW) is None
