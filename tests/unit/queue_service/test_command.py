"""The targets of a handed-over slot whose commands are repeated."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_service.domain.command import still_wanted
from queue_service.domain.job import ANSWERED, ENDED, JobState


@dataclass
class SomeTarget:
    """A target as far as it matters here. Rows of the database have the state as a plain string."""

    job_state: JobState | str | None


def wanted(states: list[JobState | None]) -> list[JobState | str | None]:
    return [target.job_state for target in still_wanted([SomeTarget(state) for state in states])]


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([None], [None]),
        ([JobState.PENDING], [JobState.PENDING]),
        ([JobState.SCHEDULED], [JobState.SCHEDULED]),
        ([JobState.READY], [JobState.READY]),
        ([None, JobState.READY, JobState.SCHEDULED], [None, JobState.SCHEDULED]),
        ([None, JobState.PUBLISHED], [None]),
        ([JobState.SENDING, JobState.FAILED, JobState.UNKNOWN], [JobState.SENDING, JobState.UNKNOWN]),
        ([JobState.PUBLISHED, JobState.CANCELED], []),
        ([], []),
    ],
)
def test_targets_without_an_answer_are_wanted_before_others(
    states: list[JobState | None], expected: list[JobState | None]
) -> None:
    assert wanted(states) == expected


@pytest.mark.parametrize("state", JobState)
def test_a_state_read_from_the_database_counts_as_the_same_state(state: JobState) -> None:
    row = SomeTarget(str(state.value))
    assert list(still_wanted([row])) == ([] if state in ENDED else [row])
    unanswered = SomeTarget(None)
    assert list(still_wanted([row, unanswered])) == ([unanswered] if state in ANSWERED else [row, unanswered])


@given(st.lists(st.none() | st.sampled_from(JobState), max_size=6))
def test_a_target_is_wanted_until_every_target_has_ended(states: list[JobState | None]) -> None:
    found = wanted(states)
    assert not set(found) & ENDED
    assert bool(found) == any(state not in ENDED for state in states)
