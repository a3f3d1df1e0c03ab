"""QueueAdminService over the wire."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from postflow.queue.v1.queue_admin_service_pb2 import RedispatchSlotsRequest
from postflow.queue.v1.queue_admin_service_pb2_grpc import QueueAdminServiceStub
from postflow.queue.v1.queue_service_pb2 import ScheduleAtRequest
from postflow.queue.v1.queue_slot_pb2 import QueueSlot
from servicekit.clock import SystemClock
from servicekit.faults import Fault, InvalidRequest, NotFound, Refused
from servicekit.rpc import open_channel
from servicekit.timestamps import timestamp

if TYPE_CHECKING:
    from tests.rpc.queue_service.conftest import Rig

Refusal = Callable[[Awaitable[object]], Awaitable[Fault]]


@pytest.fixture
async def admin(rig: "Rig") -> AsyncIterator[Any]:
    channel: grpc.aio.Channel = open_channel(rig.address)
    yield QueueAdminServiceStub(channel)
    await channel.close()


async def scheduled(rig: "Rig", in_seconds: float) -> QueueSlot:
    draft_id = f"d{in_seconds:.0f}"
    rig.draft(draft_id, (f"page-{draft_id}", "facebook", ""))
    time = timestamp(SystemClock().now() + timedelta(seconds=in_seconds))
    answer = await rig.stub.ScheduleAt(ScheduleAtRequest(organization_id="acme", draft_id=draft_id, schedule_time=time))
    slot: QueueSlot = answer.queue_slots[0]
    return slot


async def test_dispatched_slots_are_dispatched_again(rig: "Rig", admin: Any, refusal: Refusal) -> None:
    sent, future = await scheduled(rig, 20), await scheduled(rig, 3600)
    await rig.commands(1)
    request = RedispatchSlotsRequest(organization_id="acme", slot_ids=[sent.id], request_id="r1")
    done = await admin.RedispatchSlots(request)
    assert (done.repeated_slots, done.accounts) == (1, 0)
    assert await admin.RedispatchSlots(request) == done
    reused = RedispatchSlotsRequest(organization_id="acme", request_id="r1")
    assert (await refusal(admin.RedispatchSlots(reused))).reason == "REQUEST_ID_REUSED"
    early = RedispatchSlotsRequest(organization_id="acme", slot_ids=[future.id])
    refused = await refusal(admin.RedispatchSlots(early))
    assert isinstance(refused, Refused)
    assert (refused.reason, refused.metadata["queue_slot_id"]) == ("SLOT_NOT_DISPATCHED", future.id)


async def test_slots_of_another_organization_do_not_exist(rig: "Rig", admin: Any, refusal: Refusal) -> None:
    sent = await scheduled(rig, 20)
    await rig.commands(1)
    foreign = RedispatchSlotsRequest(organization_id="umbrella", slot_ids=[sent.id])
    missing = await refusal(admin.RedispatchSlots(foreign))
    assert isinstance(missing, NotFound)
    assert missing.reason == "SLOT_NOT_FOUND"
    done = await admin.RedispatchSlots(RedispatchSlotsRequest(organization_id="umbrella"))
    assert (done.repeated_slots, done.accounts) == (0, 0)


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (RedispatchSlotsRequest(), "organization_id"),
        (RedispatchSlotsRequest(organization_id="acme", slot_ids=["*"]), "slot_ids[0]"),
        (RedispatchSlotsRequest(organization_id="acme", social_account_id="*"), "social_account_id"),
    ],
)
async def test_a_field_at_fault_is_named(admin: Any, refusal: Refusal, request_: Any, field: str) -> None:
    fault = await refusal(admin.RedispatchSlots(request_))
    assert isinstance(fault, InvalidRequest)
    assert [violation.field for violation in fault.violations] == [field]
