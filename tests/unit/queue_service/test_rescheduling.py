"""Giving slots the times of another schedule."""

from dataclasses import replace
from datetime import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from civil.weekly import WeeklySlot
from civil.windows import SendWindow
from queue_service.domain.arrangement import NO_CHANGE, Arrangement, Snapshot
from queue_service.domain.planned_change import PlannedSchedule
from queue_service.domain.rescheduling import Timetable, reschedule
from queue_service.domain.slot import SPACING, SlotOrigin, SlotState
from servicekit.faults import Refused
from tests.unit.queue_service.snapshots import HOUR, NOW, after, hour, names, queue_of, require_sound, slot, snapshots

NOON = {WeeklySlot(day=day, hour=12, minute=0): "" for day in range(7)}
DAILY = Timetable(weekly_slots=NOON, time_zone="UTC", max_posts_per_day=0, enabled=True)


def changed(snapshot: Snapshot, planned: PlannedSchedule, timetable: Timetable = DAILY) -> Arrangement:
    return reschedule(snapshot, timetable.changed(planned), now=NOW, notice=SPACING)


def times(arrangement: Arrangement) -> list[tuple[str, float]]:
    return [(each.slot.slot_id, (each.seat.time - NOW) / HOUR) for each in arrangement.moves]


def test_slots_with_slot_times_move_in_their_order_around_those_that_stay() -> None:
    chosen, sent = slot("x", hour(36), SlotOrigin.EXACT), slot("d", hour(1), state=SlotState.DISPATCHED)
    snapshot = queue_of(slot("a", hour(2)), slot("b", hour(3)), chosen, sent)
    assert times(changed(snapshot, PlannedSchedule())) == [("a", 12), ("b", 60)]


def test_absent_fields_are_those_of_the_schedule() -> None:
    snapshot = queue_of(slot("a", hour(2)))
    assert times(changed(snapshot, PlannedSchedule(time_zone="Asia/Tokyo"))) == [("a", 3)]
    evening = {WeeklySlot(day=1, hour=18, minute=0): ""}
    assert times(changed(snapshot, PlannedSchedule(weekly_slots=evening))) == [("a", 18)]


def test_the_cap_is_that_of_the_new_schedule() -> None:
    hourly = {WeeklySlot(day=day, hour=number, minute=0): "" for day in range(7) for number in range(24)}
    snapshot = queue_of(*(slot(name, hour(5 + place)) for place, name in enumerate("abc")))
    planned = PlannedSchedule(weekly_slots=hourly, max_posts_per_day=2)
    assert times(changed(snapshot, planned)) == [("a", 1), ("b", 2), ("c", 24)]
    assert times(changed(snapshot, PlannedSchedule(weekly_slots=hourly))) == [("a", 1), ("b", 2), ("c", 3)]


def test_slots_of_a_category_take_its_own_times_first() -> None:
    kept = {**NOON, WeeklySlot(day=1, hour=15, minute=0): "news"}
    snapshot = queue_of(slot("a", hour(1)), slot("n", hour(2), category="news"))
    assert times(changed(snapshot, PlannedSchedule(weekly_slots=kept))) == [("a", 12), ("n", 15)]


def test_a_seat_says_where_its_time_comes_from() -> None:
    [move] = changed(queue_of(slot("a", hour(2))), PlannedSchedule(time_zone="Asia/Tokyo")).moves
    assert (move.seat.origin, move.seat.time_zone, str(move.seat.local_time)) == ("QUEUE", "Asia/Tokyo", "12:00:00")
    assert move.seat.nominal is not None
    assert move.seat.nominal.hour == 12


def test_the_send_window_of_the_schedule_holds_for_the_planned_times() -> None:
    window = SendWindow(days=frozenset(range(1, 6)), start=time(12), end=time(18))
    windowed = replace(DAILY, send_window=window)
    snapshot = queue_of(slot("a", hour(2)), slot("b", hour(3)))
    thrice = {WeeklySlot(day=day, hour=number, minute=0): "" for day in (1, 6) for number in (11, 12, 17, 18)}
    assert times(changed(snapshot, PlannedSchedule(weekly_slots=thrice), windowed)) == [("a", 12), ("b", 17)]
    with pytest.raises(Refused, match="no weekly slot of account page lies inside its send window"):
        changed(snapshot, PlannedSchedule(weekly_slots={WeeklySlot(day=0, hour=12, minute=0): ""}), windowed)


def test_a_queue_without_slots_from_a_schedule_stays() -> None:
    assert changed(queue_of(slot("a", hour(2), SlotOrigin.EXACT)), PlannedSchedule()) == NO_CHANGE


@pytest.mark.parametrize(
    ("timetable", "reason"),
    [
        (Timetable(weekly_slots={}, time_zone="UTC", max_posts_per_day=0, enabled=True), "HORIZON_EXHAUSTED"),
        (Timetable(weekly_slots=NOON, time_zone="UTC", max_posts_per_day=0, enabled=False), "SCHEDULE_DISABLED"),
        (Timetable(weekly_slots=NOON, time_zone="No/Where", max_posts_per_day=0, enabled=True), "UNKNOWN_TIME_ZONE"),
    ],
)
def test_a_schedule_without_times_is_refused(timetable: Timetable, reason: str) -> None:
    with pytest.raises(Refused) as refused:
        changed(queue_of(slot("a", hour(2))), PlannedSchedule(), timetable)
    assert refused.value.reason == reason


def test_as_many_times_are_computed_as_a_cap_makes_necessary() -> None:
    hourly = {WeeklySlot(day=day, hour=number, minute=0): "" for day in range(7) for number in range(24)}
    snapshot = queue_of(*(slot(f"s{place}", hour(1 + place)) for place in range(100)))
    moved = times(changed(snapshot, PlannedSchedule(weekly_slots=hourly, max_posts_per_day=1)))
    assert moved[-1] == ("s99", 99 * 24)


@given(snapshots(), st.integers(0, 3), st.sets(st.integers(0, 23), min_size=1, max_size=4))
def test_the_order_stays_within_a_category_and_nothing_collides(snapshot: Snapshot, cap: int, hours: set[int]) -> None:
    weekly = {WeeklySlot(day=day, hour=each, minute=0): "" for day in range(7) for each in hours}
    arrangement = changed(snapshot, PlannedSchedule(weekly_slots=weekly, max_posts_per_day=cap))
    require_sound(snapshot, arrangement)
    before = names(snapshot.shiftable)
    assert names([each for each in after(snapshot, arrangement) if each.can_shift]) == before
