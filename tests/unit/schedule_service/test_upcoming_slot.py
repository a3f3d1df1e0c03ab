"""What Schedule remembers of Queue's slots, and whom they keep from being deleted."""

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


def test_the_highest_revision_tells_when_a_slot_is_whatever_the_order() -> None:
    told = [replace(SLOT, revision=revision, schedule_time=NOON + timedelta(hours=revision)) for revision in (1, 2, 3)]
    for heard in permutations(told):
        assert newest(heard) == [told[-1]]


def test_slots_are_told_apart_by_organization_and_id_and_come_in_that_order() -> None:
    others = [replace(SLOT, organization_id="zenith"), replace(SLOT, slot_id="s0")]
    assert newest([*others, SLOT]) == [others[1], SLOT, others[0]]


def test_without_slots_ahead_a_schedule_may_go() -> None:
    require_none_ahead(SlotsAhead(count=0, last_time=None), "page")


@pytest.mark.parametrize(
    ("count", "said"),
    [(1, "1 slot ahead"), (2, "2 slots ahead"), (MOST_COUNTED, f"{MOST_COUNTED} or more slots ahead")],
)
def test_slots_ahead_refuse_and_say_how_many_and_until_when(count: int, said: str) -> None:
    with pytest.raises(Refused) as refusal:
        require_none_ahead(SlotsAhead(count=count, last_time=NOON), "page")
    assert refusal.value.reason == "SCHEDULE_HAS_SLOTS"
    assert refusal.value.message.startswith(f"the account has {said}, the last at 2026-03-02T12:00:00Z")
    assert refusal.value.metadata == {
        "social_account_id": "page",
        "slot_count": str(count),
        "latest_schedule_time": "2026-03-02T12:00:00Z",
    }
