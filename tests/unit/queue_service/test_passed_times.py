"""The slot times that a slot did not get."""

from datetime import timedelta
from typing import Any

import pytest

from queue_service.domain.passed_times import (
    MOST_PASSED,
    Filling,
    OfferedTime,
    PassedTime,
    PassReason,
    Surroundings,
    passed_times,
)
from queue_service.domain.slot import SlotState
from testkit.clocks import START
from tests.unit.queue_service.explained import slot_of

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
FIRST, SECOND, OWN = (START + number * 10 * MINUTE for number in (1, 2, 3))
OTHER = Filling("s0", "d0")


def judged(*offered: OfferedTime, category: str = "", **around: Any) -> list[PassReason]:
    return [each.reason for each in passed(*offered, category=category, **around)]


def passed(*offered: OfferedTime, category: str = "", **around: Any) -> tuple[PassedTime, ...]:
    slot = slot_of(schedule_time=OWN)
    return passed_times(
        slot, offered, Surroundings(**around), category_id=category, now=START, notice=timedelta(seconds=60)
    )


def test_a_time_with_another_slot_near_it_is_filled() -> None:
    assert passed(OfferedTime(FIRST), filled={FIRST: OTHER}) == (PassedTime(FIRST, PassReason.FILLED, "s0", "d0"),)


def test_a_free_time_is_a_gap() -> None:
    assert passed(OfferedTime(FIRST)) == (PassedTime(FIRST, PassReason.GAP),)


def test_a_skipped_time_that_was_filled_later_is_filled() -> None:
    assert judged(OfferedTime(FIRST), skipped=(FIRST,)) == [PassReason.SKIPPED]
    assert judged(OfferedTime(FIRST), skipped=(FIRST,), filled={FIRST: OTHER}) == [PassReason.FILLED]


@pytest.mark.parametrize(("seconds", "reason"), [(59, PassReason.NOTICE), (60, PassReason.GAP)])
def test_a_time_within_the_notice_is_too_near(seconds: int, reason: PassReason) -> None:
    assert judged(OfferedTime(START + timedelta(seconds=seconds))) == [reason]


def test_the_slots_own_time_and_later_ones_are_not_passed() -> None:
    assert judged(OfferedTime(OWN), OfferedTime(OWN + MINUTE)) == []


def test_the_latest_fifty_are_given_in_order() -> None:
    offered = [OfferedTime(OWN - number * timedelta(seconds=1)) for number in range(MOST_PASSED + 5, 0, -1)]
    assert [each.time for each in passed(*offered)] == [each.time for each in offered[5:]]


@pytest.mark.parametrize(
    ("state", "counted", "reason"),
    [
        # The slot itself is one of those counted.
        (SlotState.SCHEDULED, 2, PassReason.GAP),
        (SlotState.SCHEDULED, 3, PassReason.CAPPED),
        (SlotState.CANCELED, 2, PassReason.CAPPED),
    ],
)
def test_a_day_that_others_have_filled_up_is_capped(state: SlotState, counted: int, reason: PassReason) -> None:
    around = Surroundings(counted={OWN.date(): counted}, cap=2, time_zone="UTC")
    [found] = passed_times(
        slot_of(schedule_time=OWN, state=state),
        [OfferedTime(FIRST)],
        around,
        category_id="",
        now=START,
        notice=MINUTE,
    )
    assert found.reason is reason


def test_the_day_before_is_capped_by_all_its_slots() -> None:
    around = Surroundings(counted={FIRST.date(): 1, (FIRST + DAY).date(): 1}, cap=1, time_zone="UTC")
    slot = slot_of(schedule_time=FIRST + DAY)
    [found] = passed_times(slot, [OfferedTime(FIRST)], around, category_id="", now=START, notice=MINUTE)
    assert found.reason is PassReason.CAPPED


def test_a_cap_in_a_zone_that_is_unknown_here_is_not_checked() -> None:
    assert judged(OfferedTime(FIRST), cap=1, time_zone="Mars/Olympus", counted={FIRST.date(): 9}) == [PassReason.GAP]


NEWS, SPORT, PLAIN = OfferedTime(FIRST, "news"), OfferedTime(FIRST, "sport"), OfferedTime(SECOND)


@pytest.mark.parametrize(
    ("category", "own", "reasons"),
    [
        # A draft without a category takes times that no category keeps.
        ("", "", ["CATEGORY", "GAP"]),
        # One with a category takes those of its category first.
        ("news", "news", ["GAP", "CATEGORY"]),
        # It has fallen back.
        ("news", "", ["GAP", "GAP"]),
        ("sport", "", ["CATEGORY", "GAP"]),
    ],
)
def test_times_of_other_categories_are_not_for_the_draft(category: str, own: str, reasons: list[str]) -> None:
    assert judged(NEWS, PLAIN, OfferedTime(OWN, own), category=category) == reasons


def test_a_time_outside_the_window_is_that_even_if_it_is_filled() -> None:
    outside = OfferedTime(FIRST, is_outside_window=True)
    assert judged(outside, filled={FIRST: OTHER}) == [PassReason.WINDOW]
    assert judged(outside, skipped=(FIRST,), counted={FIRST.date(): 9}, cap=1, time_zone="UTC") == [PassReason.WINDOW]
    assert judged(OfferedTime(FIRST, "sport", is_outside_window=True)) == [PassReason.CATEGORY]


def test_a_time_of_another_category_is_that_even_if_it_is_filled() -> None:
    assert judged(SPORT, OfferedTime(OWN), filled={FIRST: OTHER}) == [PassReason.CATEGORY]
