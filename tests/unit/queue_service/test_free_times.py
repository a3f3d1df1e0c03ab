"""Free slot times for decisions: what fills one, and what is missing when there is none."""

from dataclasses import replace
from datetime import timedelta
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_service.domain.arrangement import Snapshot
from queue_service.domain.free_times import FreeTimes, MoreTimes, paced, reseat
from queue_service.domain.frontier import Frontier
from queue_service.domain.schedule_check import ReadAgain, refused
from queue_service.domain.slot import SPACING, SlotOrigin, SlotState
from servicekit.faults import Fault
from tests.unit.queue_service.snapshots import HOUR, NOW, RELEASE, free, hour, hourly, queue_of, slot, snapshots


def first(snapshot: Snapshot, count: int = 3, start: float = 0) -> list[float]:
    return [(seat.time - NOW) / HOUR for seat in islice(free(snapshot).seats(hour(start)), count)]


def refusal(times: FreeTimes) -> str:
    with pytest.raises(Fault) as fault:
        next(times.seats(NOW))
    return fault.value.reason


def test_filled_and_skipped_times_are_passed_over() -> None:
    snapshot = queue_of(slot("a", hour(1)), slot("p", hour(3) + SPACING / 2, SlotOrigin.EXACT))
    skipping = replace(snapshot, queue=replace(snapshot.queue, skipped_times=(hour(2),)))
    assert first(skipping) == [4, 5, 6]


def test_a_free_seat_has_its_nominal_and_local_time() -> None:
    seat = next(free(queue_of()).seats(NOW))
    assert seat == slot("", hour(1)).seat
    assert (seat.time_zone, seat.tzdata_version, str(seat.local_time)) == ("UTC", RELEASE, "01:00:00")


def test_a_cap_counts_live_and_ended_slots_and_those_just_given() -> None:
    snapshot = queue_of(slot("a", hour(1)), cap=3)
    snapshot = replace(snapshot, counted=(hour(0.5),))
    assert first(snapshot, 4) == [2, 24, 25, 26]


def test_a_slot_that_leaves_frees_its_time_and_its_place_under_the_cap() -> None:
    leaving = slot("a", hour(1))
    snapshot = queue_of(leaving, slot("b", hour(3)), cap=2, frontier=Frontier().passed(hour(30)))
    seats = free(snapshot).without([leaving]).seats(NOW)
    assert [next(seats).time, next(seats).time] == [hour(1), hour(24)]


def test_the_search_skips_what_is_known_to_be_filled() -> None:
    assert first(queue_of(frontier=Frontier().passed(hour(7)))) == [7, 8, 9]


def test_the_end_of_what_was_read_is_not_the_end() -> None:
    seats = FreeTimes(queue_of(), {"": hourly(3, last=False)}).seats(NOW)
    assert [next(seats).time, next(seats).time] == [hour(1), hour(2)]
    with pytest.raises(MoreTimes) as needed:
        next(seats)
    assert needed.value.start == NOW


def test_the_end_of_the_horizon_is_refused() -> None:
    assert refusal(FreeTimes(queue_of(slot("a", hour(1))), {"": hourly(2)})) == "HORIZON_EXHAUSTED"


def test_times_must_be_those_of_the_queues_schedule() -> None:
    snapshot = queue_of()
    with pytest.raises(ReadAgain) as outdated:
        next(FreeTimes(snapshot, {"": replace(hourly(9), schedule_version=0)}).seats(NOW))
    assert not outdated.value.needs_more
    with pytest.raises(MoreTimes):
        next(FreeTimes(snapshot, {"": replace(hourly(9), after=hour(1))}).seats(NOW))
    assert refusal(FreeTimes(snapshot, {"": replace(hourly(9), schedule_version=2)})) == "SCHEDULE_CHANGING"


def test_without_a_schedule_there_are_no_times() -> None:
    assert refusal(FreeTimes(queue_of(), refused("NO_SCHEDULE", "no", "page"))) == "NO_SCHEDULE"
    for change, reason in (({"enabled": False}, "SCHEDULE_DISABLED"), ({"time_zone": "No/Where"}, "UNKNOWN_TIME_ZONE")):
        snapshot = replace(queue_of(), queue=replace(queue_of().queue, **change))
        assert refusal(free(snapshot)) == reason


@given(snapshots(), st.integers(0, 3))
def test_seats_are_free_and_in_order(snapshot: Snapshot, cap: int) -> None:
    snapshot = replace(snapshot, queue=replace(snapshot.queue, max_posts_per_day=cap))
    times = [seat.time for seat in islice(free(snapshot).seats(NOW), 12)]
    assert times == sorted(set(times))
    assert all(abs(time - other.time) >= SPACING for time in times for other in snapshot.slots)
    by_day = [time.date() for time in times] + [other.time.date() for other in snapshot.slots]
    assert not cap or all(by_day.count(time.date()) <= cap for time in times)


def test_slots_get_the_next_seats_in_their_order() -> None:
    late = [slot("a", hour(-3)), slot("b", hour(-2))]
    snapshot = queue_of(*late, slot("c", hour(1)))
    given_seats = reseat(late, free(snapshot), start=NOW)
    assert [(each.slot_id, seat.time) for each, seat in given_seats] == [("a", hour(2)), ("b", hour(3))]


def test_a_category_has_its_own_times_and_then_those_of_nobody() -> None:
    late = [slot("a", hour(-3)), slot("b", hour(-2), category="news"), slot("c", hour(-1), category="news")]
    noon = replace(hourly(2), times=(hour(12),), nominals=(None,))
    read = {"": hourly(9), "news": noon}
    placed = reseat(late, FreeTimes(queue_of(*late), read), start=NOW)
    assert [(each.slot_id, seat.time) for each, seat in placed] == [("a", hour(1)), ("b", hour(12)), ("c", hour(2))]
    with pytest.raises(MoreTimes) as needed:
        reseat(late, FreeTimes(queue_of(*late), {"": hourly(9)}), start=NOW)
    assert needed.value.category == "news"


def test_paced_slots_keep_their_distance_from_each_other_and_the_rest() -> None:
    late = [slot(name, hour(-number)) for number, name in ((3, "a"), (2, "b"), (1, "c"))]
    others = [NOW + timedelta(minutes=5), NOW + timedelta(minutes=5, seconds=59)]
    placed = paced(late, others, "UTC", first=NOW, pace=timedelta(minutes=5))
    assert [seat.time - NOW for _, seat in placed] == [
        timedelta(0),
        timedelta(minutes=6, seconds=59),
        timedelta(minutes=11, seconds=59),
    ]
    assert {each.seat.origin for each, _ in zip(late, placed, strict=True)} == {SlotOrigin.QUEUE}


@given(snapshots(), st.integers(0, 120))
def test_paced_slots_lie_a_minute_from_all_others(snapshot: Snapshot, start: int) -> None:
    late = [slot(f"late-{number}", hour(-number), state=SlotState.SCHEDULED) for number in range(1, 9)]
    others = [each.time for each in snapshot.slots]
    placed = [
        seat.time for _, seat in paced(late, others, "UTC", first=NOW + start * SPACING, pace=timedelta(minutes=20))
    ]
    assert all(second - first >= timedelta(minutes=20) for first, second in pairwise(placed))
    assert all(abs(time - other) >= SPACING for time in placed for other in others)
