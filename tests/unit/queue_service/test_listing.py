"""Lists of slots are indexed by state, those of live slots together."""

import pytest

from queue_service.domain.listing import list_states
from queue_service.domain.slot import SlotState

LIVE = {SlotState.SCHEDULED, SlotState.DISPATCHED}


def test_live_slots_are_one_list() -> None:
    assert list_states(LIVE) == ["LIVE"]
    assert list_states([SlotState.DISPATCHED]) == ["LIVE"]


@pytest.mark.parametrize("state", sorted(set(SlotState) - LIVE))
def test_each_state_of_ended_slots_is_a_list_of_its_own(state: SlotState) -> None:
    assert list_states([state, *LIVE]) == sorted([state.value, "LIVE"])
