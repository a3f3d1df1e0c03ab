"""Draws for steps: posts, what stops them, what moves them, and how the provider answers.

A step is the name of a method of the machine with its arguments.
"""

from datetime import timedelta
from typing import Any

from hypothesis import strategies as st

from publisher_service.domain.destination import DestinationState
from publisher_service.domain.hold import Scope
from tests.usecase.publisher_service.machine.provider import ANSWERS
from tests.usecase.publisher_service.machine.scene import (
    ACCOUNTS,
    DESTINATIONS,
    FOLLOWED,
    POSTS,
    SPACINGS,
    WINDOWS,
    ZONES,
)

Post = tuple[str, str]
Named = tuple[Any, ...]
Stopped = tuple[Post, Named]

ADDRESSED = [(letter, account) for letter, account in POSTS if letter in DESTINATIONS]
"""Posts to destinations."""

posts = st.sampled_from(POSTS)
followed = st.sampled_from([(letter, account) for letter, account in POSTS if letter in FOLLOWED])
addressed = st.sampled_from(ADDRESSED)
accounts = st.sampled_from(ACCOUNTS)
caps = st.sampled_from([None, 1, 1, 2, 3])
rooms = st.sampled_from([1, 1, 2, 10])
numbers = st.integers(0, 7)
zones, windows, spacings = st.sampled_from(ZONES), st.sampled_from(WINDOWS), st.sampled_from(SPACINGS)
spans = st.sampled_from([0, 1, 5, 12, 20, 60, 600]).map(lambda seconds: timedelta(seconds=seconds))
patience = st.sampled_from([5, 20, 60, 12 * 24 * 60]).map(lambda minutes: timedelta(minutes=minutes))

begun_answers = st.sampled_from([*ANSWERS, *(["late accepted"] * 4), "late out and lost"])
answers = st.sampled_from(
    [*ANSWERS, "accepted", "slow", "slow", "late accepted", "late out and lost", "late not sent", "claim failed"]
)
late_answers = st.sampled_from(
    [
        "late accepted",
        "late out and lost",
        "late lost",
        "late not sent",
        "late rejected",
        "late rejected",
        "claim failed",
    ]
)
second_answers = st.sampled_from(
    ["out and silent", "late accepted", "late out and lost", "silent", "accepted", "not begun", "slow"]
)
doubtful_answers = st.sampled_from(["lost", "lost", "out and lost", "silent", "late lost", "late not sent"])
unfinished_answers = st.sampled_from(
    ["slow", "slow", "lost", "out and lost", "silent", "late lost", "late not sent", "claim failed", "not sent"]
)


def stops_of(post: Post) -> list[Named]:
    """Returns what may stop a post, or change the way that it goes."""
    letter, account = post
    switches = [("switch", post, state) for state in DestinationState] if letter in DESTINATIONS else []
    return [
        *(("hold", (name, Scope.ACCOUNT, account)) for name in ("one", "two")),
        *(("hold", (name, Scope.BRAND, "bakery")) for name in ("one", "two")),
        ("hold", ("one", Scope.BRAND, "florist")),
        ("hold", ("one", Scope.CAMPAIGN, "spring")),
        ("hold", ("one", Scope.ORGANIZATION, "")),
        ("hold", ("one", Scope.PROVIDER, "sandbox")),
        ("disconnect", account),
        ("disconnect_and_connect", account),
        ("cancel", post),
        ("drop_slot", post),
        ("withdraw", letter),
        ("save", letter, False, False, 2, None),
        ("save", letter, False, True, 2, None),
        ("save", letter, True, True, 2, None),
        ("save", letter, True, False, 2, "florist"),
        ("save", letter, True, True, 1, ""),
        ("save", letter, True, True, 0, None),
        *(("set_cap", account, cap) for cap in (1, 2, None)),
        ("set_schedule", account, "", False, None, None),
        ("set_schedule", account, "Europe/Berlin", True, WINDOWS[1], None),
        ("set_schedule", account, "America/New_York", True, WINDOWS[2], None),
        ("set_schedule", account, "Europe/Berlin", True, None, SPACINGS[2]),
        ("resolve", post),
        ("publish_now", post, False),
        *switches,
    ]


stopped_posts = posts.flatmap(lambda post: st.tuples(st.just(post), st.sampled_from(stops_of(post))))
stops = stopped_posts.map(lambda stopped: stopped[1])
moves: st.SearchStrategy[Named] = st.one_of(
    st.tuples(st.just("schedule"), posts, spans, patience),
    st.tuples(st.just("repeat_event"), st.integers(0, 1000)),
    st.tuples(st.just("break_looks"), st.booleans()),
    st.tuples(st.just("deliver"), numbers, answers),
    st.tuples(st.just("take_in"), answers),
    st.tuples(st.just("sweep"), answers),
    st.tuples(st.just("take_turns"), answers),
    st.tuples(st.just("publish_now"), posts, st.booleans()),
    st.tuples(st.just("resolve"), posts),
    st.tuples(st.just("retry"), posts),
    st.tuples(st.just("release"), numbers),
    st.tuples(st.just("connect"), accounts),
    st.tuples(st.just("answer_late")),
    st.tuples(st.just("begin_request"), begun_answers),
)
