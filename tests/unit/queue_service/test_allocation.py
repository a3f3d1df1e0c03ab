"""The times that a slot makes free again."""

from datetime import UTC, datetime, timedelta

import pytest

from queue_service.domain.allocation import reopened_by
from queue_service.domain.slot import COUNTED, LIVE, SPACING, SlotState
from tests.unit.queue_service.model import START


@pytest.mark.parametrize("state", sorted(COUNTED - LIVE))
def test_a_slot_that_may_have_been_sent_keeps_its_place_under_the_cap(state: SlotState) -> None:
    reopened = reopened_by(START, SlotState.DISPATCHED, state, cap=1, time_zone="UTC")
    assert reopened == (START - SPACING, START + SPACING)


@pytest.mark.parametrize("state", sorted(set(SlotState) - COUNTED))
def test_an_unsent_slot_under_a_cap_reopens_its_whole_day(state: SlotState) -> None:
    reopened = reopened_by(START, SlotState.DISPATCHED, state, cap=1, time_zone="UTC")
    assert reopened == (datetime(2026, 3, 26, tzinfo=UTC), datetime(2026, 3, 27, tzinfo=UTC))
    assert reopened_by(START, SlotState.DISPATCHED, state, cap=0, time_zone="UTC") == (START - SPACING, START + SPACING)


def test_handing_a_slot_over_frees_nothing() -> None:
    assert reopened_by(START, SlotState.SCHEDULED, SlotState.DISPATCHED, cap=1, time_zone="UTC") is None


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago", "Africa/Cairo"])
def test_an_unsent_slot_in_a_dropped_zone_reopens_its_whole_day(zone: str) -> None:
    for hour in range(72):
        at = START + timedelta(hours=hour)
        reopened = reopened_by(at, SlotState.SCHEDULED, SlotState.CANCELED, cap=1, time_zone="Europe/Atlantis")
        day = reopened_by(at, SlotState.SCHEDULED, SlotState.CANCELED, cap=1, time_zone=zone)
        assert reopened
        assert day
        assert reopened[0] <= day[0] <= day[1] <= reopened[1]
