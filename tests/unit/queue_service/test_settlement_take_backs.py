"""Settling slots whose posts are taken back from Publisher."""

from datetime import timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_service.domain.command import still_wanted
from queue_service.domain.job import JobState
from queue_service.domain.settlement import JobReport, SlotProgress, settle
from queue_service.domain.slot import SlotState, TakingBack
from tests.unit.queue_service.test_settlement_of_slots import FEED, NOW, STORY, report, slot

LATER = NOW + timedelta(minutes=1)


def asked(purpose: TakingBack, *targets: tuple[str, str]) -> SlotProgress:
    return slot(*targets)._replace(taking_back=purpose, state_reason="CLEARED" if purpose == "CANCEL" else "")


def given_back(version: int, target: tuple[str, str] = FEED) -> JobReport:
    return report(JobState.CANCELED, version, target)._replace(state_reason="TAKEN_BACK")


def test_a_slot_that_is_given_back_returns_under_its_next_revision() -> None:
    waiting = settle(asked(TakingBack.RETURN), [report(JobState.WAITING, 2, next_action_time=LATER)], now=NOW)
    assert waiting.taking_back is TakingBack.RETURN
    returned = settle(waiting, [given_back(3)], now=NOW)
    assert (returned.state, returned.revision, returned.taking_back) == (SlotState.SCHEDULED, 2, TakingBack.NO)
    assert (returned.next_emit_at, returned.expected_time, returned.is_answered) == (None, None, False)
    [target] = returned.targets
    assert (target.job_state, target.job_version, target.next_action_time) == ("SCHEDULED", 3, None)
    assert list(still_wanted(returned.targets)) == [target]


@pytest.mark.parametrize("state", sorted(set(JobState) - {JobState.PUBLISHED, JobState.NEEDS_ATTENTION}))
def test_no_report_of_the_old_revision_reaches_a_returned_slot(state: JobState) -> None:
    returned = settle(asked(TakingBack.RETURN), [given_back(3)], now=NOW)
    assert settle(returned, [report(state, 2), report(state, 4), given_back(3)], now=LATER) == returned


def test_proof_that_a_post_is_out_counts_even_after_its_return() -> None:
    returned = settle(asked(TakingBack.RETURN), [given_back(3)], now=NOW)
    assert settle(returned, [report(JobState.PUBLISHED, 4, publish_time=NOW)], now=LATER).state is SlotState.PUBLISHED


def test_a_slot_that_is_given_back_to_be_canceled_says_why() -> None:
    answered = settle(asked(TakingBack.CANCEL), [report(JobState.READY, 2)], now=NOW)
    assert (answered.state, answered.state_reason) == (SlotState.DISPATCHED, "CLEARED")
    canceled = settle(answered, [given_back(3)], now=NOW)
    assert (canceled.state, canceled.state_reason, canceled.revision) == (SlotState.CANCELED, "CLEARED", 1)
    assert canceled.taking_back is TakingBack.NO


def test_a_cancellation_whose_reason_was_lost_is_a_removal() -> None:
    lost = asked(TakingBack.CANCEL)._replace(state_reason="")
    assert settle(lost, [given_back(3)], now=NOW).state_reason == "REMOVED"


def test_a_slot_that_nobody_asked_for_ends_when_its_post_is_canceled() -> None:
    canceled = settle(slot(), [given_back(3)], now=NOW)
    assert (canceled.state, canceled.state_reason) == (SlotState.CANCELED, "")


@pytest.mark.parametrize("end", [JobState.FAILED, JobState.MISSED, JobState.PUBLISHED, JobState.NEEDS_ATTENTION])
def test_what_was_given_back_waits_for_the_other_targets(end: JobState) -> None:
    half = settle(asked(TakingBack.RETURN, FEED, STORY), [given_back(3)], now=NOW)
    assert (half.state, half.revision) == (SlotState.DISPATCHED, 1)
    assert settle(half, [report(JobState.WAITING, 3, STORY)], now=NOW).state is SlotState.DISPATCHED
    back = settle(half, [report(end, 3, STORY, publish_time=NOW)], now=NOW)
    assert (back.state, back.revision) == (SlotState.SCHEDULED, 2)
    assert [target.job_state for target in back.targets] == ["SCHEDULED", end]
    assert [target.channel for target in still_wanted(back.targets)] == ["facebook"]


def test_a_target_that_its_draft_has_lost_does_not_return() -> None:
    removed = report(JobState.CANCELED, 3)._replace(state_reason="TARGET_REMOVED")
    ended = settle(asked(TakingBack.RETURN), [removed], now=NOW)
    assert (ended.state, ended.taking_back) == (SlotState.CANCELED, TakingBack.NO)


@pytest.mark.parametrize(("end", "state"), [(JobState.PUBLISHED, "PARTIALLY_PUBLISHED"), (JobState.FAILED, "FAILED")])
def test_of_a_canceled_slot_a_target_may_be_out(end: JobState, state: str) -> None:
    half = settle(asked(TakingBack.CANCEL, FEED, STORY), [given_back(3)], now=NOW)
    ended = settle(half, [report(end, 3, STORY, publish_time=NOW)], now=NOW)
    assert (ended.state, ended.state_reason, ended.taking_back) == (SlotState(state), "", TakingBack.NO)


@given(
    st.sampled_from(list(TakingBack)),
    st.sampled_from([JobState.PUBLISHED, JobState.FAILED, JobState.MISSED, JobState.NEEDS_ATTENTION, None]),
    st.randoms(use_true_random=False),
    st.integers(1, 4),
)
def test_a_take_back_does_not_depend_on_the_order_of_reports(
    purpose: TakingBack, end: JobState | None, random: Random, size: int
) -> None:
    last = report(end, 5, STORY, publish_time=NOW) if end else given_back(5, STORY)
    reports = [report(JobState.READY, 2), given_back(4), report(JobState.READY, 2, STORY), last]
    at_once = settle(asked(purpose, FEED, STORY), reports, now=NOW)
    shuffled = [*reports, *reports]
    random.shuffle(shuffled)
    in_batches = asked(purpose, FEED, STORY)
    for start in range(0, len(shuffled), size):
        in_batches = settle(in_batches, shuffled[start : start + size], now=NOW)
    assert in_batches._replace(targets=()) == at_once._replace(targets=())
    assert [target._replace(report=None) for target in in_batches.targets] == [
        target._replace(report=None) for target in at_once.targets
    ]
