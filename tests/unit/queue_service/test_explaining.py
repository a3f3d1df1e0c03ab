"""The parts of an explanation."""

import pytest

from queue_service.domain.circumstances import Circumstances
from queue_service.domain.explaining import explain
from queue_service.domain.passed_times import PassedTime, PassReason
from queue_service.domain.slot import MoveReason, SlotOrigin
from testkit.clocks import START
from tests.unit.queue_service.explained import slot_of

PASSED = (PassedTime(START, PassReason.GAP),)


@pytest.mark.parametrize(
    ("origin", "reason"),
    [(SlotOrigin.QUEUE, "NEXT_FREE"), (SlotOrigin.EXACT, "CHOSEN"), (SlotOrigin.DRAFT, "DRAFT_TIME")],
)
def test_a_slot_that_has_not_moved_has_its_first_time(origin: SlotOrigin, reason: str) -> None:
    assert explain(slot_of(origin=origin), Circumstances(), (), now=START).time_reason == reason


@pytest.mark.parametrize("reason", sorted(set(MoveReason) - {MoveReason.TAKEN_BACK}))
def test_a_slot_that_has_moved_has_the_reason_of_its_last_move(reason: MoveReason) -> None:
    found = explain(slot_of(), Circumstances(move_reason=reason), (), now=START)
    assert found.time_reason == reason
    assert "has the reason" not in found.summary


def test_the_reason_of_a_newer_release_is_shown() -> None:
    found = explain(slot_of(), Circumstances(move_reason="TIDIED"), (), now=START)
    assert found.time_reason == "TIDIED"
    assert "Its time has the reason TIDIED." in found.summary


def test_times_that_could_not_be_read_are_none() -> None:
    assert explain(slot_of(), Circumstances(), None, now=START).passed_times == ()
    found = explain(slot_of(), Circumstances(), PASSED, now=START)
    assert (found.passed_times, [each.reason for each in found.obstacles]) == (PASSED, ["NOT_DUE"])
