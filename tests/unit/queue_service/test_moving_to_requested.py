"""Slots that move to the times that their drafts ask for."""

from datetime import datetime

from queue_service.domain.arrangement import NO_CHANGE
from queue_service.domain.moving_to_requested import move_to_requested
from queue_service.domain.requested_time import RefusalReason, Request
from queue_service.domain.slot import MoveReason, SlotOrigin, SlotState
from tests.unit.queue_service.snapshots import RELEASE, hour, queue_of, slot

A = slot("a", hour(1), SlotOrigin.DRAFT)
B = slot("b", hour(2), SlotOrigin.DRAFT)


def asked(name: str, time: datetime) -> Request:
    return Request(draft=("acme", f"draft-{name}"), draft_version=1, social_account_id="page", schedule_time=time)


def moved(*requests: Request, others: tuple[object, ...] = ()) -> tuple[dict[str, datetime], list[RefusalReason]]:
    arrangement, refused = move_to_requested(queue_of(A, B, *others), requests, release=RELEASE)  # type: ignore[arg-type]
    assert {move.reason for move in arrangement.moves} <= {MoveReason.DRAFT_TIME}
    assert {move.seat.origin for move in arrangement.moves} <= {SlotOrigin.DRAFT}
    return {move.slot.slot_id: move.seat.time for move in arrangement.moves}, [each.reason for each in refused]


def test_a_slot_moves_to_a_free_time_even_next_to_its_own() -> None:
    assert moved(asked("a", hour(5))) == ({"a": hour(5)}, [])
    half_a_minute = hour(1 + 0.5 / 60)
    assert moved(asked("a", half_a_minute)) == ({"a": half_a_minute}, [])


def test_a_time_within_a_minute_of_another_slot_is_refused() -> None:
    there = slot("c", hour(4), state=SlotState.DISPATCHED)
    for near in (hour(4), hour(4 + 0.9 / 60), hour(4 - 0.9 / 60)):
        assert moved(asked("a", near), others=(there,)) == ({}, [RefusalReason.SLOT_TAKEN])
    assert moved(asked("a", hour(4 + 1 / 60)), others=(there,))[1] == []


def test_slots_move_one_after_another() -> None:
    assert moved(asked("a", hour(3)), asked("b", hour(1))) == ({"a": hour(3), "b": hour(1)}, [])
    assert moved(asked("a", hour(2)), asked("b", hour(3))) == ({"b": hour(3)}, [RefusalReason.SLOT_TAKEN])
    assert moved(asked("a", hour(3)), asked("b", hour(3))) == ({"a": hour(3)}, [RefusalReason.SLOT_TAKEN])


def test_only_scheduled_slots_of_the_drafts_own_times_move() -> None:
    others = (slot("c", hour(4)), slot("d", hour(5), SlotOrigin.DRAFT, SlotState.DISPATCHED))
    requests = [asked(name, hour(9)) for name in "cde"]
    assert move_to_requested(queue_of(*others), requests, release=RELEASE) == (NO_CHANGE, [])
