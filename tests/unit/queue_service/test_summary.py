"""The explanation in sentences."""

from datetime import date, datetime, time, timedelta
from typing import Any

import pytest

from queue_service.domain.circumstances import Circumstances
from queue_service.domain.explaining import explain
from queue_service.domain.job import JobState
from queue_service.domain.late_policy import LateAction, LatePolicy
from queue_service.domain.passed_times import PassedTime, PassReason
from queue_service.domain.slot import QueueSlot, SlotState, TakingBack
from testkit.clocks import START
from tests.unit.queue_service.explained import HOUR, slot_of, target

DUE = START + HOUR
SENT = SlotState.DISPATCHED


def summed_up(
    slot: QueueSlot, *, now: datetime = START, passed: tuple[PassedTime, ...] | None = (), **known: Any
) -> str:
    return explain(slot, Circumstances(**known), passed, now=now).summary


def test_a_slot_that_nothing_prevents_reads_like_this() -> None:
    slot = slot_of(
        time_zone="America/New_York", local_date=date(2026, 3, 2), local_time=time(5), not_after=DUE + 24 * HOUR
    )
    passed = tuple(PassedTime(START, reason) for reason in (PassReason.FILLED, PassReason.FILLED, PassReason.SKIPPED))
    assert summed_up(slot, passed=passed) == (
        "Draft d1 is to go out on account page at 2026-03-02 05:00 in America/New_York (2026-03-02 10:00:00 UTC). "
        "AddToQueue gave it this time: the next free slot time, or the first one for a draft put at the front. "
        "Of the 3 slot times before it, 2 are filled and 1 is left empty by SkipNextSlot. "
        "It is handed to Publisher shortly before its time, and nothing is known to prevent that. "
        "If it has not gone out by 2026-03-03 10:00:00 UTC, it is missed."
    )


def test_earlier_times_are_left_out_once_the_time_has_come() -> None:
    assert "slot time from now" in summed_up(slot_of())
    assert "slot time from now" not in summed_up(slot_of(), now=DUE)
    assert "could not be read" in summed_up(slot_of(), passed=None)


@pytest.mark.parametrize(
    ("reasons", "text"),
    [
        ([PassReason.FILLED], "The slot time before it is filled."),
        ([PassReason.FILLED] * 2, "The 2 slot times before it are filled."),
        ([PassReason.GAP] * 50, "The latest 50 slot times before it are free now."),
        ([PassReason.GAP, PassReason.FILLED], "Of the 2 slot times before it, 1 is filled and 1 is free now."),
    ],
)
def test_earlier_times_are_counted_only_if_their_reasons_differ(reasons: list[PassReason], text: str) -> None:
    assert text in summed_up(slot_of(), passed=tuple(PassedTime(START, reason) for reason in reasons))


def test_an_overdue_slot_says_how_late_it_is() -> None:
    text = summed_up(slot_of(), now=DUE + timedelta(minutes=2))
    assert "It is overdue by 2 minutes, and has not been handed to Publisher." in text
    assert "as soon as the stream takes its commands" in text


def test_a_post_that_may_be_out_is_not_sent_again() -> None:
    post = target(JobState.UNKNOWN, "RESEND_REFUSED")
    assert "The post to facebook is not sent again: the post may be out" in summed_up(slot_of(post, state=SENT))


def test_a_post_that_waits_says_until_when() -> None:
    post = target(JobState.WAITING, "RETRY", next_action_time=DUE + HOUR)
    text = summed_up(slot_of(post, state=SENT), now=DUE)
    assert "another one follows; Publisher goes on at 2026-03-02 11:00:00 UTC." in text


def test_an_obstacle_takes_the_place_of_the_promise() -> None:
    text = summed_up(slot_of(), is_disabled=True)
    assert "It does not go out yet: the account's schedule is disabled." in text
    assert "nothing is known" not in text


def test_a_second_obstacle_is_not_introduced_again() -> None:
    text = summed_up(slot_of(), pause_time=START, is_disabled=True, is_approved=False)
    assert "It does not go out yet: the queue has been paused since 2026-03-02 09:00:00 UTC. Besides, the " in text
    assert text.count("does not go out yet") == 1
    assert "Besides, the account's schedule is disabled. Besides, the draft is not approved." in text


def test_a_paused_slot_is_not_missed() -> None:
    assert "is missed" not in summed_up(slot_of(), pause_time=START)


@pytest.mark.parametrize("state", [JobState.SENDING, JobState.UNKNOWN, JobState.PUBLISHED])
def test_a_slot_with_a_post_that_has_started_is_not_missed(state: JobState) -> None:
    assert "is missed" not in summed_up(slot_of(target(state), target(JobState.READY, channel="x"), state=SENT))


def test_a_latest_time_that_has_passed_is_not_promised() -> None:
    text = summed_up(slot_of(), now=START + 26 * HOUR)
    assert "Its latest time, 2026-03-03 10:00:00 UTC, has passed." in text
    assert "is missed" not in text


def test_the_late_policy_says_when_a_slot_moves() -> None:
    policy = LatePolicy(grace=HOUR, action=LateAction.RESLOT)
    moves = "If it has not been handed over by 2026-03-02 11:00:00 UTC, it moves to the next free slot time."
    assert moves in summed_up(slot_of(), late_policy=policy)
    # The loop that moves late slots passes over accounts that are held up.
    assert "it is missed" in summed_up(slot_of(), late_policy=policy, is_disabled=True)
    assert "it is missed" in summed_up(slot_of(state=SENT), late_policy=policy)


def test_a_late_slot_of_a_queue_that_moves_them_is_not_to_be_handed_over() -> None:
    policy = LatePolicy(grace=HOUR, action=LateAction.RESLOT)
    text = summed_up(slot_of(), now=DUE + 2 * HOUR, late_policy=policy)
    assert "The late policy of its queue moves it to the next free slot time." in text
    assert "handed over" not in text


@pytest.mark.parametrize("state", [None, JobState.PENDING, JobState.SCHEDULED, JobState.READY])
def test_the_posts_of_a_slot_that_was_canceled_before_do_nothing(state: JobState | None) -> None:
    text = summed_up(slot_of(target(state), state=SlotState.CANCELED, state_reason="REMOVED"))
    assert "post" not in text
    assert text.endswith("RemoveFromQueue canceled it.")


def test_a_slot_whose_posts_somebody_took_back_has_not_lost_its_targets() -> None:
    post = target(JobState.CANCELED, "TAKEN_BACK")
    text = summed_up(slot_of(post, target(None), state=SlotState.CANCELED))
    assert text.endswith("Its posts were taken back from Publisher by CancelPostJobs.")
    assert "removed" not in text


@pytest.mark.parametrize("state", list(JobState))
def test_every_post_says_how_it_is_doing(state: JobState) -> None:
    for now in (START, DUE):
        assert "The post to facebook " in summed_up(slot_of(target(state), state=SENT), now=now)


def test_each_target_is_named() -> None:
    there = target(JobState.READY, channel="telegram")
    slot = slot_of(target(JobState.SENDING), there, state=SENT)
    assert "The post to facebook is being sent. The post to telegram is at Publisher" in summed_up(slot)


def test_a_long_list_of_targets_is_cut() -> None:
    slot = slot_of(*(target(JobState.READY, channel=f"c{number}") for number in range(12)), state=SENT)
    assert "The post to c9 is at Publisher and waits for its turn. It has 2 more targets." in summed_up(slot)


@pytest.mark.parametrize(
    ("purpose", "text"),
    [(TakingBack.RETURN, "so that it returns to the queue"), (TakingBack.CANCEL, "so that it is canceled")],
)
def test_a_slot_that_is_being_taken_back_says_what_for(purpose: TakingBack, text: str) -> None:
    assert text in summed_up(slot_of(state=SENT), taking_back=purpose)


@pytest.mark.parametrize("state", [state for state in SlotState if state not in {SlotState.SCHEDULED, SENT}])
def test_every_end_is_explained(state: SlotState) -> None:
    text = summed_up(slot_of(target(JobState.PUBLISHED, publish_time=DUE), state=state), now=DUE + HOUR)
    assert "of draft d1 on account page" in text.lower() or "draft d1 " in text.lower()
    assert "its time was 2026-03-02 10:00:00 UTC" in text
    assert " to go out" not in text


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("REMOVED", "RemoveFromQueue canceled it."),
        ("CLEARED", "ClearQueue canceled it."),
        ("OVERDUE", "ResumeQueue canceled what was overdue."),
        ("DRAFT_PUBLISHED", "An earlier slot of the draft had sent its targets."),
        ("NEEDS_ATTENTION", "which a person must find out first."),
        ("", "Its targets were removed from the draft"),
        ("NEWER", "It has the reason NEWER."),
    ],
)
def test_a_canceled_slot_says_why(reason: str, text: str) -> None:
    assert text in summed_up(slot_of(state=SlotState.CANCELED, state_reason=reason))


def test_a_published_post_says_when_and_where() -> None:
    post = target(JobState.PUBLISHED, publish_time=DUE, external_url="https://example.org/1")
    text = summed_up(slot_of(post, state=SlotState.PUBLISHED), now=DUE + HOUR)
    assert text.startswith("Every target of draft d1 on account page is published; its time was")
    assert "was published at 2026-03-02 10:00:00 UTC (https://example.org/1)." in text


def test_a_failed_post_says_what_the_provider_said() -> None:
    post = target(JobState.FAILED, error_message="Caption too long.")
    assert "The post to facebook failed: Caption too long." in summed_up(slot_of(post, state=SlotState.FAILED), now=DUE)
