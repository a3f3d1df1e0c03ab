"""Upcoming slots of Queue, which keep a schedule from being deleted."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest

from schedule_service.domain.calendars.upcoming_slot import (
    MOST_COUNTED,
    SlotsAhead,
    UpcomingSlot,
    newest,
    require_none_ahead,
)
from servicekit.faults import Refused

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
SLOT = UpcomingSlot(organization_id="acme", slot_id="s1", social_account_id="page", revision=1, schedule_time=NOON)


def test_the_highest_revision_counts_in_any_order() -> None:
    events = [
        replace(SLOT, revision=revision, schedule_time=NOON + timedelta(hours=revision)) for revision in (1, 2, 3)
    ]
    for heard in permutations(events):
        assert newest(heard) == [events[-1]]


def test_a_cancellation_is_newer_than_an_event_of_its_revision() -> None:
    events = [replace(SLOT, revision=2), replace(SLOT, revision=2, is_canceled=True), SLOT]
    for heard in permutations(events):
        assert newest(heard) == [events[1]]


def test_slots_are_keyed_and_sorted_by_organization_and_id() -> None:
    others = [replace(SLOT, organization_id="zenith"), replace(SLOT, slot_id="s0")]
    assert newest([*others, SLOT]) == [others[1], SLOT, others[0]]


def test_a_schedule_without_upcoming_slots_may_be_deleted() -> None:
    require_none_ahead(SlotsAhead(count=0, last_time=None), "page")


@pytest.mark.parametrize(
    ("count", "said"),
    [(1, "1 slot ahead"), (2, "2 slots ahead"), (MOST_COUNTED, f"{MOST_COUNTED} or more slots ahead")],
)
def test_a_refusal_counts_the_upcoming_slots_and_shows_the_last(count: int, said: str) -> None:
    with pytest.raises(Refused) as refusal:
        require_none_ahead(SlotsAhead(count=count, last_time=NOON), "page")
    assert refusal.value.reason == "SCHEDULE_HAS_SLOTS"
    assert refusal.value.message.startswith(f"the account has {said}, the last at 2026-03-02T12:00:00Z")
    assert refusal.value.metadata == {
        "social_account_id": "page",
        "slot_count": str(count),
        "latest_schedule_time": "2026-03-02T12:00:00Z",
    }
