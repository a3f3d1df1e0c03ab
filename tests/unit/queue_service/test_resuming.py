"""Giving new times to slots that are late."""

from dataclasses import replace
from datetime import timedelta

import pytest

from queue_service.domain.arrangement import NO_CHANGE, SeatedSlot, Snapshot
from queue_service.domain.free_times import FreeTimes, MoreTimes
from queue_service.domain.late_policy import LateAction, LatePolicy
from queue_service.domain.resuming import OverduePolicy, reslot, resume
from queue_service.domain.slot import SlotOrigin, SlotState
from servicekit.faults import Refused
from tests.unit.queue_service.snapshots import free, hour, queue_of, slot

NOTICE = timedelta(minutes=1)
NO_SCHEDULE = Refused("NO_SCHEDULE", "no")
EXACT = SlotOrigin.EXACT


@pytest.mark.parametrize("policy", list(OverduePolicy))
def test_without_overdue_slots_nothing_changes_and_nothing_is_read(policy: OverduePolicy) -> None:
    snapshot = queue_of(slot("a", hour(5)), slot("b", hour(3), state=SlotState.DISPATCHED))
    assert resume(snapshot, policy, FreeTimes(snapshot, None), now=hour(4), notice=NOTICE) == NO_CHANGE


def test_overdue_slots_take_the_next_free_times_around_those_that_stay() -> None:
    snapshot = queue_of(slot("a", hour(1)), slot("b", hour(2.5), EXACT), slot("c", hour(6)), slot("d", hour(4)))
    moved = resume(snapshot, OverduePolicy.RESCHEDULE, free(snapshot), now=hour(4), notice=NOTICE)
    assert [(move.slot.slot_id, move.seat.time, move.seat.origin) for move in moved.moves] == [
        ("a", hour(5), SlotOrigin.QUEUE),
        ("b", hour(7), SlotOrigin.QUEUE),
        ("d", hour(8), SlotOrigin.QUEUE),
    ]
    assert {move.reason for move in moved.moves} == {"RESUMED"}


def test_slot_times_are_asked_for_only_to_reschedule() -> None:
    snapshot = queue_of(slot("a", hour(1)))
    unread = FreeTimes(snapshot, None)
    with pytest.raises(MoreTimes):
        resume(snapshot, OverduePolicy.RESCHEDULE, unread, now=hour(4), notice=NOTICE)
    canceled = resume(snapshot, OverduePolicy.CANCEL, unread, now=hour(4), notice=NOTICE)
    assert [(each.slot.slot_id, each.reason) for each in canceled.cancellations] == [("a", "OVERDUE")]


def test_paced_slots_keep_a_minute_from_the_others() -> None:
    others = [slot("x", hour(4) + timedelta(seconds=30)), slot("y", hour(3.5), state=SlotState.DISPATCHED)]
    snapshot = queue_of(slot("a", hour(1)), slot("b", hour(2), EXACT), *others)
    moved = resume(snapshot, OverduePolicy.PUBLISH_PACED, FreeTimes(snapshot, None), now=hour(4), notice=NOTICE)
    first = hour(4) + timedelta(seconds=90)
    assert [move.seat.time for move in moved.moves] == [first, first + timedelta(minutes=5)]
    assert [move.seat.origin for move in moved.moves] == [SlotOrigin.QUEUE, EXACT]


def late(*slots: SeatedSlot, grace: timedelta = timedelta(hours=1)) -> Snapshot:
    snapshot = queue_of(*slots)
    policy = LatePolicy(grace=grace, action=LateAction.RESLOT)
    return replace(snapshot, queue=replace(snapshot.queue, late_policy=policy))


def test_only_slots_later_than_the_grace_move() -> None:
    snapshot = late(slot("a", hour(2.9)), slot("b", hour(3.1)), slot("c", hour(1), state=SlotState.DISPATCHED))
    moved = reslot(snapshot, free(snapshot), now=hour(4), notice=NOTICE)
    assert [(move.slot.slot_id, move.seat.time, move.reason) for move in moved.moves] == [("a", hour(5), "LATE")]


def test_late_slots_without_free_times_go_out_at_the_pace_of_the_queue() -> None:
    snapshot = late(slot("a", hour(1)), slot("b", hour(2)))
    refused = FreeTimes(snapshot, NO_SCHEDULE)
    moved = reslot(snapshot, refused, now=hour(4), notice=NOTICE)
    assert [move.seat.time for move in moved.moves] == [hour(4), hour(4) + timedelta(minutes=5)]
    assert {move.reason for move in moved.moves} == {"LATE"}


def test_without_late_slots_nothing_is_read() -> None:
    snapshot = late(slot("a", hour(3.5)))
    unread = FreeTimes(snapshot, None)
    assert reslot(snapshot, unread, now=hour(4), notice=NOTICE) == NO_CHANGE


def test_late_slots_that_cannot_wait_go_out_at_the_pace() -> None:
    snapshot = late(slot("a", hour(1)), slot("b", hour(2)))
    moved = reslot(snapshot, None, now=hour(4), notice=NOTICE)
    assert [move.seat.time for move in moved.moves] == [hour(4), hour(4) + timedelta(minutes=5)]


def test_a_slot_as_late_as_the_grace_stays() -> None:
    snapshot = late(slot("a", hour(3)))
    assert reslot(snapshot, None, now=hour(3) + snapshot.queue.late_policy.grace, notice=NOTICE) == NO_CHANGE


def test_posts_that_go_out_at_the_pace_are_not_late_again_at_once() -> None:
    snapshot = late(slot("a", hour(1)), grace=timedelta(seconds=1))
    unread = FreeTimes(snapshot, None)
    reslotted = reslot(snapshot, FreeTimes(snapshot, NO_SCHEDULE), now=hour(4), notice=NOTICE)
    resumed = resume(snapshot, OverduePolicy.PUBLISH_PACED, unread, now=hour(4), notice=NOTICE)
    assert [move.seat.time for move in (*reslotted.moves, *resumed.moves)] == [hour(4) + NOTICE] * 2
