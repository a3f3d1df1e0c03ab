"""Moving one slot: where it comes to be, and who makes room."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_service.domain.arrangement import NO_CHANGE, Arrangement, Snapshot
from queue_service.domain.free_times import FreeTimes, MoreTimes
from queue_service.domain.moving import Before, Destination, ToBottom, ToTime, ToTop, move
from queue_service.domain.slot import SPACING, MoveReason, SlotOrigin, SlotState
from servicekit.faults import Fault, InvalidField
from tests.unit.queue_service.snapshots import (
    NOW,
    after,
    free,
    hour,
    names,
    queue_of,
    require_sound,
    slot,
    snapshots,
)

QUEUE = queue_of(
    slot("d", hour(1), state=SlotState.DISPATCHED),
    slot("a", hour(2)),
    slot("b", hour(3)),
    slot("p", hour(3.5), SlotOrigin.EXACT),
    slot("c", hour(4)),
    slot("e", hour(6)),
)


def moved(name: str, destination: Destination, snapshot: Snapshot = QUEUE) -> Arrangement:
    chosen = snapshot.find(name)
    assert chosen is not None
    arrangement = move(snapshot, chosen, destination, free(snapshot), now=NOW, earliest=NOW + SPACING)
    require_sound(snapshot, arrangement)
    return arrangement


def order(arrangement: Arrangement) -> str:
    return names(after(QUEUE, arrangement))


def refusal(name: str, destination: Destination) -> Fault:
    with pytest.raises(Fault) as refused:
        moved(name, destination)
    return refused.value


def test_a_slot_moves_to_the_top_and_the_others_down() -> None:
    arrangement = moved("c", ToTop())
    assert order(arrangement) == "d c a p b e"
    assert {each.slot.slot_id: each.reason for each in arrangement.moves} == {
        "a": MoveReason.SHIFTED,
        "b": MoveReason.SHIFTED,
        "c": MoveReason.MOVED,
    }
    assert arrangement.freed_times == []


def test_the_first_slot_is_at_the_top_already() -> None:
    assert moved("a", ToTop()) == NO_CHANGE
    alone = queue_of(slot("a", hour(1)))
    assert moved("a", ToTop(), alone) == NO_CHANGE


def test_a_slot_moves_up_before_another() -> None:
    assert order(moved("e", Before("b"))) == "d a e p b c"


def test_a_slot_moves_down_before_another() -> None:
    assert order(moved("a", Before("e"))) == "d b c p a e"
    assert moved("a", Before("b")) == NO_CHANGE


def test_no_slot_gets_a_time_that_is_too_near() -> None:
    """The first slot goes out any moment: nobody can have its time."""
    snapshot = queue_of(slot("n", NOW), slot("a", hour(2)), slot("b", hour(3)), slot("c", hour(5)))
    arrangement = moved("n", Before("b"), snapshot)
    assert names(after(snapshot, arrangement)) == "a n b c"
    assert [(each.slot.slot_id, each.seat.time) for each in arrangement.moves] == [("n", hour(3)), ("b", hour(4))]
    assert moved("n", Before("a"), snapshot) == NO_CHANGE
    assert moved("n", ToTop(), snapshot) == NO_CHANGE
    assert names(after(snapshot, moved("c", ToTop(), snapshot))) == "c n a b"


def test_a_pinned_slot_takes_a_seat_and_a_free_time_the_last_one() -> None:
    arrangement = moved("p", Before("b"))
    assert [(each.slot_id, each.time) for each in after(QUEUE, arrangement)[1:]] == [
        ("a", hour(2)),
        ("p", hour(3)),
        ("b", hour(4)),
        ("c", hour(5)),
        ("e", hour(6)),
    ]
    assert arrangement.freed_times == [hour(3.5)]
    assert after(QUEUE, arrangement)[2].seat.origin is SlotOrigin.QUEUE


def test_the_bottom_is_the_next_free_time_after_all_others() -> None:
    arrangement = moved("a", ToBottom())
    assert [(each.slot.slot_id, each.seat.time) for each in arrangement.moves] == [("a", hour(7))]
    assert moved("e", ToBottom()) == NO_CHANGE


def test_a_pinned_last_slot_moves_to_a_slot_time() -> None:
    snapshot = queue_of(slot("a", hour(2)), slot("p", hour(5.5), SlotOrigin.DRAFT))
    [only] = moved("p", ToBottom(), snapshot).moves
    assert (only.seat.time, only.seat.origin) == (hour(3), SlotOrigin.QUEUE)


def test_a_free_time_is_the_callers_choice() -> None:
    [only] = moved("a", ToTime(hour(9.25))).moves
    assert (only.seat.time, only.seat.origin, only.seat.nominal) == (hour(9.25), SlotOrigin.EXACT, None)
    assert str(only.seat.local_time) == "09:15:00"


def test_a_slot_that_has_the_time_stays() -> None:
    assert moved("a", ToTime(hour(2))) == NO_CHANGE


def test_a_slot_can_move_by_less_than_a_minute() -> None:
    [only] = moved("a", ToTime(hour(2) + SPACING / 2)).moves
    assert only.seat.time == hour(2) + SPACING / 2


def test_a_taken_time_is_refused() -> None:
    refused = refusal("a", ToTime(hour(3) + SPACING / 2))
    assert (refused.code, refused.reason) == ("FAILED_PRECONDITION", "SLOT_TAKEN")
    assert refused.metadata["queue_slot_id"] == "b"


def test_a_time_out_of_reach_is_refused() -> None:
    assert isinstance(refusal("a", ToTime(NOW - 2 * SPACING)), InvalidField)
    assert isinstance(refusal("a", ToTime(NOW + timedelta(days=731))), InvalidField)


@pytest.mark.parametrize(
    ("mark", "reason"), [("x", "SLOT_NOT_FOUND"), ("p", "SLOT_NOT_SCHEDULED"), ("d", "SLOT_NOT_SCHEDULED")]
)
def test_the_other_slot_must_have_a_slot_time(mark: str, reason: str) -> None:
    refused = refusal("a", Before(mark))
    assert (refused.reason, refused.metadata["slot_id"]) == (reason, mark)


def test_no_slot_moves_before_itself() -> None:
    assert refusal("a", Before("a")).metadata == {"field": "before_slot_id"}


def test_only_a_new_slot_time_needs_the_schedule() -> None:
    unread = FreeTimes(QUEUE, None)
    first, *_, last = QUEUE.scheduled
    assert move(QUEUE, last, ToTop(), unread, now=NOW, earliest=NOW).moves
    with pytest.raises(MoreTimes) as needed:
        move(QUEUE, first, ToBottom(), unread, now=NOW, earliest=NOW)
    assert needed.value.start == last.time


destinations = st.one_of(
    st.just(ToTop()), st.just(ToBottom()), st.integers(0, 13).map(lambda place: Before(f"s{place}"))
)


@given(snapshots(), st.integers(0, 13), destinations)
def test_a_move_keeps_the_others_in_order(snapshot: Snapshot, place: int, destination: Destination) -> None:
    chosen = snapshot.find(f"s{place}")
    if chosen is None or not chosen.is_scheduled:
        return
    if isinstance(destination, Before):
        mark = snapshot.find(destination.slot_id)
        if mark is None or mark is chosen or not mark.can_shift:
            return
    left = after(snapshot, moved(chosen.slot_id, destination, snapshot))
    others = [each.slot_id for each in left if each.can_shift and each.slot_id != chosen.slot_id]
    assert others == [each.slot_id for each in snapshot.shiftable if each.slot_id != chosen.slot_id]
    shown = [each.slot_id for each in left if each.can_shift]
    match destination:
        case Before(slot_id=mark_id):
            assert shown.index(chosen.slot_id) == shown.index(mark_id) - 1
        case ToTop() if others:
            assert shown[0] == chosen.slot_id
        case ToBottom():
            assert left[-1].slot_id == chosen.slot_id
