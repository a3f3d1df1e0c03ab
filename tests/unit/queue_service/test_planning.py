"""Plans show what was decided, and the functions of the change itself decide each kind of change."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_service.domain.appending import append
from queue_service.domain.arrangement import NO_CHANGE, Arrangement, Cancellation, Move, Snapshot
from queue_service.domain.free_times import FreeTimes
from queue_service.domain.moving import ToBottom, ToTop, move
from queue_service.domain.planned_change import (
    DecidedAtOnce,
    PlannedAdditions,
    PlannedClearing,
    PlannedMove,
    PlannedPause,
    PlannedRemoval,
    PlannedResumption,
    PlannedShuffle,
)
from queue_service.domain.planning import Basis, PlannedSlot, check_change, decide, plan
from queue_service.domain.policy import Policy
from queue_service.domain.removing import clear, remove
from queue_service.domain.reordering import Order, reorder
from queue_service.domain.resuming import OverduePolicy, resume
from queue_service.domain.shifting import shuffle
from queue_service.domain.slot import CancelReason, MoveReason, SlotState
from servicekit.faults import Fault, InvalidField
from tests.unit.queue_service.snapshots import NOW, after, hour, hourly, queue_of, slot, snapshots

READ = {"": hourly(1000), "news": replace(hourly(1000), times=(), nominals=())}
NOTICE = Policy().notice
RESCHEDULE = OverduePolicy.RESCHEDULE


def basis(snapshot: Snapshot, **fields: object) -> Basis:
    given: dict[str, object] = {"now": NOW, "policy": Policy(), "read": READ, "ended": {}, "snapshot": snapshot}
    return Basis(**given | fields)  # type: ignore[arg-type]


def paused(snapshot: Snapshot) -> Snapshot:
    return replace(snapshot, queue=replace(snapshot.queue, pause_time=NOW))


def test_a_plan_shows_new_times_in_order_and_canceled_slots_last() -> None:
    a, b, c, d = (slot(name, hour(1 + place)) for place, name in enumerate("abcd"))
    new = slot("", hour(7)).seat
    arrangement = Arrangement(
        moves=(Move(a, slot("", hour(9)).seat, MoveReason.MOVED), Move(c, a.seat, MoveReason.MOVED)),
        cancellations=(Cancellation(b, CancelReason.REMOVED),),
        additions=(new,),
    )
    snapshot = queue_of(a, b, c, d)
    planned = plan(snapshot, arrangement, now=NOW)
    assert planned.slots == (
        PlannedSlot("c", "draft-c", hour(3), a.seat),
        PlannedSlot("", "", None, new),
        PlannedSlot("a", "draft-a", hour(1), slot("", hour(9)).seat),
        PlannedSlot("b", "draft-b", hour(2), None),
    )
    assert (planned.unchanged, planned.etag, planned.time) == (1, "0", NOW)


def test_a_slot_that_keeps_its_time_is_unchanged() -> None:
    a = slot("a", hour(1))
    other = replace(queue_of(a), slots=(a,))
    same_time = Arrangement(moves=(Move(a, a.seat._replace(time_zone="Europe/Berlin"), MoveReason.MOVED),))
    planned = plan(other, same_time, now=NOW)
    assert (planned.slots, planned.unchanged) == ((), 1)


@given(snapshots(), st.integers(0, 45), st.sampled_from(OverduePolicy))
def test_the_functions_of_the_changes_decide(snapshot: Snapshot, late: int, overdue: OverduePolicy) -> None:
    now = hour(late) + timedelta(minutes=30)
    free, earliest = FreeTimes(snapshot, READ), now + NOTICE
    order = Order(slot_ids=tuple(each.slot_id for each in reversed(snapshot.scheduled)))
    expected: list[tuple[DecidedAtOnce, Arrangement]] = [
        (PlannedAdditions(count=3, category="news"), append(snapshot, READ, 3, "news", earliest=earliest)),
        (order, reorder(snapshot, order, {})),
        (PlannedShuffle(seed=7), shuffle(snapshot, 7)),
        (PlannedResumption(overdue=overdue), resume(snapshot, overdue, free, now=now, notice=NOTICE)),
    ]
    for each in snapshot.scheduled:
        moved = move(snapshot, each, ToBottom(), free, now=now, earliest=earliest)
        expected += [
            (PlannedMove(slot_id=each.slot_id, destination=ToBottom()), moved),
            (
                PlannedRemoval(slot_id=each.slot_id, close_gap=True),
                remove(snapshot, each, closing=True, earliest=earliest),
            ),
        ]
    for change, arrangement in expected:
        assert decide(change, basis(paused(snapshot), now=now)) == arrangement


def test_a_clearing_cancels_dispatched_slots_too() -> None:
    snapshot = queue_of(slot("a", hour(1)), slot("d", hour(0.5), state=SlotState.DISPATCHED))
    cleared = decide(PlannedClearing(), basis(snapshot))
    assert [each.slot.slot_id for each in cleared.cancellations] == ["d", "a"]
    assert len(clear(snapshot).cancellations) == 1


def test_a_dispatched_slot_is_moved_or_removed_as_if_it_had_come_back() -> None:
    snapshot = queue_of(slot("a", hour(1)), slot("b", hour(2)), slot("d", hour(0.5), state=SlotState.DISPATCHED))
    moved = decide(PlannedMove(slot_id="d", destination=ToBottom()), basis(snapshot))
    assert [(each.slot.slot_id, each.seat.time) for each in moved.moves] == [("d", hour(3))]
    removed = decide(PlannedRemoval(slot_id="d", close_gap=True), basis(snapshot))
    assert [each.slot.slot_id for each in removed.cancellations] == ["d"]
    assert [(each.slot.slot_id, each.seat.time) for each in removed.moves] == [("a", hour(0.5)), ("b", hour(1))]


@given(snapshots(), st.integers(1, 45), st.sampled_from(OverduePolicy))
def test_after_a_pause_no_slot_is_overdue(snapshot: Snapshot, end: int, overdue: OverduePolicy) -> None:
    until = hour(end)
    left = after(snapshot, decide(PlannedPause(until=until, overdue=overdue), basis(snapshot)))
    assert all(each.time >= until for each in left)
    assert {each.slot_id for each in snapshot.slots if each.time > until} <= {each.slot_id for each in left}


def test_a_queue_that_is_not_paused_is_not_resumed() -> None:
    change = PlannedResumption(overdue=RESCHEDULE)
    assert decide(change, basis(queue_of(slot("a", hour(-1))))) == NO_CHANGE
    assert decide(change, basis(paused(queue_of(slot("a", hour(-1)))))).moves


@pytest.mark.parametrize("until", [NOW, NOW + timedelta(days=730, seconds=1)])
def test_a_pause_ends_in_the_future_within_the_horizon(until: object) -> None:
    with pytest.raises(InvalidField) as invalid:
        decide(PlannedPause(until=until, overdue=RESCHEDULE), basis(queue_of()))  # type: ignore[arg-type]
    assert invalid.value.metadata["field"] == "until"


def test_a_canceled_slot_is_removed_in_vain_and_other_ended_ones_never() -> None:
    removal = PlannedRemoval(slot_id="a", close_gap=True)
    assert decide(removal, basis(queue_of(), ended={"a": SlotState.CANCELED})) == NO_CHANGE
    top = PlannedMove(slot_id="a", destination=ToTop())
    cases: list[tuple[DecidedAtOnce, SlotState | None, str]] = [
        (removal, SlotState.PUBLISHED, "SLOT_NOT_LIVE"),
        (top, SlotState.CANCELED, "SLOT_NOT_LIVE"),
        (top, None, "SLOT_NOT_FOUND"),
    ]
    for change, state, reason in cases:
        with pytest.raises(Fault) as refused:
            decide(change, basis(queue_of(), ended={"a": state} if state else {}))
        assert refused.value.reason == reason
        assert refused.value.metadata["slot_id"] == "a"


def test_an_order_names_slots_or_drafts() -> None:
    check_change(PlannedClearing())
    with pytest.raises(InvalidField):
        check_change(Order(slot_ids=("a",), draft_ids=("b",)))
