"""Limits: where a post over one is parked, and how many of those a limit lets go."""

from datetime import timedelta

import pytest

from channels import KNOWN, Action
from publisher_service.domain.claim import Verdict
from publisher_service.domain.limits import (
    SPACED_OUTREACH,
    SPACED_POSTS,
    LimitDefaults,
    Room,
    capped_action,
    channels_of,
    closed_channel,
    parking_of,
    room_of_cap,
    room_of_channel,
    room_of_spacing,
)
from tests.unit.publisher_service.post_jobs import LATER, NOW

SIX = timedelta(minutes=6)


@pytest.mark.parametrize("action", Action)
def test_a_capped_post_is_parked_on_its_action(action: Action) -> None:
    assert capped_action(parking_of(Verdict.DAILY_CAP, action, "email")) is action


def test_posts_and_outreach_are_spaced_apart() -> None:
    assert parking_of(Verdict.SPACING, Action.POST, "facebook") == SPACED_POSTS
    outreach = {parking_of(Verdict.SPACING, action, "email") for action in Action if action is not Action.POST}
    assert outreach == {SPACED_OUTREACH}


@pytest.mark.parametrize("verdict", [Verdict.SEND_WINDOW, Verdict.ACCOUNT_BUSY, Verdict.CLAIMED])
def test_other_verdicts_park_nothing(verdict: Verdict) -> None:
    assert parking_of(verdict, Action.EMAIL, "email") == ""


def test_a_post_to_a_closed_channel_is_parked_on_that_channel() -> None:
    parked_on = parking_of(Verdict.PROVIDER_QUOTA, Action.POST, "instagram_feed")
    assert (parked_on, closed_channel(parked_on)) == ("channel:instagram_feed", "instagram_feed")


@pytest.mark.parametrize("parked_on", ["", SPACED_POSTS, "action:EMAIL"])
def test_other_limits_close_no_channel(parked_on: str) -> None:
    assert closed_channel(parked_on) == ""


@pytest.mark.parametrize("parked_on", ["", SPACED_POSTS, SPACED_OUTREACH, "EMAIL", "action:HOLOGRAM", "channel:email"])
def test_other_limits_cap_no_action(parked_on: str) -> None:
    assert capped_action(parked_on) is None


def test_each_channel_has_one_action() -> None:
    assert sorted(channel for action in Action for channel in channels_of(action)) == sorted(KNOWN)


def test_the_default_limits_are_those_of_the_contract() -> None:
    defaults = LimitDefaults()
    assert defaults.caps == {Action.EMAIL: 20, Action.MESSAGE: 50, Action.CONNECTION_REQUEST: 20}
    assert defaults.outreach_spacing == SIX


def test_a_spacing_lets_one_go_once_it_is_over() -> None:
    assert room_of_spacing(LATER, SIX, now=NOW) == Room(posts=0, next_look=LATER)
    assert room_of_spacing(NOW, SIX, now=NOW) == Room(posts=1, next_look=NOW + SIX)
    assert room_of_spacing(None, None, now=NOW) == Room(posts=1, next_look=NOW + timedelta(seconds=1))


@pytest.mark.parametrize(
    ("left", "waiting", "room"),
    [
        (0, 0, Room(posts=0, next_look=LATER)),
        (-3, 0, Room(posts=0, next_look=LATER)),
        (5, 0, Room(posts=5, next_look=NOW + SIX)),
        (5, 3, Room(posts=2, next_look=NOW + SIX)),
        (5, 9, Room(posts=0, next_look=NOW + SIX)),
    ],
)
def test_a_cap_lets_go_what_is_left_of_it(left: int, waiting: int, room: Room) -> None:
    assert room_of_cap(left, waiting, day_end=LATER, again=SIX, now=NOW) == room


def test_a_cap_is_looked_at_when_the_day_ends_at_the_latest() -> None:
    assert room_of_cap(5, 5, day_end=LATER, again=timedelta(days=1), now=NOW).next_look == LATER


def test_a_channel_lets_a_few_go_at_a_time_once_it_is_open_again() -> None:
    assert room_of_channel(LATER, now=NOW) == Room(posts=0, next_look=LATER)
    opened = Room(posts=50, next_look=NOW + timedelta(seconds=5))
    assert room_of_channel(NOW, now=NOW) == room_of_channel(None, now=NOW) == opened
