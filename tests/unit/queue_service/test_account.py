"""The announcements of a schedule that an account's queue learns from."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_service.domain.account import AccountQueue, AnnouncedSchedule
from queue_service.domain.frontier import NOTHING_KNOWN
from queue_service.domain.late_policy import LateAction, LatePolicy
from testkit.clocks import START

RELEASES = ["", "2025b", "2026a", "2026b"]


def queue(version: int, release: str) -> AccountQueue:
    return AccountQueue(social_account_id="page", schedule_version=version, tzdata_version=release)


def announced(version: int, release: str) -> AnnouncedSchedule:
    return AnnouncedSchedule(
        organization_id="acme",
        social_account_id="page",
        version=version,
        time_zone="UTC",
        max_posts_per_day=0,
        enabled=True,
        tzdata_version=release,
    )


@pytest.mark.parametrize(
    ("version", "release", "learns"),
    [
        (2, "2026a", False),
        (3, "2026a", True),
        (3, "2025b", True),
        (2, "2026b", True),
        (1, "2026b", True),
        (1, "2026a", False),
        (2, "2025b", False),
        (2, "", False),
        (3, "", True),
    ],
)
def test_a_queue_learns_from_a_newer_schedule_or_newer_time_zone_data(version: int, release: str, learns: bool) -> None:
    assert queue(2, "2026a").learns_from(announced(version, release)) is learns


@pytest.mark.parametrize("release", RELEASES)
def test_a_queue_without_a_schedule_learns_from_any_first_one(release: str) -> None:
    assert AccountQueue(social_account_id="page").learns_from(announced(1, release))


announcements = st.lists(st.tuples(st.integers(1, 4), st.sampled_from(RELEASES)), min_size=1, max_size=8)


@given(announcements)
def test_the_newest_version_and_release_are_learned_in_any_order(given_order: list[tuple[int, str]]) -> None:
    known = queue(0, "")
    for version, release in given_order:
        if known.learns_from(announced(version, release)):
            known = known.learned(announced(version, release))
    newest = max(version for version, _ in given_order), max(release for _, release in given_order)
    assert (known.schedule_version, known.tzdata_version) == newest


def test_what_was_searched_in_an_older_schedule_is_forgotten() -> None:
    searched = queue(2, "2026a").with_frontier_of("", NOTHING_KNOWN.passed(START))
    searched = searched.with_frontier_of("news", NOTHING_KNOWN.passed(START))
    newer = replace(announced(3, "2026a"), time_zone="Asia/Tokyo", max_posts_per_day=4)
    learned = searched.learned(newer)
    assert (learned.frontier, learned.category_frontiers) == (NOTHING_KNOWN, {})
    assert (learned.time_zone, learned.max_posts_per_day, learned.enabled) == ("Asia/Tokyo", 4, True)
    older = learned.learned(announced(1, "2026b"))
    assert (older.time_zone, older.schedule_version, older.tzdata_version) == ("Asia/Tokyo", 3, "2026b")


def test_times_that_become_free_reopen_the_frontiers_of_all_categories() -> None:
    start, end = START + timedelta(hours=3), START + timedelta(hours=4)
    known = NOTHING_KNOWN.passed(START + timedelta(hours=9))
    before = queue(2, "2026a").with_frontier_of("", known).with_frontier_of("news", known)
    after = before.reopened(start, end)
    assert {after.frontier_of(name).next_open(START) for name in ("", "news")} == {start}
    assert after.frontier_of("other") == NOTHING_KNOWN


def test_late_slots_get_other_times_only_where_dispatch_would_take_them() -> None:
    policy = LatePolicy(action=LateAction.RESLOT)
    running = AccountQueue(
        social_account_id="page", schedule_version=1, time_zone="UTC", enabled=True, late_policy=policy
    )
    assert running.reslots
    assert not replace(running, late_policy=LatePolicy(action=LateAction.MISS)).reslots
    assert not replace(running, pause_time=START).reslots
    assert not replace(running, enabled=False).reslots
    # A queue without a schedule, or whose schedule was deleted, is not disabled.
    assert replace(running, enabled=False, time_zone="").reslots
    assert AccountQueue(social_account_id="page", late_policy=policy).reslots
