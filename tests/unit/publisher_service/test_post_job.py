"""The table of transitions, and the ids of post jobs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from publisher_service.domain.post_job import (
    OPEN_ATTEMPT,
    TRANSITIONS,
    WITH_NEXT_ACTION,
    JobState,
    PostJob,
    Target,
    job_id,
    kind_of,
    moved,
)
from tests.unit.publisher_service.post_jobs import LATER, NOW, PAGE, jobs, sending, words

targets = st.builds(Target, social_account_id=words, channel=words, destination=st.text(max_size=10))
places = st.tuples(words, words, targets).filter(lambda place: "\0" not in f"{place[0]}{place[1]}{place[2]}")


@given(jobs(), st.sampled_from(JobState))
def test_no_move_leaves_the_table_of_transitions(job: PostJob, state: JobState) -> None:
    until = LATER if state in WITH_NEXT_ACTION else None
    if state in TRANSITIONS[JobState(job.state)]:
        assert moved(job, state, now=NOW, until=until).state is state
    else:
        with pytest.raises(AssertionError, match=f"from {job.state} to {state}"):
            moved(job, state, now=NOW, until=until)


@given(st.sampled_from(JobState))
def test_a_move_has_a_next_action_exactly_where_the_state_needs_one(state: JobState) -> None:
    before = next(job for job in JobState if state in {*TRANSITIONS[job], JobState.PENDING})
    until = None if state in WITH_NEXT_ACTION else LATER
    with pytest.raises(AssertionError):
        moved(sending(before), state, now=NOW, until=until)


def test_the_table_of_transitions_covers_and_reaches_every_state() -> None:
    assert set(TRANSITIONS) == set(JobState)
    assert set().union(*TRANSITIONS.values()) == set(JobState)
    assert TRANSITIONS[JobState.PUBLISHED] == frozenset()
    assert all(JobState.SENDING not in TRANSITIONS[state] for state in OPEN_ATTEMPT), "never two open attempts"
    assert {kind_of(state) for state in JobState}
    assert len({kind_of(state) for state in JobState}) == len(JobState)


@given(places, places)
def test_different_targets_have_different_jobs(one: tuple[str, str, Target], two: tuple[str, str, Target]) -> None:
    assert (job_id(*one) == job_id(*two)) == (one == two)


@given(places, st.integers(0, 60), places, st.integers(0, 60))
def test_different_parts_have_different_jobs(
    one: tuple[str, str, Target], part: int, two: tuple[str, str, Target], other: int
) -> None:
    assert (job_id(*one, part) == job_id(*two, other)) == ((one, part) == (two, other))


def test_the_id_of_a_post_is_that_of_earlier_releases() -> None:
    target = Target(social_account_id="page", channel="facebook", destination="chat")
    assert job_id("acme", "d1", target) == "a8020188-878e-8f56-bcf6-018aeff8ae51"
    assert job_id("acme", "d1", target, 1) == "179ece54-0ff1-89b0-b7a0-732a5a12deed"


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (("a", "bc", PAGE), ("ab", "c", PAGE)),
        (("a|b", "c", PAGE), ("a", "b|c", PAGE)),
        (
            ("a", "b", Target(social_account_id="c", channel="d", destination="")),
            ("a", "b", Target(social_account_id="c", channel="", destination="d")),
        ),
    ],
)
def test_moving_a_separator_makes_another_id(one: tuple[str, str, Target], two: tuple[str, str, Target]) -> None:
    assert job_id(*one) != job_id(*two)


def test_the_id_of_a_job_never_changes() -> None:
    """Stored rows, attempts and idempotency keys contain it."""
    assert job_id("acme", "draft", PAGE) == "427ac6e8-4fcf-8b5b-8354-61e77e84b4c0"
    assert job_id("acme", "draft", PAGE)[14] == "8"
