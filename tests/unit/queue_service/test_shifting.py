"""Shifting slots by one seat, and shuffling them."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from queue_service.domain.arrangement import Arrangement, Snapshot, slots_from
from queue_service.domain.shifting import close_gap, let_in, shuffle
from queue_service.domain.slot import MoveReason, SlotOrigin, SlotState
from tests.unit.queue_service.snapshots import NOW, after, hour, names, queue_of, require_sound, slot, snapshots


def test_slots_shift_until_a_free_time_takes_the_last() -> None:
    snapshot = queue_of(slot("a", hour(1)), slot("b", hour(2)), slot("c", hour(4)))
    seat, moves = let_in(snapshot.shiftable, slot("", hour(3)).seat)
    assert seat.time == hour(1)
    assert [(move.slot.slot_id, move.seat.time, move.reason) for move in moves] == [
        ("a", hour(2), MoveReason.SHIFTED),
        ("b", hour(3), MoveReason.SHIFTED),
    ]


def test_an_earlier_free_time_shifts_nobody() -> None:
    snapshot = queue_of(slot("a", hour(2)))
    seat, moves = let_in(snapshot.shiftable, slot("", hour(1)).seat)
    assert (seat.time, moves) == (hour(1), ())


def test_pinned_and_dispatched_slots_stay_in_a_shift() -> None:
    snapshot = queue_of(
        slot("d", hour(1), state=SlotState.DISPATCHED),
        slot("a", hour(2)),
        slot("p", hour(2.5), SlotOrigin.EXACT),
        slot("b", hour(3)),
    )
    seat, moves = let_in(snapshot.shiftable, slot("", hour(4)).seat)
    assert seat.time == hour(2)
    assert names(after(snapshot, Arrangement(moves=moves))) == "d p a b"


def test_a_closed_gap_moves_later_slots_up() -> None:
    snapshot = queue_of(
        slot("a", hour(1)), slot("b", hour(2)), slot("p", hour(2.5), SlotOrigin.DRAFT), slot("c", hour(3))
    )
    moves = close_gap(snapshot, snapshot.slots[0], earliest=NOW)
    assert [(move.slot.slot_id, move.seat.time) for move in moves] == [("b", hour(1)), ("c", hour(2))]


def test_a_chosen_time_leaves_no_gap() -> None:
    snapshot = queue_of(slot("p", hour(1), SlotOrigin.EXACT), slot("b", hour(2)))
    assert close_gap(snapshot, snapshot.slots[0], earliest=NOW) == ()


def test_no_slot_moves_up_to_a_time_that_is_too_near() -> None:
    snapshot = queue_of(slot("a", hour(1)), slot("b", hour(2)))
    assert close_gap(snapshot, snapshot.slots[0], earliest=hour(1.5)) == ()


def test_a_gap_of_a_category_is_closed_within_it() -> None:
    snapshot = queue_of(slot("a", hour(1), category="news"), slot("b", hour(2)), slot("c", hour(3), category="news"))
    [move] = close_gap(snapshot, snapshot.slots[0], earliest=NOW)
    assert (move.slot.slot_id, move.seat.time) == ("c", hour(1))


@given(snapshots(), st.integers(1, 2**53))
def test_a_shuffle_permutes_the_seats_of_each_category(snapshot: Snapshot, seed: int) -> None:
    arrangement = shuffle(snapshot, seed)
    require_sound(snapshot, arrangement)
    shuffled = after(snapshot, arrangement)
    assert Counter((each.seat, each.category_id) for each in shuffled) == Counter(
        (each.seat, each.category_id) for each in snapshot.slots
    )
    assert {each for each in snapshot.slots if not each.can_shift} <= set(shuffled)


@given(snapshots(), st.integers(1, 2**53))
def test_the_same_seed_gives_the_same_order(snapshot: Snapshot, seed: int) -> None:
    once = queue_of(*after(snapshot, shuffle(snapshot, seed)))
    assert shuffle(once, seed).moves == ()
    other = queue_of(*after(once, shuffle(once, seed + 1)))
    assert names(after(other, shuffle(other, seed))) == names(once.slots)


@given(snapshots(), st.integers(1, 45))
def test_letting_one_in_moves_each_slot_by_one_seat(snapshot: Snapshot, start: int) -> None:
    taken = {each.time for each in snapshot.slots}
    absorbing = next(hour(number) for number in range(start, 99) if hour(number) not in taken)
    chain = slots_from(snapshot.shiftable, hour(start))
    seat, moves = let_in(chain, slot("", absorbing).seat)
    arrangement = Arrangement(moves=moves, additions=(seat,))
    require_sound(snapshot, arrangement)
    assert seat.time not in {each.time for each in after(snapshot, arrangement)}
    order = [each.slot_id for each in after(snapshot, arrangement) if each.can_shift]
    assert order == [each.slot_id for each in snapshot.shiftable]
    assert arrangement.freed_times == []
