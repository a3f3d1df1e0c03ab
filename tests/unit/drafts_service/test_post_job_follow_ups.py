"""The state of a draft with follow-ups: each counts like a target, once the part before is published."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drafts_service.domain.post_job import DraftState, JobState, PostJob, fold, shown_follow_ups, shown_targets
from tests.unit.drafts_service.test_post_job import NINE, TEN, job, state_of, target

PAGE = target("page")


def part(number: int, state: JobState, account: str = "page") -> PostJob:
    time = NINE if state not in (JobState.PENDING, JobState.CANCELED) else None
    return job(
        state,
        id=f"{account}-{number}",
        account=account,
        part=number,
        schedule_time=time,
        publish_time=TEN if state is JobState.PUBLISHED else None,
    )


def parts(states: str) -> list[PostJob]:
    return [part(number, JobState(state)) for number, state in enumerate(states.split())]


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ("PENDING PENDING", DraftState.DRAFT),
        ("SCHEDULED PENDING PENDING", DraftState.SCHEDULED),
        ("SENDING PENDING", DraftState.PUBLISHING),
        ("FAILED PENDING PENDING", DraftState.FAILED),
        ("MISSED PENDING", DraftState.FAILED),
        ("CANCELED PENDING", DraftState.DRAFT),
        ("NEEDS_ATTENTION PENDING", DraftState.NEEDS_ATTENTION),
        ("PUBLISHED PENDING PENDING", DraftState.SCHEDULED),
        ("PUBLISHED READY PENDING", DraftState.SCHEDULED),
        ("PUBLISHED BLOCKED PENDING", DraftState.BLOCKED),
        ("PUBLISHED SENDING PENDING", DraftState.PUBLISHING),
        ("PUBLISHED UNKNOWN PENDING", DraftState.PUBLISHING),
        ("PUBLISHED NEEDS_ATTENTION PENDING", DraftState.NEEDS_ATTENTION),
        ("PUBLISHED FAILED PENDING", DraftState.PARTIALLY_PUBLISHED),
        ("PUBLISHED MISSED PENDING", DraftState.PARTIALLY_PUBLISHED),
        ("PUBLISHED PUBLISHED PENDING", DraftState.SCHEDULED),
        ("PUBLISHED PUBLISHED FAILED", DraftState.PARTIALLY_PUBLISHED),
        ("PUBLISHED CANCELED CANCELED", DraftState.PUBLISHED),
        ("PUBLISHED PUBLISHED PUBLISHED", DraftState.PUBLISHED),
    ],
)
def test_the_parts_of_a_post_decide_the_draft_state_in_any_order(states: str, expected: DraftState) -> None:
    for order in permutations(parts(states)):
        assert fold([PAGE], order).state is expected


def test_a_part_that_is_due_has_the_time_at_which_it_became_so() -> None:
    assert fold([PAGE], parts("PUBLISHED PENDING")) == state_of(DraftState.SCHEDULED, schedule_time=TEN)


def test_the_parts_of_one_target_say_nothing_about_those_of_another() -> None:
    jobs = [part(0, JobState.PUBLISHED, "a"), part(0, JobState.SCHEDULED, "b"), part(1, JobState.PENDING, "b")]
    assert fold([target("a"), target("b")], jobs) == state_of(DraftState.SCHEDULED, schedule_time=NINE)
    jobs[1] = part(0, JobState.FAILED, "b")
    assert fold([target("a"), target("b")], jobs).state is DraftState.PARTIALLY_PUBLISHED


def test_a_comment_does_not_stand_for_its_post() -> None:
    assert fold([PAGE], [part(1, JobState.PUBLISHED)]).state is DraftState.PARTIALLY_PUBLISHED


@given(st.lists(st.sampled_from(JobState), min_size=2, max_size=4))
def test_a_draft_is_published_only_if_all_its_parts_are(states: list[JobState]) -> None:
    found = fold([PAGE], [part(number, state) for number, state in enumerate(states)]).state
    counted = [state for state in states if state is not JobState.CANCELED]
    if found is DraftState.PUBLISHED:
        assert states[0] is JobState.PUBLISHED
        # A part that the draft has lost holds back those behind it, which the draft has lost, too.
        assert {state for state in counted if state is not JobState.PENDING} == {JobState.PUBLISHED}
    if set(states) == {JobState.PUBLISHED}:
        assert found is DraftState.PUBLISHED


def test_a_target_shows_its_post_and_then_its_follow_ups_in_order() -> None:
    jobs = parts("PUBLISHED FAILED PENDING")
    for order in permutations(jobs):
        assert shown_targets([PAGE], order) == [(PAGE, jobs[0])]
        assert shown_follow_ups(PAGE, order) == jobs[1:]


def test_follow_ups_of_other_targets_and_canceled_ones_are_not_shown() -> None:
    jobs = [*parts("PUBLISHED CANCELED"), part(1, JobState.READY, "other")]
    assert not shown_follow_ups(PAGE, jobs)
