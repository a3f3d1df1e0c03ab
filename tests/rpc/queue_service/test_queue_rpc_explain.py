"""QueueService.ExplainSlot over the wire."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from postflow.queue.v1.queue_service_pb2 import (
    AddToQueueRequest,
    ExplainSlotRequest,
    ExplainSlotResponse,
    ScheduleAtRequest,
)
from postflow.queue.v1.queue_slot_pb2 import QueueSlot
from servicekit.clock import SystemClock
from servicekit.faults import Fault, InvalidRequest, NotFound, Unavailable
from servicekit.timestamps import timestamp
from testkit.eventually import eventually

if TYPE_CHECKING:
    from tests.rpc.queue_service.conftest import Rig

Refusal = Callable[[Awaitable[object]], Awaitable[Fault]]
MIDNIGHT = SystemClock().now().replace(hour=0, minute=0, second=0, microsecond=0)
NOONS = [MIDNIGHT + timedelta(days=number, hours=12) for number in range(2, 6)]


async def added(rig: "Rig", draft_id: str) -> QueueSlot:
    rig.draft(draft_id, ("page", "facebook", ""))
    rig.drafts.drafts[draft_id].approved = True
    [slot] = (await rig.stub.AddToQueue(AddToQueueRequest(organization_id="acme", draft_id=draft_id))).queue_slots
    assert isinstance(slot, QueueSlot)
    return slot


async def explained(rig: "Rig", slot_id: str, organization_id: str = "acme") -> ExplainSlotResponse:
    request = ExplainSlotRequest(organization_id=organization_id, slot_id=slot_id)
    found: ExplainSlotResponse = await rig.stub.ExplainSlot(request)
    return found


async def test_a_slot_is_explained(rig: "Rig") -> None:
    await rig.put_schedule("page", *NOONS)
    first, second = await added(rig, "d1"), await added(rig, "d2")
    found = await explained(rig, second.id)
    assert (found.queue_slot, found.time_reason) == (second, "NEXT_FREE")
    [passed] = found.passed_times
    assert (passed.time.ToDatetime(UTC), passed.reason, passed.slot_id, passed.draft_id) == (
        NOONS[0],
        "FILLED",
        first.id,
        "d1",
    )
    [obstacle] = found.obstacles
    assert (obstacle.reason, obstacle.message) == ("NOT_DUE", "its time has not come")
    assert obstacle.clear_time == second.schedule_time
    assert not obstacle.HasField("target")
    assert found.summary.startswith("Draft d2 is to go out on account page at ")


async def test_an_unapproved_draft_on_a_disconnected_account_is_explained(rig: "Rig") -> None:
    await rig.put_schedule("page", *NOONS)
    slot = await added(rig, "d1")
    rig.drafts.drafts["d1"].approved = False
    rig.publisher.disconnected = {"page"}
    found = await explained(rig, slot.id)
    assert [each.reason for each in found.obstacles] == ["ACCOUNT_NOT_CONNECTED", "NOT_APPROVED", "NOT_DUE"]


async def test_a_slot_is_explained_while_schedule_and_drafts_are_down(rig: "Rig") -> None:
    await rig.put_schedule("page", *NOONS)
    slot = await added(rig, "d1")
    rig.schedule.fault = rig.drafts.fault = Unavailable("DOWN", "no")
    found = await explained(rig, slot.id)
    assert [each.reason for each in found.obstacles] == ["NOT_DUE"]
    assert "The slot times before it could not be read" in found.summary
    rig.schedule.fault, rig.schedule.is_frozen = None, True
    assert "The slot times before it could not be read" in (await explained(rig, slot.id)).summary


async def test_the_obstacle_of_a_post_names_its_target(rig: "Rig") -> None:
    rig.draft("d1", ("page", "facebook", "wall"))
    await scheduled(rig, "d1", SystemClock().now())
    [command] = await rig.commands(1)
    await rig.report(command, 6, 1, state_reason="NOT_APPROVED")

    async def blocked() -> ExplainSlotResponse | None:
        found = await explained(rig, command.slot_id)
        return found if found.queue_slot.targets[0].state_reason else None

    found = await eventually(blocked)
    assert found is not None
    [obstacle] = found.obstacles
    assert (obstacle.reason, obstacle.HasField("clear_time")) == ("NOT_APPROVED", False)
    assert obstacle.target == command.target


async def scheduled(rig: "Rig", draft_id: str, moment: datetime) -> None:
    request = ScheduleAtRequest(organization_id="acme", draft_id=draft_id, schedule_time=timestamp(moment))
    await rig.stub.ScheduleAt(request)


async def test_a_slot_of_another_organization_is_not_found(rig: "Rig", refusal: Refusal) -> None:
    await rig.put_schedule("page", *NOONS)
    slot = await added(rig, "d1")
    refused = await refusal(explained(rig, slot.id, "umbrella"))
    assert isinstance(refused, NotFound)
    assert (refused.reason, refused.metadata) == ("SLOT_NOT_FOUND", {"slot_id": slot.id})


async def test_a_slot_must_be_named(rig: "Rig", refusal: Refusal) -> None:
    fault = await refusal(explained(rig, ""))
    assert isinstance(fault, InvalidRequest)
    assert [violation.field for violation in fault.violations] == ["slot_id"]
