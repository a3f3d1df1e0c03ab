"""Lists of slots are indexed by state, those of live slots together."""

from datetime import timedelta

import pytest

from queue_service.domain.listing import Filter, Position, check_span, list_states
from queue_service.domain.slot import SlotState
from servicekit.faults import InvalidField
from testkit.clocks import START

LIVE = {SlotState.SCHEDULED, SlotState.DISPATCHED}


def test_live_slots_are_one_list() -> None:
    assert list_states(LIVE) == ["LIVE"]
    assert list_states([SlotState.DISPATCHED]) == ["LIVE"]


@pytest.mark.parametrize("state", sorted(set(SlotState) - LIVE))
def test_each_state_of_ended_slots_is_a_list_of_its_own(state: SlotState) -> None:
    assert list_states([state, *LIVE]) == sorted([state.value, "LIVE"])


def test_a_list_does_not_end_before_it_begins() -> None:
    before, after = START - timedelta(microseconds=1), START + timedelta(minutes=1)
    with pytest.raises(InvalidField) as invalid:
        check_span(Filter(organization_id="acme", start_time=START, end_time=before))
    assert [(each.field, each.description) for each in invalid.value.violations] == [
        ("end_time", "is before the start_time")
    ]
    for start, end in ((START, START), (START, after), (None, before), (after, None)):
        check_span(Filter(organization_id="acme", start_time=start, end_time=end))


def test_a_list_begins_with_the_later_of_its_start_and_the_page() -> None:
    from_start = Filter(organization_id="acme", start_time=START)
    before, after = START - timedelta(minutes=1), START + timedelta(minutes=1)
    assert Position().within(from_start) == Position(schedule_time=START)
    assert Position(schedule_time=before, slot_id="s").within(from_start) == Position(schedule_time=START)
    for page in (Position(schedule_time=START, slot_id="s"), Position(schedule_time=after, slot_id="s")):
        assert page.within(from_start) == page
        assert page.within(Filter(organization_id="acme")) == page
