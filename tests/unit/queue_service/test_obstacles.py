"""Obstacles that keep slots from going out."""

from dataclasses import replace
from datetime import timedelta

import pytest

from queue_service.domain.circumstances import Circumstances
from queue_service.domain.job import JobState
from queue_service.domain.obstacles import Obstacle, obstacles
from queue_service.domain.slot import LIVE, SlotState
from testkit.clocks import START
from tests.unit.queue_service.explained import HOUR, slot_of, target

DUE = START + HOUR
NOTHING = Circumstances()
EVERYTHING = Circumstances(
    pause_time=START, is_disabled=True, is_connected=False, is_approved=False, next_due_time=DUE + HOUR
)


def reasons(*found: Obstacle) -> list[str]:
    return [each.reason for each in found]


@pytest.mark.parametrize("state", sorted(set(SlotState) - LIVE))
def test_an_ended_slot_has_no_obstacles(state: SlotState) -> None:
    assert obstacles(slot_of(target(JobState.FAILED, "RETRY"), state=state), EVERYTHING, now=START) == ()


def test_a_slot_is_not_due_until_its_time() -> None:
    [obstacle] = obstacles(slot_of(), NOTHING, now=DUE - timedelta(microseconds=1))
    assert (obstacle.reason, obstacle.clear_time) == ("NOT_DUE", DUE)
    assert obstacles(slot_of(), NOTHING, now=DUE) == ()


def test_all_obstacles_are_named_those_of_the_account_first() -> None:
    found = obstacles(slot_of(target(JobState.READY, "IN_LINE")), EVERYTHING, now=START)
    assert reasons(*found) == [
        "QUEUE_PAUSED",
        "SCHEDULE_DISABLED",
        "ACCOUNT_NOT_CONNECTED",
        "NOT_APPROVED",
        "IN_LINE",
        "NOT_DUE",
    ]


@pytest.mark.parametrize(
    ("pauser", "reason", "message"),
    [
        ("", "", "the queue has been paused since 2026-03-02 09:00:00 UTC"),
        ("ann", "", "the queue has been paused by ann since 2026-03-02 09:00:00 UTC"),
        ("ann", "a fire", "the queue has been paused by ann since 2026-03-02 09:00:00 UTC: a fire"),
    ],
)
def test_a_pause_says_who_and_why(pauser: str, reason: str, message: str) -> None:
    known = Circumstances(pause_time=START, pauser=pauser, pause_reason=reason)
    assert obstacles(slot_of(), known, now=DUE) == (Obstacle("QUEUE_PAUSED", message),)


@pytest.mark.parametrize("state", [JobState.SENDING, JobState.UNKNOWN, JobState.PUBLISHED])
def test_what_holds_up_the_account_does_not_stop_a_post_that_has_started(state: JobState) -> None:
    begun, waits = target(state), target(JobState.READY, channel="x")
    assert obstacles(slot_of(begun, state=SlotState.DISPATCHED), EVERYTHING, now=DUE) == ()
    both = obstacles(slot_of(begun, waits, state=SlotState.DISPATCHED), EVERYTHING, now=DUE)
    assert reasons(*both) == ["QUEUE_PAUSED", "ACCOUNT_NOT_CONNECTED"]


def test_a_slot_at_publisher_goes_out_though_the_schedule_is_disabled() -> None:
    known = Circumstances(is_disabled=True)
    assert obstacles(slot_of(target(JobState.READY), state=SlotState.DISPATCHED), known, now=DUE) == ()


def test_a_slot_that_dispatch_has_passed_over_is_held_back() -> None:
    known = Circumstances(next_due_time=DUE + timedelta(seconds=1))
    assert reasons(*obstacles(slot_of(), known, now=DUE)) == ["HELD_BACK"]
    assert obstacles(slot_of(state=SlotState.DISPATCHED), known, now=DUE) == ()
    assert obstacles(slot_of(), replace(known, next_due_time=DUE), now=DUE) == ()
    assert reasons(*obstacles(slot_of(), replace(known, pause_time=START), now=DUE)) == ["QUEUE_PAUSED"]


def test_approval_is_not_known_to_be_missing_unless_it_is() -> None:
    assert obstacles(slot_of(), Circumstances(is_approved=None), now=DUE) == ()
    assert reasons(*obstacles(slot_of(), Circumstances(is_approved=False), now=DUE)) == ["NOT_APPROVED"]


@pytest.mark.parametrize("state", [JobState.BLOCKED, JobState.SENDING, JobState.PUBLISHED])
def test_a_post_that_publisher_has_checked_needs_no_word_on_its_draft(state: JobState) -> None:
    slot = slot_of(target(state), target(channel="other"), state=SlotState.DISPATCHED)
    assert obstacles(slot, Circumstances(is_approved=False), now=DUE) == ()


SCOPES = ("ORGANIZATION", "PROVIDER", "ACCOUNT", "BRAND", "CAMPAIGN")


@pytest.mark.parametrize("scope", SCOPES)
def test_a_hold_of_each_scope_is_said_in_words(scope: str) -> None:
    post = target(JobState.BLOCKED, f"{scope}_ON_HOLD")
    [obstacle] = obstacles(slot_of(post, state=SlotState.DISPATCHED), NOTHING, now=DUE)
    assert scope.lower() in obstacle.message
    assert "ListHolds" in obstacle.message


@pytest.mark.parametrize(
    ("state", "reason", "ends"),
    [
        (JobState.WAITING, "RETRY", True),
        (JobState.WAITING, "RATE_LIMITED", True),
        (JobState.WAITING, "A_NEW_REASON", True),
        (JobState.WAITING, "CONTENT_PENDING", False),
        *((JobState.BLOCKED, f"{scope}_ON_HOLD", False) for scope in SCOPES),
        (JobState.READY, "IN_LINE", False),
        (JobState.UNKNOWN, "RESEND_REFUSED", False),
    ],
)
def test_a_posts_reason_is_an_obstacle_of_its_target(state: JobState, reason: str, ends: bool) -> None:
    post = target(state, reason, next_action_time=DUE + HOUR)
    [obstacle] = obstacles(slot_of(post, state=SlotState.DISPATCHED), NOTHING, now=DUE)
    assert (obstacle.reason, obstacle.target) == (reason, post)
    assert obstacle.clear_time == (DUE + HOUR if ends else None)
    assert obstacle.message


def test_the_error_of_the_last_attempt_is_quoted() -> None:
    post = target(JobState.WAITING, "RETRY", error_message="502 Bad Gateway")
    [obstacle] = obstacles(slot_of(post, state=SlotState.DISPATCHED), NOTHING, now=DUE)
    assert obstacle.message.endswith("(502 Bad Gateway)")


def test_a_disconnected_account_is_named_once() -> None:
    slot = slot_of(target(JobState.BLOCKED, "ACCOUNT_NOT_CONNECTED"), state=SlotState.DISPATCHED)
    [known] = obstacles(slot, Circumstances(is_connected=False), now=DUE)
    [reported] = obstacles(slot, Circumstances(is_connected=True), now=DUE)
    assert (known.reason, known.target) == ("ACCOUNT_NOT_CONNECTED", None)
    assert (reported.reason, reported.target) == ("ACCOUNT_NOT_CONNECTED", slot.targets[0])


def test_the_reason_of_a_target_that_has_ended_is_none() -> None:
    slot = slot_of(target(JobState.CANCELED, "TARGET_REMOVED"), target(JobState.READY, channel="x"))
    assert obstacles(slot, NOTHING, now=DUE) == ()
