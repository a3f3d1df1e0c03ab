"""The first free time of a window, and the times that a slot makes free again."""

from datetime import UTC, datetime, timedelta

import pytest

from civil.weekly import WeeklySlot, occurrences
from civil.zones import find_zone
from queue_service.domain.allocation import first_free, reopened_by
from queue_service.domain.slot import COUNTED, LIVE, SPACING, SlotState
from tests.unit.queue_service.model import START, Model


@pytest.mark.parametrize(
    ("seconds", "is_free"), [(0, False), (59, False), (-59, False), (59.999999, False), (60, True), (-60, True)]
)
def test_a_slot_fills_the_minute_on_either_side(seconds: float, is_free: bool) -> None:
    model = Model("UTC", 0, (START,), [(START + timedelta(seconds=seconds), SlotState.SCHEDULED)])
    found = first_free((START,), model.occupancy((START,)), cap=0, time_zone="UTC")
    assert (found == START) is is_free


def test_the_cap_counts_the_local_day_of_the_instant() -> None:
    """Takes Nuuk, where clocks jump over midnight: Saturday 23:30 becomes Sunday 00:30 and counts for Sunday."""
    saturday = WeeklySlot(day=6, hour=23, minute=30)
    [shifted] = occurrences(
        [saturday],
        find_zone("America/Nuuk"),
        after=datetime(2024, 3, 30, 12, tzinfo=UTC),
        until=datetime(2024, 4, 1, tzinfo=UTC),
    )
    noon = datetime(2024, 3, 31, 14, 0, tzinfo=UTC)
    on_sunday = Model("America/Nuuk", 1, (shifted.instant,), [(noon, SlotState.PUBLISHED)])
    assert on_sunday.first_free(shifted.instant) is None
    occupancy = on_sunday.occupancy((shifted.instant,))
    assert first_free((shifted.instant,), occupancy, cap=1, time_zone="America/Nuuk") is None


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
