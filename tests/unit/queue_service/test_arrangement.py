"""Arrangements: what they free, and what that does to the search for free times."""

from hypothesis import given

from queue_service.domain.arrangement import (
    NO_CHANGE,
    Arrangement,
    Cancellation,
    Move,
    Snapshot,
    freed_stretches,
)
from queue_service.domain.frontier import Frontier
from queue_service.domain.removing import clear
from queue_service.domain.shifting import shuffle
from queue_service.domain.slot import SPACING, CancelReason, MoveReason, SlotState
from tests.unit.queue_service.snapshots import DAY, HOUR, NOW, hour, queue_of, slot, snapshots


def test_a_move_frees_the_time_that_nobody_gets() -> None:
    first, second = slot("a", hour(1)), slot("b", hour(2))
    to_last = slot("", hour(9)).seat
    moves = (Move(first, second.seat, MoveReason.SHIFTED), Move(second, to_last, MoveReason.SHIFTED))
    assert Arrangement(moves=moves).freed_times == [hour(1)]
    assert Arrangement(moves=moves, additions=(first.seat,)).freed_times == []


def test_a_cancellation_frees_its_time_unless_another_slot_gets_it() -> None:
    gone, next_one = slot("a", hour(1)), slot("b", hour(2))
    canceled = (Cancellation(gone, CancelReason.REMOVED),)
    assert Arrangement(cancellations=canceled).freed_times == [hour(1)]
    closed = Arrangement(cancellations=canceled, moves=(Move(next_one, gone.seat, MoveReason.SHIFTED),))
    assert closed.freed_times == [hour(2)]


def test_publisher_gives_back_the_slots_that_are_named_or_all() -> None:
    one, two = (slot(name, hour(place), state=SlotState.DISPATCHED) for place, name in enumerate("ab"))
    snapshot = queue_of(one, two)
    assert [each.slot_id for each in snapshot.taken_back({"b"}).scheduled] == ["b"]
    assert [each.slot_id for each in snapshot.taken_back().scheduled] == ["a", "b"]


@given(snapshots())
def test_a_permutation_frees_nothing(snapshot: Snapshot) -> None:
    assert shuffle(snapshot, 7).freed_times == []


def test_freed_times_are_found_again_by_a_search() -> None:
    snapshot = queue_of(slot("a", hour(1)), slot("b", hour(2)))
    full = Frontier().passed(hour(100))
    for start, end in freed_stretches(snapshot.queue, clear(snapshot).freed_times, earliest=NOW):
        full = full.reopened(start, end)
    assert full.next_open(NOW) == hour(1) - SPACING


def test_a_freed_time_under_a_cap_reopens_its_day() -> None:
    snapshot = queue_of(slot("a", hour(25)), cap=1)
    [stretch] = freed_stretches(snapshot.queue, [hour(25)], earliest=NOW)
    assert stretch == (NOW + DAY, NOW + 2 * DAY)


def test_times_too_near_to_be_given_out_reopen_nothing() -> None:
    snapshot = queue_of(slot("a", hour(1)))
    assert freed_stretches(snapshot.queue, [hour(1)], earliest=hour(1) + HOUR) == []


def test_an_empty_arrangement_changes_nothing() -> None:
    assert not NO_CHANGE.changes_anything
    assert Arrangement(additions=(slot("a", hour(1)).seat,)).changes_anything
