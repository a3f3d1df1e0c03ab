"""The life of a schedule across the services: slots protect it, force deletes it, and allocated slots stay."""

import grpc
import pytest

from postflow.queue.v1.queue_slot_pb2 import QUEUE_SLOT_STATE_SCHEDULED
from postflow.schedule.v1.account_schedule_pb2 import AccountSchedule, WeeklySlot
from postflow.schedule.v1.schedule_service_pb2 import (
    DeleteAccountScheduleRequest,
    GetAccountScheduleRequest,
    PutAccountScheduleRequest,
)
from servicekit.faults import Fault
from servicekit.rpc.status import fault_from_error
from testkit.eventually import eventually
from testkit.stack.tenant import Tenant


def daily(hour: int) -> AccountSchedule:
    return AccountSchedule(
        social_account_id="page",
        time_zone="Europe/Berlin",
        weekly_slots=[WeeklySlot(day_of_week=day, hour=hour) for day in range(1, 8)],  # type: ignore[arg-type]
    )


async def put(tenant: Tenant) -> AccountSchedule:
    request = PutAccountScheduleRequest(organization_id=tenant.organization_id, account_schedule=daily(9))
    return (await tenant.clients.schedule.PutAccountSchedule(request)).account_schedule


async def delete(tenant: Tenant, *, force: bool = False) -> None:
    await tenant.clients.schedule.DeleteAccountSchedule(
        DeleteAccountScheduleRequest(organization_id=tenant.organization_id, social_account_id="page", force=force)
    )


async def refusal_to_delete(tenant: Tenant) -> Fault | None:
    """Returns None, and puts the schedule back, if Schedule had not received the slot's event yet."""
    try:
        await delete(tenant)
    except grpc.aio.AioRpcError as error:
        return fault_from_error(error)
    await put(tenant)
    return None


async def test_a_schedule_with_slots_ahead_is_deleted_only_by_force(tenant: Tenant) -> None:
    await tenant.connect()
    first = await put(tenant)
    await tenant.create("d1", "one")
    (slot,) = await tenant.add_to_queue("d1")

    refused = await eventually(lambda: refusal_to_delete(tenant))

    assert refused is not None
    assert refused.reason == "SCHEDULE_HAS_SLOTS"
    assert refused.metadata["slot_count"] == "1"
    assert refused.metadata["latest_schedule_time"] == slot.schedule_time.ToJsonString()

    await delete(tenant, force=True)

    with pytest.raises(grpc.aio.AioRpcError) as gone:
        await tenant.clients.schedule.GetAccountSchedule(
            GetAccountScheduleRequest(organization_id=tenant.organization_id, social_account_id="page")
        )
    assert gone.value.code() is grpc.StatusCode.NOT_FOUND
    (kept,) = await tenant.slots("d1")
    assert (kept.state, kept.schedule_time) == (QUEUE_SLOT_STATE_SCHEDULED, slot.schedule_time)

    again = await put(tenant)

    assert again.version >= first.version + 2
    assert again.etag != first.etag
    await tenant.create("d2", "two")
    (second,) = await tenant.add_to_queue("d2")
    assert second.schedule_time.ToNanoseconds() > slot.schedule_time.ToNanoseconds()


async def test_queue_allocates_nothing_without_a_schedule(tenant: Tenant) -> None:
    await tenant.connect()
    await put(tenant)
    await tenant.create("d1", "one")
    await delete(tenant)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await tenant.add_to_queue("d1")
    assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    await put(tenant)
    assert len(await tenant.add_to_queue("d1")) == 1


async def test_a_schedule_change_counts_for_the_next_post(tenant: Tenant) -> None:
    """The change counts even before its event has arrived."""
    await tenant.connect()
    for hour in (9, 11, 13):
        await tenant.put_schedule(daily(hour))
        await tenant.create(f"d{hour}", "text")
        (slot,) = await tenant.add_to_queue(f"d{hour}")
        assert slot.local_time == f"{hour:02}:00"
    await tenant.create("late", "text")
    await delete(tenant, force=True)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await tenant.add_to_queue("late")
    assert fault_from_error(refused.value).reason == "NO_SCHEDULE"
