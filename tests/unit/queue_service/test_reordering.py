"""A new order of a queue, by slots or by drafts, and why one is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_service.domain.arrangement import Snapshot
from queue_service.domain.reordering import Order, check_order, reorder
from queue_service.domain.slot import MoveReason, SlotOrigin, SlotState
from servicekit.faults import Fault, InvalidField
from tests.unit.queue_service.snapshots import after, hour, names, queue_of, require_sound, slot, snapshots

THREE = queue_of(
    slot("d", hour(1), state=SlotState.DISPATCHED),
    slot("a", hour(2)),
    slot("b", hour(3), SlotOrigin.EXACT),
    slot("c", hour(4)),
)


def ordered(*slot_ids: str) -> Order:
    return Order(slot_ids=slot_ids)


def refusal(order: Order, **ended: SlotState) -> Fault:
    with pytest.raises(Fault) as refused:
        reorder(THREE, order, ended)
    return refused.value


def test_the_times_go_to_the_slots_in_the_new_order() -> None:
    arrangement = reorder(THREE, ordered("c", "a", "b"), {})
    assert names(after(THREE, arrangement)) == "d c a b"
    assert {move.reason for move in arrangement.moves} == {MoveReason.REORDERED}


def test_a_chosen_time_goes_to_another_slot_as_such() -> None:
    left = after(THREE, reorder(THREE, ordered("c", "a", "b"), {}))
    assert [(each.slot_id, each.seat.origin) for each in left[1:]] == [
        ("c", SlotOrigin.QUEUE),
        ("a", SlotOrigin.EXACT),
        ("b", SlotOrigin.QUEUE),
    ]


def test_slots_are_named_by_their_drafts() -> None:
    arrangement = reorder(THREE, Order(draft_ids=("draft-b", "draft-a", "draft-c")), {})
    assert names(after(THREE, arrangement)) == "d b a c"


def test_the_order_as_it_is_moves_nothing() -> None:
    assert not reorder(THREE, ordered("a", "b", "c"), {}).changes_anything


@given(snapshots(), st.randoms(use_true_random=False))
def test_a_reorder_permutes_the_seats(snapshot: Snapshot, random: object) -> None:
    order = [each.slot_id for each in snapshot.scheduled]
    random.shuffle(order)  # type: ignore[attr-defined]
    arrangement = reorder(snapshot, ordered(*order), {})
    require_sound(snapshot, arrangement)
    left = after(snapshot, arrangement)
    assert [each.seat for each in left] == [each.seat for each in snapshot.slots]
    assert [each.slot_id for each in left if each.is_scheduled] == order


def test_a_missing_slot_is_named() -> None:
    refused = refusal(ordered("c", "a"))
    assert (refused.code, refused.reason) == ("INVALID_ARGUMENT", "REORDER_INCOMPLETE")
    assert refused.metadata == {"slot_id": "b", "draft_id": "draft-b"}


def test_a_repeated_slot_is_named() -> None:
    refused = refusal(Order(draft_ids=("draft-c", "draft-a", "draft-c")))
    assert (refused.code, refused.reason) == ("INVALID_ARGUMENT", "REORDER_REPEATED")
    assert refused.metadata == {"slot_id": "c", "draft_id": "draft-c"}


def test_an_unknown_slot_is_named() -> None:
    refused = refusal(ordered("c", "x"))
    assert (refused.code, refused.reason, refused.metadata) == ("NOT_FOUND", "SLOT_NOT_FOUND", {"slot_id": "x"})
    assert refusal(Order(draft_ids=("x",))).metadata == {"draft_id": "x"}


def test_a_dispatched_slot_is_named() -> None:
    refused = refusal(ordered("d", "a", "b", "c"))
    assert (refused.code, refused.reason) == ("FAILED_PRECONDITION", "SLOT_NOT_SCHEDULED")
    assert refused.metadata == {"slot_id": "d", "draft_id": "draft-d", "state": "DISPATCHED"}


def test_an_ended_slot_is_named() -> None:
    refused = refusal(ordered("x", "a", "b", "c"), x=SlotState.PUBLISHED)
    assert (refused.reason, refused.metadata) == ("SLOT_NOT_SCHEDULED", {"slot_id": "x", "state": "PUBLISHED"})


def test_slots_and_drafts_are_not_named_together() -> None:
    with pytest.raises(InvalidField):
        check_order(Order(slot_ids=("a",), draft_ids=("draft-b",)))
    check_order(Order())
