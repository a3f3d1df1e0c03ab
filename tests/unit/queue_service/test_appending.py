"""Drafts that are added to the end of a queue, without a database: what the search gives them."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_service.domain.appending import append
from queue_service.domain.arrangement import Snapshot
from queue_service.domain.schedule_check import ReadAgain
from queue_service.domain.slot import SPACING, SlotOrigin
from servicekit.faults import Fault, Refused
from tests.unit.queue_service.snapshots import HOUR, NOW, free, hour, hourly, queue_of, slot, snapshots

READ = {"": hourly(1000), "news": replace(hourly(1000), times=(), nominals=())}


def added(snapshot: Snapshot, count: int, category: str = "", start: float = 0) -> list[float]:
    found = append(snapshot, READ, count, category, earliest=hour(start))
    assert not found.moves
    return [(seat.time - NOW) / HOUR for seat in found.additions]


def test_filled_and_skipped_times_are_passed_over() -> None:
    snapshot = queue_of(slot("a", hour(1)), slot("p", hour(3) + SPACING / 2, SlotOrigin.EXACT))
    skipping = replace(snapshot, queue=replace(snapshot.queue, skipped_times=(hour(2),)))
    assert added(skipping, 2) == [4, 5]


def test_the_first_draft_uses_up_a_pending_skip() -> None:
    snapshot = queue_of(slot("a", hour(1)))
    skipping = replace(snapshot, queue=replace(snapshot.queue, skip_next=True))
    assert added(skipping, 3) == [3, 4, 5]


def test_a_cap_counts_live_and_ended_slots_and_those_just_added() -> None:
    snapshot = replace(queue_of(slot("a", hour(1)), cap=3), counted=(hour(0.5),))
    assert added(snapshot, 3) == [2, 24, 25]


def test_drafts_of_a_category_without_times_of_its_own_take_the_others() -> None:
    assert added(queue_of(slot("a", hour(1))), 2, "news") == [2, 3]


def test_more_times_are_asked_for_and_a_lack_is_refused() -> None:
    few = {"": hourly(4, last=False)}
    with pytest.raises(ReadAgain) as again:
        append(queue_of(), few, 9, "", earliest=NOW)
    assert again.value.needs_more
    with pytest.raises(Refused) as refused:
        append(queue_of(), {"": hourly(4)}, 9, "", earliest=NOW)
    assert refused.value.reason == "HORIZON_EXHAUSTED"
    with pytest.raises(Fault) as fault:
        append(queue_of(), Refused("NO_SCHEDULE", "no"), 1, "", earliest=NOW)
    assert fault.value.reason == "NO_SCHEDULE"


@given(snapshots(), st.integers(0, 50), st.integers(0, 4))
def test_the_times_are_the_free_ones_in_order(snapshot: Snapshot, start: int, cap: int) -> None:
    """Two searches find the same: the one for additions, and the one for slots that move."""
    capped = replace(snapshot, queue=replace(snapshot.queue, max_posts_per_day=cap))
    earliest = hour(start) + timedelta(seconds=1)
    seats = free(capped).seats(earliest)
    expected = tuple(next(seats) for _ in range(20))
    assert append(capped, READ, 20, "", earliest=earliest).additions == expected
