"""Taking slots out of a queue."""

from hypothesis import given
from hypothesis import strategies as st

from queue_service.domain.arrangement import Snapshot
from queue_service.domain.removing import clear, close_left_gap, remove
from queue_service.domain.slot import SPACING, CancelReason, SlotOrigin, SlotState
from tests.unit.queue_service.snapshots import NOW, after, hour, names, queue_of, require_sound, slot, snapshots

QUEUE = queue_of(
    slot("d", hour(1), state=SlotState.DISPATCHED),
    slot("a", hour(2)),
    slot("p", hour(2.5), SlotOrigin.EXACT),
    slot("b", hour(3)),
)


def test_a_removal_leaves_a_gap() -> None:
    arrangement = remove(QUEUE, QUEUE.slots[1], closing=False, earliest=NOW)
    assert names(after(QUEUE, arrangement)) == "d p b"
    assert arrangement.moves == ()
    assert [each.reason for each in arrangement.cancellations] == [CancelReason.REMOVED]


def test_a_removal_can_close_its_gap() -> None:
    arrangement = remove(QUEUE, QUEUE.slots[1], closing=True, earliest=NOW)
    assert names(after(QUEUE, arrangement)) == "d b p"
    assert arrangement.freed_times == [hour(3)]


@given(snapshots(), st.integers(0, 13))
def test_a_closed_gap_is_sound_and_keeps_the_order(snapshot: Snapshot, place: int) -> None:
    if place >= len(snapshot.scheduled):
        return
    gone = snapshot.scheduled[place]
    arrangement = remove(snapshot, gone, closing=True, earliest=NOW)
    require_sound(snapshot, arrangement)
    left = after(snapshot, arrangement)
    assert len(left) == len(snapshot.slots) - 1
    for category in ("", "news"):
        kept = [each.slot_id for each in snapshot.shiftable if each.category_id == category and each is not gone]
        assert [each.slot_id for each in left if each.can_shift and each.category_id == category] == kept
    assert len(arrangement.freed_times) == 1


def test_the_gap_of_a_gone_slot_is_closed_unless_its_time_is_taken() -> None:
    gone, left = QUEUE.slots[1], queue_of(*(each for each in QUEUE.slots if each.slot_id != "a"))
    arrangement = close_left_gap(left, gone, earliest=NOW)
    assert [(each.slot.slot_id, each.seat.time) for each in arrangement.moves] == [("b", hour(2))]
    assert not close_left_gap(left, gone, earliest=hour(2.1)).changes_anything
    taken = queue_of(*left.slots, slot("n", hour(2) + SPACING / 2, SlotOrigin.EXACT))
    assert not close_left_gap(taken, gone, earliest=NOW).changes_anything


def test_clearing_cancels_what_is_scheduled() -> None:
    arrangement = clear(QUEUE)
    assert names(after(QUEUE, arrangement)) == "d"
    assert {each.reason for each in arrangement.cancellations} == {CancelReason.CLEARED}
    assert not clear(queue_of()).changes_anything
