"""A choice that was not made is refused with the names of the fields that make it."""

import pytest

from postflow.queue.v1.queue_service_pb2 import MoveSlotRequest, PlannedMove, PlanQueueRequest
from queue_service.wire.plans import planned_change
from queue_service.wire.rearrangements import destination
from servicekit.faults import InvalidField

PLACES = "is required: give to_top, to_bottom, before_slot_id or schedule_time"
CHANGES = "is required: give add, schedule, reorder, clear, shuffle, pause, resume, remove or move"


@pytest.mark.parametrize("request_", [MoveSlotRequest(), MoveSlotRequest(to_top=False), PlannedMove(before_slot_id="")])
def test_the_places_to_move_to_are_named(request_: MoveSlotRequest | PlannedMove) -> None:
    with pytest.raises(InvalidField) as invalid:
        destination(request_)
    assert [(each.field, each.description) for each in invalid.value.violations] == [("destination", PLACES)]


@pytest.mark.parametrize(
    ("request_", "field", "description"),
    [
        (PlanQueueRequest(), "change", CHANGES),
        (PlanQueueRequest(clear=False), "change", CHANGES),
        (PlanQueueRequest(move=PlannedMove(slot_id="a")), "move.destination", PLACES),
    ],
)
def test_the_changes_that_can_be_planned_are_named(request_: PlanQueueRequest, field: str, description: str) -> None:
    with pytest.raises(InvalidField) as invalid:
        planned_change(request_)
    assert [(each.field, each.description) for each in invalid.value.violations] == [(field, description)]
