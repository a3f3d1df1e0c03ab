"""Accounts that dispatch passes over."""

from typing import Any

import pytest

from queue_service.domain.circumstances import Circumstances
from queue_service.domain.late_policy import LateAction, LatePolicy
from queue_service.domain.slot import SlotState
from testkit.clocks import START
from tests.unit.queue_service.explained import slot_of


@pytest.mark.parametrize(
    ("known", "is_held_up"),
    [
        ({}, False),
        ({"is_connected": True}, False),
        ({"is_connected": False}, True),
        ({"is_disabled": True}, True),
        ({"pause_time": START}, True),
    ],
)
def test_an_account_is_held_up_by_what_is_known(known: dict[str, Any], *, is_held_up: bool) -> None:
    assert Circumstances(**known).is_held_up is is_held_up


@pytest.mark.parametrize(
    ("action", "state", "known", "moves"),
    [
        (LateAction.RESLOT, SlotState.SCHEDULED, {}, True),
        (LateAction.PUBLISH, SlotState.SCHEDULED, {}, False),
        (LateAction.RESLOT, SlotState.DISPATCHED, {}, False),
        (LateAction.RESLOT, SlotState.SCHEDULED, {"pause_time": START}, False),
    ],
)
def test_late_slots_move_if_dispatch_looks_at_them(
    action: LateAction, state: SlotState, known: dict[str, Any], *, moves: bool
) -> None:
    circumstances = Circumstances(late_policy=LatePolicy(action=action), **known)
    assert circumstances.is_moved_when_late(slot_of(state=state)) is moves
